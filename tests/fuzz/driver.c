/* Runs a fuzz target on files: makes every corpus an ordinary test, with any compiler.
 *
 * A target is fuzz_NAME.c with LLVMFuzzerTestOneInput(); its corpus is corpus/NAME/. The same target linked
 * with clang's -fsanitize=fuzzer instead of this file searches for new inputs. Each input gets a block of
 * exactly its size, so that AddressSanitizer sees a read of one byte too many. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *data = NULL;
	size_t size;
	long end;
	int r = -EIO;

	if (!file)
		return -errno;
	if (fseek(file, 0, SEEK_END) < 0 || (end = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) < 0)
		goto out;
	size = (size_t)end;
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, file) != size)
		goto out;
	LLVMFuzzerTestOneInput(data, size);
	r = 0;
out:
	free(data);
	fclose(file);
	return r;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int r;

		/* Said before, so that a crash names its input. */
		printf("%s\n", argv[i]);
		fflush(stdout);
		r = run_file(argv[i]);
		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
	}
	return 0;
}
