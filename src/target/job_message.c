/* Takes apart what the job tells its recorder. Lines that are not understood are left out, so that a later
 * version may have more of them; a message whose first line is not understood is refused. */
#include "target/job_message.h"

#include <string.h>

#define KEY_MOST 64

static const struct {
	const char *word, *kind;
} kinds[] = {{"mark ", "mark"}, {"begin ", "phase.begin"}, {"end ", "phase.end"}, {"count", ""}};

/* The line from `at` on, without its escapes, moved to `to`. Returns where the next line begins. */
static char *take_line(char *at, char *end, char *to, size_t *ret_len)
{
	char *out = to;

	for (; at < end && *at != '\n'; at++) {
		bool escape = *at == '\\' && at + 1 < end && (at[1] == 'n' || at[1] == '\\');

		at += escape;
		*out++ = escape && *at == 'n' ? '\n' : *at;
	}
	*ret_len = (size_t)(out - to);
	return at < end ? at + 1 : end;
}

/* A decimal number that is all of the text; negative: it is none, or too large. */
static int64_t number_of(const char *text, size_t len)
{
	int64_t n = 0;

	if (!len || len > 18)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		n = n * 10 + (text[i] - '0');
	}
	return n;
}

static bool has_key(const char *line, size_t len)
{
	size_t n = 0;

	for (; n < len && n <= KEY_MOST && line[n] != '='; n++) {
		char c = line[n];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    c == '_' || c == '.' || c == '-'))
			return false;
	}
	return n > 0 && n < len && n <= KEY_MOST;
}

static bool begins(const char *line, size_t len, const char *with, size_t *ret_rest)
{
	*ret_rest = strlen(with);
	return len >= *ret_rest && !memcmp(line, with, *ret_rest);
}

/* Returns where the data end: a line of data stays where it is put, a line of ours is not kept. */
static char *take_word(struct job_message *m, char *line, size_t len)
{
	size_t rest;

	if (begins(line, len, "@time=", &rest))
		m->time_ns = number_of(line + rest, len - rest);
	else if (begins(line, len, "@lost=", &rest))
		m->lost = MAX(number_of(line + rest, len - rest), 0);
	else if (begins(line, len, "@within=", &rest))
		m->within = MAX(number_of(line + rest, len - rest), 0);
	else if (begins(line, len, "@thread=", &rest))
		m->thread = MAX(number_of(line + rest, len - rest), 0);
	else if (begins(line, len, "@parent=", &rest))
		m->parent = MAX(number_of(line + rest, len - rest), 0);
	else if (has_key(line, len) && !memchr(line, 0, len)) {
		line[len] = 0;
		return line + len + 1;
	}
	return line;
}

int job_message_parse(char *bytes, size_t len, struct job_message *ret)
{
	char *end = bytes + len, *at, *to;
	size_t n, rest = 0;

	*ret = (struct job_message){.time_ns = -1};
	at = take_line(bytes, end, bytes, &n);
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !ret->kind; i++)
		if (begins(bytes, n, kinds[i].word, &rest))
			ret->kind = kinds[i].kind;
	if (!ret->kind)
		return -EBADMSG;
	ret->text = bytes + rest;
	ret->text_len = n - rest;
	/* What is left of the first line's end is room for the terminator of each word that follows. */
	ret->data = to = bytes + n;
	while (at < end) {
		at = take_line(at, end, to, &n);
		to = take_word(ret, to, n);
	}
	ret->data_len = to > ret->data ? (size_t)(to - ret->data) - 1 : 0;
	return 0;
}
