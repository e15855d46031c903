/* Parser of machine files and films. All strings stay in the text that was loaded: escapes only shrink, so
 * they are undone in place, and one allocation holds everything but the lists of operations and frames.
 *
 * A line is a keyword and its words; the content of a file is the run of lines below it that begin with '|'
 * (the line and its newline) or ':' (the line alone). Anything unknown is an error with its line: a film with
 * a typing error must not silently test something else. */
#include "env/script.h"

#include "base/str.h"

#include <string.h>

const char *const script_call_name[NR_NODE_CALLS] = {"open", "read", "list", "readlink", "space"};
const char *const script_clock_name[NR_ENV_CLOCKS] = {"monotonic", "realtime", "boottime"};

/* Those that files of /proc and /sys give, and counters. */
static const struct {
	const char *name;
	int error;
} error_name[] = {
	{"EIO", EIO},
	{"EPERM", EPERM},
	{"ENOENT", ENOENT},
	{"ESRCH", ESRCH},
	{"EINTR", EINTR},
	{"ENXIO", ENXIO},
	{"EAGAIN", EAGAIN},
	{"ENOMEM", ENOMEM},
	{"EACCES", EACCES},
	{"EBUSY", EBUSY},
	{"ENODEV", ENODEV},
	{"ENOTDIR", ENOTDIR},
	{"EISDIR", EISDIR},
	{"EINVAL", EINVAL},
	{"ENOSPC", ENOSPC},
	{"ENOSYS", ENOSYS},
	{"E2BIG", E2BIG},
	{"EMFILE", EMFILE},
	{"ENFILE", ENFILE},
	{"EFBIG", EFBIG},
	{"ENODATA", ENODATA},
	{"ELOOP", ELOOP},
	{"EOPNOTSUPP", EOPNOTSUPP},
	{"EOVERFLOW", EOVERFLOW},
};

const char *script_error_name(int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(error_name); i++)
		if (error_name[i].error == error)
			return error_name[i].name;
	return error_name[0].name;
}

void script_escape(struct buf *out, const char *bytes, size_t len, bool blanks)
{
	const uint8_t *p = (const uint8_t *)bytes, *end = p + len;

	while (p < end) {
		size_t n = utf8_length(p, end);
		/* Many editors would remove a blank at the end of a line. */
		bool blank = (*p == ' ' || *p == '\t') && (blanks || p + 1 == end);

		if (n && !blank && *p != '\\' && *p != 0x7f && (*p >= ' ' || *p == '\t')) {
			buf_add(out, p, n);
			p += n;
		} else {
			buf_addf(out, *p == '\\' ? "\\\\" : "\\x%02x", *p);
			p++;
		}
	}
}

static int hex_digit(char c)
{
	static const char digit[] = "0123456789abcdef";
	const char *at = c ? strchr(digit, c | 0x20) : NULL;

	return at ? (int)(at - digit) : -1;
}

/* From [from, from + len) to `to`, which may be the same place. New length, or -EINVAL. */
static ssize_t unescape(char *to, const char *from, size_t len)
{
	const char *end = from + len;
	char *start = to;

	while (from < end) {
		if (*from != '\\') {
			*to++ = *from++;
		} else if (end - from >= 2 && from[1] == '\\') {
			*to++ = '\\';
			from += 2;
		} else if (end - from >= 4 && from[1] == 'x' && hex_digit(from[2]) >= 0 &&
			hex_digit(from[3]) >= 0) {
			*to++ = (char)(hex_digit(from[2]) << 4 | hex_digit(from[3]));
			from += 4;
		} else {
			return -EINVAL;
		}
	}
	return to - start;
}

struct script_parser {
	struct script *script;
	char *p, *end; /* what is left of the text */
	unsigned line;
	size_t ops_cap, frames_cap;
};

/* The words of one line; the line's end was made a NUL. */
struct script_words {
	char *p;
};

/* Next word, unescaped and terminated; NULL when there is none or it is malformed. Words hold no NUL. */
static char *next_word(struct script_words *w)
{
	char *word = w->p, *end = word + strcspn(word, " ");
	ssize_t n;

	if (end == word)
		return NULL;
	w->p = *end ? end + 1 : end;
	n = unescape(word, word, (size_t)(end - word));
	if (n < 0)
		return NULL;
	word[n] = 0;
	return strlen(word) == (size_t)n ? word : NULL;
}

