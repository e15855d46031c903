/* A stand-in for AMD's librocm_smi64 that falls: FAKE_ROCM says in which way (abort, fault, hang, fail) and,
 * after a colon, in which call: "abort:energy". Anything else works and tells what no file does. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

static int fall(const char *call)
{
	static int *volatile nowhere;
	const char *how = getenv("FAKE_ROCM"), *where = how ? strchr(how, ':') : NULL;

	if (!where || strcmp(where + 1, call) != 0)
		return 0;
	if (!strncmp(how, "abort", 5))
		abort();
	if (!strncmp(how, "fault", 5))
		*nowhere = 1;
	if (!strncmp(how, "hang", 4))
		for (;;)
			pause();
	return 2;
}

API int rsmi_init(uint64_t flags)
{
	(void)flags;
	return fall("init");
}

API int rsmi_num_monitor_devices(uint32_t *nr)
{
	*nr = 1;
	return 0;
}

API int rsmi_dev_pci_id_get(uint32_t index, uint64_t *id)
{
	(void)index;
	*id = 0x300;
	return 0;
}

API int rsmi_dev_name_get(uint32_t index, char *name, size_t len)
{
	(void)index;
	memset(name, 'x', len); /* no terminator when it does not fit */
	return fall("name");
}

API int rsmi_dev_energy_count_get(uint32_t index, uint64_t *count, float *resolution, uint64_t *when)
{
	(void)index;
	*count = 1000000;
	*resolution = 15.3f;
	*when = 1;
	return fall("energy");
}
