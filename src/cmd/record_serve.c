/* run --serve: a server beside the job, which shows its recording in a browser and ends with its last viewer.
 */
#include "cmd/record.h"

#include "base/owned.h"
#include "cmd/cmd.h"
#include "cmd/external.h"

#include <string.h>

void record_serve(struct recording *r)
{
	_cleanup_(freep) char *with = strdup(r->opt->serve_with ? r->opt->serve_with : "");
	char *word[BESIDE_WORDS_MOST + 8];
	size_t nr = 0;

	if (r->serves || !(r->opt->serve || r->opt->serve_with) || !r->sink.store || !with)
		return;
	r->serves = true;
	if (!external_has("tacho-serve")) {
		warning("--serve needs tacho-serve, which is not installed here: nothing is served; "
			"`tacho report` makes the page when the job has ended");
		return;
	}
	if (!beside_closed(with)) {
		warning("--serve-with: a quotation mark is not closed in %s: nothing is served", with);
		return;
	}
	word[nr++] = (char *)"tacho";
	word[nr++] = (char *)"serve";
	word[nr++] = (char *)"--until-end";
	nr += beside_words(with, word + nr, BESIDE_WORDS_MOST);
	word[nr++] = (char *)"--";
	word[nr++] = (char *)r->path.data;
	word[nr] = NULL;
	beside_start(r, word, true);
}
