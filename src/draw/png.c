/* A picture as PNG.
 *
 * Written here and not by cairo, which tries every filter on every row: on charts, which are flat, that takes
 * three times as long and saves nothing. Plain rows and a medium level of deflate make files of the same
 * size. */
#include "draw/canvas.h"

#include <string.h>
#include <zlib.h>

#define LEVEL 4

static void add_u32(struct buf *out, uint32_t v)
{
	const uint8_t b[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};

	buf_add(out, b, sizeof(b));
}

static void add_chunk(struct buf *out, const char *type, const void *data, size_t n)
{
	uLong sum = crc32(0, (const Bytef *)type, 4);

	add_u32(out, (uint32_t)n);
	buf_add(out, type, 4);
	if (n) {
		buf_add(out, data, n);
		sum = crc32_z(sum, data, n);
	}
	add_u32(out, (uint32_t)sum);
}

/* In cairo colours are multiplied by their alpha, in PNG they are not. */
static uint8_t plain(uint32_t color, uint32_t alpha)
{
	return (uint8_t)(alpha == 255 ? color : alpha ? MIN((color * 255 + alpha / 2) / alpha, 255u) : 0);
}

static void fill_row(uint8_t *to, const uint32_t *pixel, size_t width, bool alpha)
{
	*to++ = 0; /* filter: none */
	for (size_t i = 0; i < width; i++) {
		uint32_t a = alpha ? pixel[i] >> 24 : 255;

		*to++ = plain(pixel[i] >> 16 & 0xff, a);
		*to++ = plain(pixel[i] >> 8 & 0xff, a);
		*to++ = plain(pixel[i] & 0xff, a);
		if (alpha)
			*to++ = (uint8_t)a;
	}
}

static int deflate_rows(const uint8_t *rows, size_t nr, struct buf *out)
{
	uLongf n = compressBound(nr);
	_cleanup_(freep) uint8_t *packed = malloc(n);

	if (!packed || compress2(packed, &n, rows, nr, LEVEL) != Z_OK)
		return -ENOMEM;
	add_chunk(out, "IDAT", packed, n);
	return 0;
}

int png_of(cairo_surface_t *surface, struct buf *out)
{
	bool alpha = cairo_image_surface_get_format(surface) == CAIRO_FORMAT_ARGB32;
	size_t width = (size_t)cairo_image_surface_get_width(surface);
	size_t height = (size_t)cairo_image_surface_get_height(surface);
	size_t stride = (size_t)cairo_image_surface_get_stride(surface), row = 1 + width * (alpha ? 4 : 3);
	_cleanup_(freep) uint8_t *rows = NULL;
	const uint8_t *pixels;
	struct buf head;
	uint8_t memory[32];

	cairo_surface_flush(surface);
	pixels = cairo_image_surface_get_data(surface);
	rows = pixels ? reallocarray(NULL, height, row) : NULL;
	if (!rows)
		return pixels ? -ENOMEM : draw_status(cairo_surface_status(surface));
	for (size_t y = 0; y < height; y++)
		fill_row(rows + y * row, (const uint32_t *)(const void *)(pixels + y * stride), width, alpha);
	buf_init_fixed(&head, memory, sizeof(memory));
	add_u32(&head, (uint32_t)width);
	add_u32(&head, (uint32_t)height);
	buf_add(&head, (const uint8_t[]){8, alpha ? 6 : 2, 0, 0, 0},
		5); /* bits, kind, and what there is one of */
	buf_add(out, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(out, "IHDR", memory, head.len);
	if (deflate_rows(rows, height * row, out) < 0)
		return -ENOMEM;
	add_chunk(out, "IEND", NULL, 0);
	return out->err;
}
