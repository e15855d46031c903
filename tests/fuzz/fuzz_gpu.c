/* What drivers of GPUs write: fdinfo of any text, gpu_metrics of any bytes. Nothing is read beyond the end,
 * no sum passes its range, and reading twice gives the same.
 *
 * Input: its first byte chooses, the rest is the file. */
#include "collect/gpu_amd.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_info(const char *text, size_t len)
{
	struct drm_info info, again;
	bool is_client = drm_parse(text, len, &info);

	if (drm_parse(text, len, &again) != is_client || memcmp(&info, &again, sizeof(info)) != 0)
		abort();
	if (is_client != (info.driver[0] != 0) || info.memory < 0 || (info.memory && !info.has_memory))
		abort();
	if (!memchr(info.driver, 0, sizeof(info.driver)) || !memchr(info.pdev, 0, sizeof(info.pdev)))
		abort();
	for (int i = 0; i < NR_DRM_USES; i++)
		if (info.time_ns[i] < 0 || (info.time_ns[i] && !info.has_time))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct amd_metrics m;
	char *copy;

	if (!size)
		return 0;
	/* Exactly as long as it is: the sanitizer sees a byte more. */
	copy = malloc(size > 1 ? size - 1 : 1);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (*data & 1)
		amd_metrics_parse(copy, size - 1, &m);
	else
		check_info(copy, size - 1);
	free(copy);
	return 0;
}
