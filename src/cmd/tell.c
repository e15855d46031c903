/* One message to the recorder of this job, by the header that programs use. */
#include "cmd/tell.h"

#include "cmd/cmd.h"

#include <tacho_mark.h>

bool is_data(const char *word)
{
	size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return key && word[key] == '=';
}

/* One warning for all: there may be thousands of words. */
static void warn_left_out(const char *first, size_t nr, const char *what, const char *advice)
{
	char more[40] = "";

	if (!nr)
		return;
	if (nr > 1)
		snprintf(more, sizeof(more), ", and so are %zu more", nr - 1);
	warning("'%.40s%s' %s left out%s%s", first, strlen(first) > 40 ? "…" : "", what, more, advice);
}

void keep_data(char **word)
{
	char **kept = word;
	const char *first = NULL;
	size_t left_out = 0;

	for (; *word; word++)
		if (is_data(*word))
			*kept++ = *word;
		else if (!left_out++)
			first = *word;
	*kept = NULL;
	warn_left_out(first, left_out, "is not KEY=VALUE, and is",
		first && strchr(first, '=') ? ": a key has letters, digits, _ . and -"
					    : "; a text of several words is put in quotes");
}

int tell(const char *kind, const char *text, char *const *data, bool for_shell, bool strict)
{
	const char *path = getenv("TACHO_SOCKET");
	struct tacho_message m;
	char parent[16], advice[64];
	const char *first = NULL;
	size_t left_out = 0;

	tacho_start(&m);
	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	if (for_shell)
		tacho_add(&m, "@parent=", parent);
	for (size_t before; *data; data++) {
		before = m.end;
		tacho_add(&m, "", *data);
		if (m.end == before && !left_out++)
			first = *data;
	}
	snprintf(advice, sizeof(advice), ": a message has at most %d bytes", TACHO_MESSAGE_MOST);
	warn_left_out(first, left_out, "is", advice);
	if (tacho_send(&m, kind, text) == 0 || !strict)
		return EXIT_OK;
	if (!path || !*path)
		error("this is not recorded: TACHO_SOCKET is not set (start it by tacho run)");
	else
		error("the recorder at %s was not told", path);
	return EXIT_TROUBLE;
}
