/* Writes the tables of export_lab.h in a format, for readers in Python:
 *
 *	export_tool FORMAT FRAME PATH [LAYOUT [COMPRESSION]]    FRAME: mixed, empty, whole, properties
 *	export_tool expected                                    what is in them, as JSON on stdout
 *	export_tool fuzz FORMAT SEED PATH                       random tables */
#include "export_lab.h"

#include <stdio.h>
#include <string.h>

static int expected(void)
{
	struct buf out;

	buf_init(&out, (size_t)64 << 20);
	lab_json(&out);
	fwrite(out.data, 1, out.len, stdout);
	buf_release(&out);
	return 0;
}

static int random_tables(const char *format, const char *seed, const char *path)
{
	const struct exporter *x = exporter_find(format);
	uint64_t n = strtoull(seed, NULL, 10) * 2 + 1;
	uint8_t data[1000];

	for (size_t i = 0; i < sizeof(data); i++) {
		n = n * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		data[i] = (uint8_t)(n >> 56);
	}
	return x && lab_write_fuzz(x, data, sizeof(data), path) >= 0 ? 0 : 1;
}

static enum export_layout layout_of(const char *name)
{
	return !strcmp(name, "long") ? LAYOUT_LONG : !strcmp(name, "wide") ? LAYOUT_WIDE : LAYOUT_DEFAULT;
}

int main(int argc, char **argv)
{
	struct lab_options o = {.layout = argc > 4 ? layout_of(argv[4]) : LAYOUT_DEFAULT,
		.compression = argc > 5 ? argv[5] : NULL};
	const struct exporter *x = argc > 1 ? exporter_find(argv[1]) : NULL;
	int r;

	if (argc == 2 && !strcmp(argv[1], "expected"))
		return expected();
	if (argc == 5 && !strcmp(argv[1], "fuzz"))
		return random_tables(argv[2], argv[3], argv[4]);
	if (!x || x->missing || argc < 4)
		return 2;
	for (size_t i = 0; i < LAB_FRAMES; i++) {
		if (strcmp(argv[2], lab_frame[i].name) != 0)
			continue;
		r = lab_write(x, i, &o, argv[3]);
		if (r < 0)
			fprintf(stderr, "%s\n", strerror(-r));
		return r < 0;
	}
	return 2;
}
