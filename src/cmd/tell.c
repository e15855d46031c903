/* One message to the recorder of this job, by the header that programs use. */
#include "cmd/tell.h"

#include "cmd/cmd.h"

#include <tacho_mark.h>

bool is_data(const char *word)
{
	size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return key && word[key] == '=';
}

void keep_data(char **word)
{
	char **kept = word;

	for (; *word; word++)
		if (is_data(*word))
			*kept++ = *word;
		else
			warning("'%s' is not KEY=VALUE, and is left out%s", *word,
				strchr(*word, '=') ? ": a key has letters, digits, _ . and -"
						   : "; a text of several words is put in quotes");
	*kept = NULL;
}

int tell(const char *kind, const char *text, char *const *data, bool for_shell, bool strict)
{
	const char *path = getenv("TACHO_SOCKET");
	char message[TACHO_MESSAGE_MOST], parent[16];
	size_t size, before, data_size = 0;

	for (char *const *word = data; *word; word++)
		data_size += tacho_line_size(*word);
	size = tacho_begin(message, kind, text, data_size, 0);
	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	if (for_shell)
		size = tacho_add_line(message, size, "@parent=", parent);
	for (; *data; data++) {
		before = size;
		size = tacho_add_line(message, size, "", *data);
		if (size == before)
			warning("%.40s… is left out: a message has at most %d bytes", *data,
				TACHO_MESSAGE_MOST);
	}
	if (tacho_send(message, size, 0) == 0 || !strict)
		return EXIT_OK;
	if (!path || !*path)
		error("this is not recorded: TACHO_SOCKET is not set (start it by tacho run)");
	else
		error("the recorder at %s was not told", path);
	return EXIT_TROUBLE;
}
