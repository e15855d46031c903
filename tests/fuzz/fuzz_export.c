/* The writers of formats: frames whose names, values, texts and missing values are what the bytes say. The
 * first byte chooses the format. That a reader takes what comes out is tested with readers (tests/e2e/); here
 * the sanitizers judge. */
#include "../unit/export_lab.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t nr = 0;
	char path[64];

	while (exporters[nr])
		nr++;
	if (!size)
		return 0;
	snprintf(path, sizeof(path), "/tmp/tacho-fuzz-export-%d", (int)getpid());
	if (!exporters[data[0] % nr]->missing && exporters[data[0] % nr]->shape != EXPORT_OWN_FILES)
		lab_write_fuzz(exporters[data[0] % nr], data + 1, size - 1, path);
	unlink(path);
	return 0;
}
