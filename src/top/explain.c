/* The findings of a run as a page: see explain.h. */
#include "top/explain.h"

#include "analysis/finding.h"
#include "text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_finding(const struct finding *f, unsigned width, struct buf *out)
{
	buf_addf(out, "%s: ", finding_weight_name(f->weight));
	add_wrapped(out, f->title, 0, width - MIN(width / 2, 9u));
	buf_adds(out, "\n  ");
	add_wrapped(out, f->text, 2, width);
	buf_addch(out, '\n');
	for (size_t i = 0; i < f->nr_evidence; i++)
		if (!isnan(f->evidence[i].value))
			buf_addf(out, "    %s = %s\n", f->evidence[i].name,
				format_number(SHOWN, f->evidence[i].value));
	if (f->phase)
		buf_addf(out, "    in phase %s\n", f->phase);
	buf_addch(out, '\n');
}

char *explain_findings(const struct run *run, unsigned width, struct buf *reterr)
{
	const struct analysis_options options = {.from_s = NAN, .to_s = NAN, .points = 500, .processes = 20};
	struct analysis *s = NULL;
	struct buf out;
	char *text;

	if (analysis_read(run, &options, &s, reterr) < 0)
		return NULL;
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < s->findings->nr; i++)
		add_finding(&s->findings->item[i], width, &out);
	if (!s->findings->nr)
		buf_addf(&out, "%s\n", findings_none(s));
	text = out.err ? NULL : strdup((char *)out.data);
	if (!text)
		buf_adds(reterr, "no memory");
	buf_release(&out);
	analysis_free(s);
	return text;
}
