/* Redacts the lines of its input, as they would be written; a byte 1 in them stands for NUL. For
 * tests/e2e/test_redact.py, which counts what that takes. */
#include "base/redact.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
	static char line[REDACT_LINE_MAX + 1];
	struct redact *r;
	struct buf err;

	buf_init(&err, 1024);
	if (redact_new(&r, NULL, 0, &err) < 0)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		size_t n = strcspn(line, "\n");

		for (char *p = line; (p = memchr(p, 1, (size_t)(line + n - p)));)
			*p = 0;
		n = redact_line(r, line, n, sizeof(line));
		fwrite(line, 1, n, stdout);
		putchar('\n');
	}
	redact_free(r);
	buf_release(&err);
	return 0;
}