static char *next_path(struct script_words *w)
{
	char *path = next_word(w);

	return path && path_is_good(path) ? path : NULL;
}

/* "." is the root: only its space can be given. */
static char *next_place(struct script_words *w)
{
	char *path = next_word(w);

	if (path && !strcmp(path, "."))
		*path = 0;
	return path && (!*path || path_is_good(path)) ? path : NULL;
}

static bool next_i64(struct script_words *w, int64_t *ret)
{
	const char *word = next_word(w);

	return word && parse_i64n(word, strlen(word), ret);
}

/* Seconds with up to nine decimals, exactly. */
static bool next_seconds(struct script_words *w, int64_t *ret_ns)
{
	const char *word = next_word(w), *dot = word ? strchr(word, '.') : NULL;
	int64_t seconds, ns = 0;
	size_t decimals;

	if (!word || !parse_i64n(word, dot ? (size_t)(dot - word) : strlen(word), &seconds))
		return false;
	if (dot) {
		decimals = strlen(dot + 1);
		if (decimals > 9 || dot[1] < '0' || !parse_i64n(dot + 1, decimals, &ns))
			return false;
		for (; decimals < 9; decimals++)
			ns *= 10;
	}
	if (seconds < 0 || seconds > INT64_MAX / NSEC_PER_SEC / 2)
		return false;
	*ret_ns = seconds * NSEC_PER_SEC + ns;
	return true;
}

static int name_index(const char *const *names, int nr, const char *word)
{
	for (int i = 0; word && i < nr; i++)
		if (!strcmp(names[i], word))
			return i;
	return -EINVAL;
}

static bool words_end(const struct script_words *w)
{
	return !*w->p;
}

/* Takes a line off the text and ends it with a NUL. A NUL inside a line is caught by its length. */
static char *take_line(struct script_parser *s, size_t *ret_len)
{
	char *line = s->p, *stop = memchr(line, '\n', (size_t)(s->end - line));

	if (!stop)
		stop = s->end;
	*stop = 0;
	*ret_len = (size_t)(stop - line);
	s->p = stop < s->end ? stop + 1 : stop;
	s->line++;
	return line;
}

/* The lines of content that follow, joined where the first one stands. */
static int take_content(struct script_parser *s, struct op *op)
{
	char *to = s->p;

	op->data = to;
	while (s->p < s->end && (*s->p == '|' || *s->p == ':')) {
		bool newline = *s->p == '|';
		size_t len;
		char *line = take_line(s, &len);
		ssize_t n = unescape(to, line + 1, len - 1);

		if (n < 0)
			return -EINVAL;
		to += n;
		if (newline)
			*to++ = '\n';
	}
	op->len = (size_t)(to - op->data);
	return 0;
}

static int parse_file(struct script_parser *s, struct op *op, struct script_words *w)
{
	op->kind = OP_FILE;
	op->path = next_path(w);
	if (!op->path || !words_end(w))
		return -EINVAL;
	return take_content(s, op);
}

static int parse_link(struct script_parser *s, struct op *op, struct script_words *w)
{
	(void)s;
	op->kind = OP_LINK;
	op->path = next_path(w);
	op->data = op->path ? next_word(w) : NULL;
	if (!op->data || !words_end(w))
		return -EINVAL;
	op->len = strlen(op->data);
	return 0;
}

static int parse_dir(struct script_parser *s, struct op *op, struct script_words *w)
{
	(void)s;
	op->kind = OP_DIR;
	op->path = next_path(w);
	if (!op->path || (!words_end(w) && (!next_i64(w, &op->value) || op->value < 0)))
		return -EINVAL;
	return words_end(w) ? 0 : -EINVAL;
}

/* The error of that name as a negative errno; 0 when there is none. */
static int error_of(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(error_name); i++)
		if (!strcmp(error_name[i].name, name))
			return -error_name[i].error;
	return 0;
}

