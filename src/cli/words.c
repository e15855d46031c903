/* Words for people: near misses, names of variables, paragraphs. */
#include "cli/words.h"

#include <string.h>

struct nearest typed_nearest(const char *word)
{
	return nearest_to(word, STR_FAR);
}

void typed_try(struct nearest *n, const char *candidate)
{
	size_t len = strlen(n->word);
	unsigned distance = str_distance(n->word, candidate);

	/* The beginning of a word counts as one typing error; a typing error in the whole word is
	 * preferred. */
	if (distance > slips_allowed(len) || distance >= len)
		distance = len >= 2 && str_starts(candidate, n->word) ? STR_FAR - 1 : STR_FAR;
	nearest_offer(n, candidate, distance);
}

char *opt_variable(char out[static OPT_VARIABLE_SIZE], const struct opt *o)
{
	static const char prefix[] = "TACHO_";
	size_t n = sizeof(prefix) - 1;

	memcpy(out, prefix, n);
	for (const char *p = o->long_name; *p && n + 1 < OPT_VARIABLE_SIZE; p++)
		out[n++] = (char)(*p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
	out[n] = 0;
	return out;
}

void opt_long_form(struct buf *out, const struct opt *o)
{
	bool on = o->type == OPT_FLAG && o->preset && !strcmp(o->preset, "yes");

	buf_addf(out, "--%s%s%s%s", on ? "no-" : "", o->long_name, o->arg ? " " : "", o->arg ? o->arg : "");
}

void opt_choices(struct buf *out, const struct opt *o)
{
	if (!o->choices || !o->choices[0] || (o->arg && strchr(o->arg, '|')))
		return;
	buf_adds(out, "One of ");
	for (const char *const *c = o->choices; *c; c++)
		buf_addf(out, "%s%s", *c, c[1] ? ", " : ".");
}

static unsigned columns_of(const char *p, size_t n)
{
	unsigned columns = 0;

	for (size_t i = 0; i < n; i++)
		columns += (p[i] & 0xc0) != 0x80;
	return columns;
}

void wrap_text(struct buf *out, const char *text, unsigned at, unsigned indent, unsigned width)
{
	bool first = true; /* in its line */

	while (*text) {
		size_t n = strcspn(text, " \n");
		unsigned columns = columns_of(text, n);

		if (n && !first && at + 1 + columns > width) {
			buf_addch(out, '\n');
			at = 0;
			first = true;
		}
		if (n) {
			int spaces = at < indent ? (int)(indent - at) : !first;

			buf_addf(out, "%*s%.*s", spaces, "", (int)n, text);
			at += (unsigned)spaces + columns;
			first = false;
			text += n;
		}
		if (*text == '\n') {
			buf_addch(out, '\n');
			at = 0;
			first = true;
		}
		if (*text)
			text++;
	}
	if (at)
		buf_addch(out, '\n');
}
