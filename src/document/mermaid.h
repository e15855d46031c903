/* Charts for Mermaid, in a block of code for Markdown. */
#ifndef DOCUMENT_MERMAID_H
#define DOCUMENT_MERMAID_H

#include "analysis/chart.h"
#include "base/buf.h"
#include "query/events.h"

/* The curves of a chart, with the names of their colours below. False: there is nothing to draw, or its form
 * is none that Mermaid has; then nothing is added. */
bool mermaid_curves(const struct chart *c, struct buf *out);
/* Phases on the run's time axis; those without an end last to `end_s`. `host`: the names of the nodes, each
 * with a section of its own; NULL: there is one. */
bool mermaid_phases(const struct run_events *events, const char *const *host, double end_s, struct buf *out);
#endif
