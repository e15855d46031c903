/* Pressure stall information, of the node and of control groups alike. */
#include "read/read.h"

#include <string.h>

/* "some avg10=13.89 avg60=6.37 avg300=1.65 total=20092060", and another such line for "full". */
bool read_pressure(const char *text, const char *end, const char *kind, enum psi_word which, int64_t *ret)
{
	const char *word = which == PSI_AVG10 ? " avg10=" : " total=";
	size_t kind_len = strlen(kind), word_len = strlen(word);

	for (const char *line = text, *stop; line < end; line = stop + 1) {
		const char *p;

		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			return false;
		if ((size_t)(stop - line) <= kind_len || memcmp(line, kind, kind_len) ||
			line[kind_len] != ' ')
			continue;
		p = memmem(line, (size_t)(stop - line), word, word_len);
		if (!p)
			return false;
		p += word_len;
		return which == PSI_AVG10 ? read_centi(&p, stop, ret) : read_number(&p, stop, ret);
	}
	return false;
}