static int parse_error(struct script_parser *s, struct op *op, struct script_words *w)
{
	const char *name;

	(void)s;
	op->kind = OP_ERROR;
	op->path = next_place(w);
	op->which = op->path ? name_index(script_call_name, NR_NODE_CALLS, next_word(w)) : -EINVAL;
	name = op->which >= 0 ? next_word(w) : NULL;
	if (!name || !words_end(w) || (!*op->path && op->which != CALL_SPACE))
		return -EINVAL;
	op->error = error_of(name);
	return op->error ? 0 : -EINVAL;
}

static int parse_cpu(struct script_parser *s, struct op *op, struct script_words *w)
{
	(void)s;
	op->kind = OP_CPU;
	op->path = next_path(w);
	if (!op->path || path_pid(op->path) < 0 || strchr(op->path + 5, '/'))
		return -EINVAL;
	return next_i64(w, &op->value) && op->value >= 0 && words_end(w) ? 0 : -EINVAL;
}

static int parse_space(struct script_parser *s, struct op *op, struct script_words *w)
{
	struct env_space *space = &op->space;
	int64_t *const number[] = {
		&space->total, &space->free, &space->available, &space->inodes, &space->free_inodes};

	(void)s;
	op->kind = OP_SPACE;
	op->path = next_place(w);
	if (!op->path)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(number); i++)
		if (!next_i64(w, number[i]) || *number[i] < 0)
			return -EINVAL;
	return words_end(w) ? 0 : -EINVAL;
}

static bool parse_counter_key(struct op *op, struct script_words *w)
{
	const char *type = next_word(w), *config = type ? next_word(w) : NULL;
	const char *pid = config ? next_word(w) : NULL, *cpu = pid ? next_word(w) : NULL;

	op->kind = OP_COUNTER;
	return cpu && counter_parse_type(&op->key, type) && counter_parse_config(&op->key, config) &&
		counter_parse_place(&op->key, pid, cpu);
}

static int parse_counter(struct script_parser *s, struct op *op, struct script_words *w)
{
	uint64_t *const number[] = {&op->count.value, &op->count.enabled_ns, &op->count.running_ns};

	(void)s;
	if (!parse_counter_key(op, w))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(number); i++) {
		const char *word = next_word(w);

		if (!word || !parse_u64(word, number[i]))
			return -EINVAL;
	}
	return words_end(w) ? 0 : -EINVAL;
}

static int parse_counter_error(struct script_parser *s, struct op *op, struct script_words *w)
{
	(void)s;
	if (!parse_counter_key(op, w))
		return -EINVAL;
	op->error = error_of(next_word(w));
	return op->error && words_end(w) ? 0 : -EINVAL;
}

static int parse_remove(struct script_parser *s, struct op *op, struct script_words *w)
{
	op->kind = OP_REMOVE;
	op->path = next_path(w);
	return s->script->nr_frames > 1 && op->path && words_end(w) ? 0 : -EINVAL;
}

static int parse_variable(struct script_parser *s, struct op *op, struct script_words *w)
{
	(void)s;
	op->kind = OP_VARIABLE;
	op->path = next_word(w);
	op->data = op->path ? strchr(op->path, '=') : NULL;
	if (!op->data || op->data == op->path || !words_end(w))
		return -EINVAL;
	*op->data++ = 0;
	return 0;
}

/* A frame may set the wall clock and the boot clock: steps of the first, sleep of the machine in the second.
 */
static int parse_clock(struct script_parser *s, struct op *op, struct script_words *w)
{
	op->kind = OP_CLOCK;
	op->which = name_index(script_clock_name, NR_ENV_CLOCKS, next_word(w));
	if (op->which < 0 || !next_seconds(w, &op->value) || !words_end(w))
		return -EINVAL;
	if (s->script->nr_frames == 1)
		s->script->start_ns[op->which] = op->value;
	else if (op->which == ENV_MONOTONIC)
		return -EINVAL;
	return 0;
}

static const struct {
	const char *keyword;
	int (*parse)(struct script_parser *s, struct op *op, struct script_words *w);
} op_table[] = {
	{"file", parse_file},
	{"link", parse_link},
	{"dir", parse_dir},
	{"error", parse_error},
	{"cpu", parse_cpu},
	{"space", parse_space},
	{"counter", parse_counter},
	{"counter_error", parse_counter_error},
	{"remove", parse_remove},
	{"variable", parse_variable},
	{"clock", parse_clock},
};

