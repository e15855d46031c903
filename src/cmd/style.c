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

struct text_style table_style(bool json, bool csv)
{
	return (struct text_style){.form = json ? FORM_JSON
			: csv			? FORM_CSV
						: FORM_TEXT,
		.width = isatty(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : 0,
		.utf8 = locale_is_utf8(),
		.color = want_color(STDOUT_FILENO)};
}
