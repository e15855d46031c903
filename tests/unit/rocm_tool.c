/* Asks ROCm SMI as a recording would for devices of which nothing is known, and prints what it fills: for
 * tests/e2e/test_gpu_amd.py, with the real library on a tree of files. Words are PCI addresses. */
#include "collect/gpu_amd.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS 500 /* of 20 ms */

int main(int argc, char **argv)
{
	static struct gpu_reading reading;
	static struct gpu_request request;
	struct env *env = env_live(NULL);
	struct rocm *rocm = env ? rocm_open(env) : NULL;
	struct timespec pause = {.tv_nsec = 20000000};
	bool told = false;

	if (!rocm) {
		puts("no library");
		return 77;
	}
	request.rows = ~UINT64_C(0);
	for (int round = 0; round < ROUNDS && !told; round++) {
		memset(&reading, 0, sizeof(reading));
		for (int i = 1; i < argc && i <= GPU_DEVICES_MAX; i++)
			snprintf(reading.device[reading.nr_devices++].pci, 32, "%s", argv[i]);
		for (unsigned i = 0; i < reading.nr_devices; i++)
			snprintf(reading.device[i].model, 32, "AMD GPU 1002:ffff");
		rocm_read(rocm, &request, &reading);
		told = reading.nr_devices > 0;
		for (unsigned i = 0; i < reading.nr_devices; i++)
			told &= reading.device[i].valid != 0;
		nanosleep(&pause, NULL);
	}
	for (unsigned i = 0; i < reading.nr_devices; i++) {
		printf("%s model %s\n", reading.device[i].pci, reading.device[i].model);
		for (int row = 0; row < NR_GPU_ROWS; row++)
			if (reading.device[i].valid >> row & 1)
				printf("%s %d %lld\n", reading.device[i].pci, row,
					(long long)reading.device[i].value[row]);
	}
	rocm_close(rocm);
	env_free(env);
	return told ? 0 : 1;
}