/* Room for one more element; the list may move. */
static int grow(void *list, size_t nr, size_t *cap, size_t size)
{
	void **p = list, *more;

	if (nr < *cap)
		return 0;
	more = reallocarray(*p, *cap ? *cap * 2 : 64, size);
	if (!more)
		return -ENOMEM;
	*p = more;
	*cap = *cap ? *cap * 2 : 64;
	return 0;
}

static int parse_frame(struct script_parser *s, struct script_words *w)
{
	struct script *script = s->script;
	int64_t at_ns;

	if (!next_seconds(w, &at_ns) || !words_end(w) || at_ns <= script->frame[script->nr_frames - 1].at_ns)
		return -EINVAL;
	if (grow(&script->frame, script->nr_frames, &s->frames_cap, sizeof(*script->frame)) < 0)
		return -ENOMEM;
	script->frame[script->nr_frames++] = (struct frame){.at_ns = at_ns, .first = script->nr_ops};
	return 0;
}

static int parse_setting(struct script_parser *s, struct script_words *w, long *into)
{
	int64_t value;

	if (!next_i64(w, &value) || !words_end(w) || value <= 0 || value > 1 << 30 ||
		s->script->nr_frames > 1)
		return -EINVAL;
	*into = (long)value;
	return 0;
}

static int parse_line(struct script_parser *s, char *line, size_t len)
{
	struct script_words w = {line};
	struct script *script = s->script;
	const char *keyword;

	if (strlen(line) != len)
		return -EINVAL;
	if (!len || *line == '#')
		return 0;
	keyword = next_word(&w);
	if (!keyword)
		return -EINVAL;
	if (!strcmp(keyword, "frame"))
		return parse_frame(s, &w);
	if (!strcmp(keyword, "page_size"))
		return parse_setting(s, &w, &script->page_size);
	if (!strcmp(keyword, "clock_tick"))
		return parse_setting(s, &w, &script->clock_tick);
	for (size_t i = 0; i < ARRAY_SIZE(op_table); i++) {
		struct op op = {.line = s->line};
		int r;

		if (strcmp(op_table[i].keyword, keyword))
			continue;
		r = op_table[i].parse(s, &op, &w);
		if (r < 0)
			return r;
		if (grow(&script->op, script->nr_ops, &s->ops_cap, sizeof(op)) < 0)
			return -ENOMEM;
		script->op[script->nr_ops++] = op;
		return 0;
	}
	return -EINVAL;
}

/* Removals of what is not there are mistakes too; only a walk through all frames finds them. */
static int check_removals(const struct script *s, unsigned *reterr_line)
{
	struct files files = {0};
	int r = 0;

	for (size_t i = 0; i < s->nr_ops && !r; i++) {
		const struct op *op = s->op + i;

		if (op->kind == OP_CLOCK || op->kind == OP_VARIABLE || op->kind == OP_COUNTER)
			continue;
		if (op->kind == OP_REMOVE)
			r = files_remove(&files, op->path) ? 0 : -EINVAL;
		else if (!files_make(&files, op->path))
			r = -ENOMEM;
		*reterr_line = op->line;
	}
	files_release(&files);
	return r;
}

int script_parse(struct script *s, char *text, size_t len, unsigned *reterr_line)
{
	struct script_parser parser = {.script = s, .p = text, .end = text + len};
	int r = 0;

	*s = (struct script){
		.text = text,
		.page_size = 4096,
		.clock_tick = 100,
		.start_ns = {100 * NSEC_PER_SEC, 1700000000 * NSEC_PER_SEC, 100 * NSEC_PER_SEC},
	};
	r = grow(&s->frame, 0, &parser.frames_cap, sizeof(*s->frame));
	if (!r)
		s->frame[s->nr_frames++] = (struct frame){0};
	while (!r && parser.p < parser.end) {
		size_t line_len;
		char *line = take_line(&parser, &line_len);

		*reterr_line = parser.line;
		r = parse_line(&parser, line, line_len);
		*reterr_line = r ? parser.line : 0;
	}
	if (!r)
		r = check_removals(s, reterr_line);
	if (!r)
		*reterr_line = 0;
	else
		script_release(s);
	return r;
}

void script_release(struct script *s)
{
	free(s->op);
	free(s->frame);
	free(s->text);
	*s = (struct script){0};
}
