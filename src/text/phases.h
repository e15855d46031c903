/* The table by phase, for the summary and for all documents.
 *
 *	by phase    wall    cpu  cores  peak mem     read    wrote   GPU  energy
 *	load       41.2s  38.9s   0.94   2.1 GiB   14 GiB   12 MiB   0 %  4.1 kJ
 *	epoch ×12 18m22s  2h11m   7.13   9.8 GiB  1.1 GiB  340 MiB  91 %  212 kJ  (each 1m32s ± 1.4s; the 7th
 *11 % slower: CPU pressure)
 */
#ifndef TEXT_PHASES_H
#define TEXT_PHASES_H

#include "query/phases.h"
#include "query/summary.h"
#include "text/table.h"

#define PHASES_SHOWN 12

const char *ordinal(uint32_t n); /* "st", "nd", "rd", "th" */
/* "epoch ×12". */
void phase_title(const struct phase *p, bool utf8, struct buf *out);
/* By this share: "11 % slower", "2.7 times as long". */
char *format_slower(char out[static UNITS_SIZE], double share);
/* "each 1m32s ± 1.4s; the 7th 11 % slower: CPU pressure"; nothing when there is nothing to say. */
void phase_remark(const struct phase *p, bool utf8, struct buf *out);
/* The phase that holds all of this time, and the outermost around it: "backward of epoch 5"; of phases that
 * come again under one name, "the 3rd step". False: there is none. */
bool add_phase_at(const struct phases *p, double from_s, double to_s, struct buf *out);
/* " in save", or, where no phase is known, " at 12.9s". */
void add_when(const struct phases *p, double at_s, double length_s, struct buf *out);
/* At most so many phases, the longest, in their order; those in others behind `indent` for each; columns in
 * which nothing is known are left out. What is interpolated stands behind "~", and the note says so. The last
 * column, which has no title, has the remarks in brackets, if there are any. -ENOMEM;
 * phases_table_free() in any case. */
int phases_table(const struct phases *p, size_t most, bool utf8, const char *indent, struct text_table *ret);
void phases_table_free(struct text_table *t);

/* All that is known of one phase, or of one repetition: a line each, or as JSON. */
void phase_print(const struct summary *s, const struct phase *p, bool utf8, struct buf *out);
void phase_json(const struct summary *s, const struct phase *p, struct buf *out);

/* "phases": a list, each with its repetitions, of which at most the first so many are told; nothing where
 * there are none. */
void json_phases(struct json *j, const struct summary *s, size_t most);
#endif
