/* `tacho plot -o`: the charts as one picture, below one another. */
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/plot.h"
#include "draw/draw.h"
#include "exec/commands.h"
#include "exec/paths.h"

#include <cairo-pdf.h>
#include <stdio.h>
#include <string.h>

#define PICTURE_MAX ((size_t)1 << 30)
#define WIDTH 960.0
#define SCALE 2.0 /* of PNG: sharp on today's screens */
#define LARGEST 20000u

struct sheet_of_paper {
	enum draw_form form;
	struct draw_style style;
	double *height; /* of each chart */
	double total;
};

static enum draw_form form_of(const struct plot_args *a)
{
	static const char *const ending[] = {[DRAW_PNG] = ".png", [DRAW_SVG] = ".svg", [DRAW_PDF] = ".pdf"};

	if (a->format != PLOT_BY_ENDING)
		return (enum draw_form)(a->format - PLOT_PNG);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		if (path_has_suffix(a->output, ending[i]))
			return (enum draw_form)i;
	usage(&cmd_plot, "%s: say which kind of picture with --format png, svg or pdf", a->output);
}

/* --size is of the whole picture: of PNG its pixels. */
static void lay_out(struct sheet_of_paper *s, const struct plot_args *a, const struct plot *p)
{
	unsigned width = 0, height = 0;
	double scale = s->form == DRAW_PNG ? SCALE : 1;
	char end;

	s->style = (struct draw_style){.dark = a->dark, .width = WIDTH, .scale = scale};
	if (a->size) {
		if (sscanf(a->size, "%6ux%6u%c", &width, &height, &end) != 2 || width < 200 || height < 120 ||
			width > LARGEST || height > LARGEST)
			usage(&cmd_plot, "--size %s: width and height, 200x120 to %ux%u", a->size, LARGEST,
				LARGEST);
		/* Text keeps its size when the picture is small. */
		s->style.scale = s->form == DRAW_PNG && width < WIDTH ? 1 : scale;
		s->style.width = width / s->style.scale;
	}
	s->height = calloc(MAX(p->nr, (size_t)1), sizeof(*s->height));
	if (!s->height)
		die(EXIT_TROUBLE, "no memory");
	for (size_t i = 0; i < p->nr; i++) {
		s->height[i] = a->size ? height / s->style.scale / (double)p->nr
				       : draw_height(&p->chart[i], s->style.width);
		s->total += s->height[i];
	}
}

static cairo_status_t write_to_buf(void *closure, const unsigned char *data, unsigned len)
{
	struct buf *out = closure;

	buf_add(out, data, len);
	return out->err ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static int draw_on(cairo_surface_t *surface, const struct sheet_of_paper *s, const struct plot *p)
{
	cairo_t *cr = cairo_create(surface);
	double y = 0;
	int r = 0;

	if (s->form == DRAW_PNG)
		cairo_scale(cr, s->style.scale, s->style.scale);
	for (size_t i = 0; r >= 0 && i < p->nr; i++) {
		r = draw_chart(cr, &p->chart[i], 0, y, s->style.width, s->height[i], &s->style);
		y += s->height[i];
	}
	cairo_destroy(cr);
	return r;
}

static int draw_surface(const struct sheet_of_paper *s, const struct plot *p, struct buf *out)
{
	bool png = s->form == DRAW_PNG;
	cairo_surface_t *surface = png
		? cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(s->style.width * s->style.scale + 0.5),
			  (int)(s->total * s->style.scale + 0.5))
		: cairo_pdf_surface_create_for_stream(write_to_buf, out, s->style.width, s->total);
	int r = draw_on(surface, s, p);

	if (r >= 0 && png)
		r = draw_status(cairo_surface_write_to_png_stream(surface, write_to_buf, out));
	cairo_surface_finish(surface);
	if (r >= 0)
		r = draw_status(cairo_surface_status(surface));
	cairo_surface_destroy(surface);
	return r < 0 ? r : out->err;
}

/* Several drawings in one: each is an element of its own, moved to its place. */
static int draw_svg(const struct sheet_of_paper *s, const struct plot *p, struct buf *out)
{
	double y = 0;
	int r = 0;

	if (p->nr > 1)
		buf_addf(out,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 "
			"%g %g\">\n",
			s->style.width, s->total, s->style.width, s->total);
	for (size_t i = 0; r >= 0 && i < p->nr; i++) {
		struct draw_style style = s->style;

		style.height = s->height[i];
		if (p->nr > 1)
			buf_addf(out, "<g transform=\"translate(0 %g)\">\n", y);
		r = draw_picture(&p->chart[i], DRAW_SVG, &style, out);
		buf_adds(out, p->nr > 1 ? "</g>\n" : "");
		y += s->height[i];
	}
	buf_adds(out, p->nr > 1 ? "</svg>\n" : "");
	return r < 0 ? r : out->err;
}

int plot_run(const void *args, int argc, char **argv)
{
	const struct plot_args *a = args;
	struct sheet_of_paper s = {.height = NULL};
	struct plot *p;
	struct buf out;
	int status, r;

	if (!a->output)
		usage(&cmd_plot, "--output says where the picture goes");
	s.form = form_of(a);
	status = output_check(a->output, a->force);
	if (status != EXIT_OK)
		return status;
	if (!strcmp(a->output, "-") && isatty(STDOUT_FILENO))
		usage(&cmd_plot, "a picture is nothing for a terminal; leave --output out to see it there");
	p = plot_of(a, argc, argv);
	lay_out(&s, a, p);
	buf_init(&out, PICTURE_MAX);
	r = s.form == DRAW_SVG ? draw_svg(&s, p, &out) : draw_surface(&s, p, &out);
	if (r < 0) {
		error("cannot draw it: %s", strerror(-r));
		status = EXIT_TROUBLE;
	} else {
		status = output_whole(a->output, &out, a->force);
	}
	buf_release(&out);
	free(s.height);
	plot_free(p);
	return status;
}
