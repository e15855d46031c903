/* One message to the recorder of this job, by the header that programs use. */
#include "cmd/tell.h"

#include "cmd/cmd.h"

#include <tacho_mark.h>

bool is_data(const char *word)
{
	size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return key && word[key] == '=';
}

int tell(const char *kind, const char *text, char *const *data, bool strict)
{
	const char *path = getenv("TACHO_SOCKET");
	char message[TACHO_MESSAGE_MOST];
	size_t size = tacho_begin(message, kind, text, 0);

	for (; *data; data++)
		size = tacho_add_line(message, size, "", *data);
	if (tacho_send(message, size, 0) == 0 || !strict)
		return EXIT_OK;
	if (!path || !*path)
		error("this is not recorded: TACHO_SOCKET is not set (start it by tacho run)");
	else
		error("the recorder at %s was not told", path);
	return EXIT_TROUBLE;
}
