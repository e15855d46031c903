/* Phases as bands behind curves, and events as lines across them: which row of names each phase has, and what
 * is too narrow, or too close, to be told apart.
 *
 * Phases that lie within others, or overlap them, have a lane (row of names) of their own. Neighbours of a
 * lane that are too narrow for their names become one band: "epoch ×500", or "12 phases" where they are
 * different ones. */
#ifndef ANALYSIS_BANDS_H
#define ANALYSIS_BANDS_H

#include "base/owned.h"
#include "query/events.h"
#include "analysis/chart.h"

#define BAND_LANES 4 /* phases further within others have no band */

struct chart_bands {
	struct chart_band *band; /* by lane, and by time */
	size_t nr;
	uint32_t nr_lanes;
	size_t left_out; /* phases without a band */
};

/* Those of one recording that reach into this part of the run. All is kept by `kept`. */
int bands_make(const struct run_events *m, uint32_t node, double from_s, double to_s, struct owned *kept,
	struct chart_bands *ret);
/* The recording whose phases stand for all: they tell the same; the first that tells any. */
uint32_t bands_node(const struct run_events *m);
void chart_set_bands(struct chart *c, const struct chart_bands *b);
/* Events in its part of the run, of one recording or of all (-1). Those that stand too close become one that
 * counts them: "written ×12". Without memory kept->failed. */
void chart_set_marks(struct chart *c, const struct run_events *m, int64_t node, struct owned *kept);
#endif
