/* Charts as reports have them, made up: for test_draw.c, and for the eyes (draw_tool.c). */
#ifndef TESTS_DRAW_SAMPLES_H
#define TESTS_DRAW_SAMPLES_H

#include "analysis/chart.h"

struct sample {
	struct chart f;
	void *memory[256]; /* what it owns */
	size_t nr_memory;
};

typedef void sample_fn(struct sample *s);
extern sample_fn *const samples[];
extern const size_t nr_samples;

void sample_free(struct sample *s);
/* The one with that id. */
void sample_make(struct sample *s, const char *id);
#endif
