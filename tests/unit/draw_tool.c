/* Draws samples of every form into a directory, in all formats, light and dark: to be looked at.
 *
 *	draw_tool DIR [WIDTH]
 */
#include "draw/draw.h"
#include "draw_samples.h"

#include <stdio.h>

static int write_one(
	const char *dir, const struct chart *f, size_t nr, enum draw_form form, bool dark, double width)
{
	static const char *const ending[] = {"png", "svg", "pdf"};
	struct draw_style style = {.dark = dark, .width = width};
	struct buf out;
	char path[500];
	FILE *file;
	int r;

	buf_init(&out, 100 << 20);
	r = draw_picture(f, form, &style, &out);
	snprintf(path, sizeof(path), "%.400s/%02zu%s.%s", dir, nr, dark ? "-dark" : "", ending[form]);
	file = r ? NULL : fopen(path, "w");
	if (!file)
		fprintf(stderr, "%s: %s\n", path, strerror(r ? -r : errno));
	else
		fwrite(out.data, 1, out.len, file);
	if (file)
		fclose(file);
	buf_release(&out);
	return r;
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc < 2)
		return 2;
	for (size_t i = 0; i < nr_samples; i++) {
		struct sample s;

		samples[i](&s);
		for (int form = DRAW_PNG; form <= DRAW_PDF; form++)
			for (int dark = 0; dark < 2; dark++)
				r |= write_one(
					argv[1], &s.f, i, form, dark, argc > 2 ? strtod(argv[2], NULL) : 0);
		sample_free(&s);
	}
	return r ? 1 : 0;
}
