/* How the summary should look on a file descriptor: see style.h. */
#include "cmd/style.h"

#include "cmd/cmd.h"

#include <string.h>
#include <strings.h>

bool locale_is_utf8(void)
{
	static const char *const variable[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < ARRAY_SIZE(variable); i++) {
		const char *value = getenv(variable[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct summary_style style_for(int fd)
{
	return (struct summary_style){
		.color = want_color(fd), .utf8 = locale_is_utf8(), .width = terminal_width(fd)};
}
