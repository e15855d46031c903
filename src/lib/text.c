/* Summary and findings of a run as JSON, for programs that link libtacho: the same texts as those of `tacho
 * show
 * --json` and of the page. */
#include "lib/internal.h"

#include "analysis/finding.h"
#include "text/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MOST ((size_t)2 << 30)
/* Findings need the curves, but no drawings: as many points and processes as the rules look at. */
#define POINTS 500
#define PROCESSES 20

static int write_summary(const struct run *run, struct buf *out, struct buf *reterr)
{
	struct summary *s = NULL;
	int r = summary_read(run, &s, reterr);

	if (r >= 0)
		summary_json(s, out);
	summary_free(s);
	return r;
}

static int write_findings(const struct run *run, struct buf *out, struct buf *reterr)
{
	const struct analysis_options options = {
		.from_s = NAN, .to_s = NAN, .points = POINTS, .processes = PROCESSES};
	struct analysis *s = NULL;
	struct json j;
	int r = analysis_read(run, &options, &s, reterr);

	if (r < 0)
		return r;
	json_init(&j, out, false);
	json_object(&j, NULL);
	findings_json(&j, s->findings);
	json_end_object(&j);
	analysis_free(s);
	return 0;
}

static int give_text(const tacho_run *run, char **ret,
	int (*write)(const struct run *run, struct buf *out, struct buf *reterr))
{
	struct buf out, err;
	int r;

	if (!run || !ret)
		return lib_fail(-EINVAL, "a run and a place for the text are needed");
	buf_init(&out, TEXT_MOST);
	buf_init(&err, 1 << 16);
	r = write(lib_run_of(run)->run, &out, &err);
	if (r >= 0 && out.err)
		r = out.err;
	if (r >= 0) {
		*ret = strndup((char *)out.data, out.len);
		r = *ret ? 0 : -ENOMEM;
	}
	if (r < 0)
		lib_fail(r, err.len ? (char *)err.data : NULL);
	buf_release(&out);
	buf_release(&err);
	return r;
}

int tacho_summary(const tacho_run *run, char **ret)
{
	return give_text(run, ret, write_summary);
}

int tacho_findings(const tacho_run *run, char **ret)
{
	return give_text(run, ret, write_findings);
}

void tacho_free(char *text)
{
	free(text);
}
