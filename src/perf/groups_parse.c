/* The format of share/events/README.md: a keyword a line, each understood by one function.
 *
 * What a file is `like` is parsed into the same groups first, so that a group of its own simply takes the
 * place of the other's. Names in formulas are looked up while reading, and written out as metrics
 * ("perf.NAME"); the expression is then parsed as its readers will, so that a mistake is known here, with its
 * line, and not after the job.
 *
 * A format of our own rather than JSON or YAML: it is written by hand from a manual, every line can carry a
 * comment, and an error has a line. */
#include "perf/groups.h"

#include "base/expr.h"
#include "base/str.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 8
#define BYTES_MAX 1048576 /* what one count may move */

struct group_parser {
	struct event_file *file;
	struct event_group *group; /* that lines belong to; NULL: none yet */
	struct group_event *event; /* or */
	struct group_formula *formula;
	bool own[GROUPS_OF_FILE_MAX]; /* of this file, not of the one it is like */
	bool has_cpu;
	unsigned depth, line;
	char *err;
	size_t err_size;
};

static int parse_text(struct group_parser *p, const char *text, size_t len);

static _printf_(2, 3) int refuse(struct group_parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int take(struct group_parser *p, char *out, size_t size, struct text t, const char *what)
{
	if (!t.len)
		return refuse(p, "%s is missing", what);
	if (t.len >= size)
		return refuse(p, "%s is longer than %zu characters", what, size - 1);
	memcpy(out, t.p, t.len);
	out[t.len] = 0;
	return 0;
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return is_small(c) || is_digit(c) || c == '_';
}

/* Of an event or a formula: the end of a metric's name. */
static int take_name(struct group_parser *p, char *out, size_t size, struct text t)
{
	int r = take(p, out, size, t, "the name");

	if (r < 0)
		return r;
	for (size_t i = 0; i < t.len; i++)
		if (!is_name(t.p[i]) || !is_small(*t.p))
			return refuse(p, "%s: a name has small letters, digits and _, a letter first", out);
	/* Rows that the counters have in any case. */
	if (!strcmp(out, "enabled"))
		return refuse(p, "%s is the name of another metric", out);
	return 0;
}

/* "NAME… = REST": leaves what stands behind the '='. */
static int expect_equals(struct group_parser *p, struct text *rest)
{
	*rest = text_strip(*rest);
	if (!rest->len || *rest->p != '=')
		return refuse(p, "a '=' is missing");
	*rest = text_strip(text_from(*rest, 1));
	return 0;
}

static int need_group(struct group_parser *p)
{
	return p->group ? 0 : refuse(p, "it belongs to no group: a line `group NAME HELP` comes first");
}

static int line_cpu(struct group_parser *p, struct text rest)
{
	struct event_file *f = p->file;
	size_t len = strlen(f->serves);

	if (p->depth) /* of the file that it is like: checked there */
		return 0;
	if (!rest.len)
		return refuse(p, "the name of a micro-architecture is missing");
	while (rest.len) {
		struct text word = text_word(&rest);

		if (len + word.len + 2 > sizeof(f->serves))
			return refuse(p, "too many names");
		len += (size_t)snprintf(f->serves + len, sizeof(f->serves) - len, "%s%.*s", len ? " " : "",
			(int)word.len, word.p);
	}
	p->has_cpu = true;
	return 0;
}

static int line_like(struct group_parser *p, struct text rest)
{
	struct text name = text_word(&rest);
	struct group_parser other = *p;
	int r;

	if (p->group || rest.len || !name.len)
		return refuse(p, "`like NAME` takes one name and stands before the first group");
	if (p->depth == DEPTH_MAX)
		return refuse(p, "files that are like each other");
	for (size_t i = 0; embedded_events[i].name; i++) {
		if (!text_is(name, embedded_events[i].name))
			continue;
		other.depth++;
		r = parse_text(&other, embedded_events[i].text, strlen(embedded_events[i].text));
		return r;
	}
	return refuse(p, "no built-in file is called %.*s", (int)MIN(name.len, 60u), name.p);
}

static int line_group(struct group_parser *p, struct text rest)
{
	struct text name = text_word(&rest);
	struct event_file *f = p->file;
	struct event_group *g = NULL;
	char text[sizeof(g->name)];
	int r = take(p, text, sizeof(text), name, "the name");

	if (r < 0)
		return r;
	for (const char *c = text; *c; c++)
		if (!((*c >= 'A' && *c <= 'Z') || is_digit(*c) || *c == '_'))
			return refuse(p, "%s: a group is named in capitals, digits and _", text);
	for (unsigned i = 0; i < f->nr_groups && !g; i++)
		if (!strcmp(f->group[i].name, text))
			g = &f->group[i];
	if (!g && f->nr_groups == GROUPS_OF_FILE_MAX)
		return refuse(p, "more than %d groups", GROUPS_OF_FILE_MAX);
	if (!g)
		g = &f->group[f->nr_groups++];
	if (p->own[g - f->group])
		return refuse(p, "%s stands here twice", text);
	p->own[g - f->group] = true;
	*g = (struct event_group){0};
	memcpy(g->name, text, sizeof(text));
	p->group = g;
	return take(p, g->help, sizeof(g->help), rest, "what the group tells");
}

static int line_missing(struct group_parser *p, struct text rest)
{
	int r = need_group(p);

	return r < 0 ? r : take(p, p->group->missing, sizeof(p->group->missing), rest, "the reason");
}

/* Adds one more way to count to the event's code, with what stands between. */
static int add_code(struct group_parser *p, const char *between, struct text code)
{
	struct group_event *e = p->event;
	size_t len = strlen(e->code);

	if (!code.len)
		return refuse(p, "the event's code is missing");
	for (size_t i = 0; i < code.len; i++)
		if (code.p[i] <= ' ' || code.p[i] > '~' || code.p[i] == '|' || code.p[i] == '+')
			return refuse(p, "%.*s: this is no event; write one a line, others with `or`",
				(int)MIN(code.len, 80u), code.p);
	if (len + strlen(between) + code.len >= sizeof(e->code))
		return refuse(p, "too many codes");
	snprintf(e->code + len, sizeof(e->code) - len, "%s%.*s", between, (int)code.len, code.p);
	return 0;
}

static int new_event(struct group_parser *p, struct text name)
{
	struct event_group *g = p->group;
	struct group_event *e = &g->event[g->nr_events];
	int r;

	if (g->nr_events == GROUP_EVENTS_MAX)
		return refuse(p, "more than %d events", GROUP_EVENTS_MAX);
	r = take_name(p, e->name, sizeof(e->name), name);
	for (unsigned i = 0; i < g->nr_events && !r; i++)
		if (!strcmp(g->event[i].name, e->name))
			r = refuse(p, "%s stands in this group twice", e->name);
	if (r < 0)
		return r;
	g->nr_events++;
	p->event = e;
	return 0;
}

static int line_event(struct group_parser *p, struct text rest)
{
	int r = need_group(p);

	if (!r)
		r = new_event(p, text_word(&rest));
	if (!r)
		r = expect_equals(p, &rest);
	return r ? r : add_code(p, "", rest);
}

static int take_bytes(struct group_parser *p, struct text t)
{
	char number[24];
	uint64_t bytes;
	int r = take(p, number, sizeof(number), t, "how many bytes a count moves");

	if (r < 0)
		return r;
	if (!parse_u64(number, &bytes) || !bytes || bytes > BYTES_MAX)
		return refuse(p, "%s is no number of bytes", number);
	p->event->bytes = (double)bytes;
	return 0;
}

static int line_package(struct group_parser *p, struct text rest)
{
	static const char *const roles[] = {"read", "write", "both"};
	struct text role;
	int r = need_group(p);

	if (!r)
		r = new_event(p, text_word(&rest));
	if (r < 0)
		return r;
	p->event->of_package = true;
	role = text_word(&rest);
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (text_is(role, roles[i]))
			snprintf(p->event->role, sizeof(p->event->role), "%s", roles[i]);
	if (!p->event->role[0])
		return refuse(p, "%.*s: the role is read, write or both", (int)MIN(role.len, 40u), role.p);
	r = take_bytes(p, text_word(&rest));
	if (!r)
		r = expect_equals(p, &rest);
	return r ? r : add_code(p, "", rest);
}

static int line_or(struct group_parser *p, struct text rest)
{
	if (!p->event)
		return refuse(p, "it stands below an event");
	return add_code(p, " | ", rest);
}

static int line_and(struct group_parser *p, struct text rest)
{
	if (!p->event || !p->event->of_package)
		return refuse(p, "it stands below a `package` event");
	return add_code(p, " + ", rest);
}

static int take_unit(struct group_parser *p, struct text t)
{
	struct group_formula *f = p->formula;
	int unit;

	f->per_second = text_ends(t, "/s");
	if (f->per_second)
		t.len -= 2;
	unit = unit_from_name(t.p, t.len);
	if (unit < 0)
		return refuse(p,
			"%.*s is no unit: count, bytes, seconds, ratio, hertz or flop, and /s for rates",
			(int)MIN(t.len, 40u), t.p);
	f->unit = (enum metric_unit)unit;
	return 0;
}

static const struct group_event *event_named(const struct event_group *g, struct text name)
{
	for (unsigned i = 0; i < g->nr_events; i++)
		if (text_is(name, g->event[i].name))
			return &g->event[i];
	return NULL;
}

/* A word of an expression: a function, or an event, which is written out as its metric. */
static int add_word(struct group_parser *p, struct buf *out, struct text word, bool called)
{
	const struct group_event *e = event_named(p->group, word);
	int len = (int)MIN(word.len, 60u);

	if (called && !text_is(word, "rate") && !text_is(word, "max") && !text_is(word, "min") &&
		!text_is(word, "or"))
		return refuse(p, "%.*s() is no function: rate, max, min and or are", len, word.p);
	if (!called && !e)
		return refuse(p, "%.*s: no event of this name stands above in the group", len, word.p);
	if (!called && e->of_package)
		return refuse(p, "%s is counted for packages and cannot be part of a formula", e->name);
	if (!called)
		buf_adds(out, "perf.");
	buf_add(out, word.p, word.len);
	return 0;
}

static int check_expression(struct group_parser *p)
{
	const char *why = NULL;
	struct expr e;
	size_t at;

	if (expr_parse(&e, p->formula->expression, &why, &at) == 0)
		return 0;
	return refuse(p, "the expression %s: %s", p->formula->expression, why ? why : "is too long");
}

static int take_expression(struct group_parser *p, struct text t)
{
	struct buf out;
	int depth = 0, r;

	buf_init_fixed(&out, p->formula->expression, sizeof(p->formula->expression));
	for (size_t i = 0, n; i < t.len; i += n) {
		char c = t.p[i];

		n = 1;
		if (is_small(c)) {
			struct text after;

			while (i + n < t.len && is_name(t.p[i + n]))
				n++;
			after = text_strip(text_from(t, i + n));
			r = add_word(p, &out, (struct text){t.p + i, n}, after.len && *after.p == '(');
			if (r < 0)
				return r;
			continue;
		}
		if (!is_digit(c) && !strchr("+-*/(),. ", c))
			return refuse(p, "the expression has a strange character");
		depth += c == '(' ? 1 : c == ')' ? -1 : 0;
		if (depth < 0)
			break;
		buf_addch(&out, c);
	}
	if (depth)
		return refuse(p, "the expression's parentheses do not match");
	if (!out.len || out.err)
		return refuse(p, out.err ? "the expression is too long" : "the expression is missing");
	return check_expression(p);
}

static int line_formula(struct group_parser *p, struct text rest)
{
	struct event_group *g = p->group;
	int r = need_group(p);

	if (r < 0)
		return r;
	if (g->nr_formulas == GROUP_FORMULAS_MAX)
		return refuse(p, "more than %d formulas", GROUP_FORMULAS_MAX);
	p->formula = &g->formula[g->nr_formulas++];
	r = take_name(p, p->formula->name, sizeof(p->formula->name), text_word(&rest));
	if (!r)
		r = take_unit(p, text_word(&rest));
	if (!r)
		r = expect_equals(p, &rest);
	return r ? r : take_expression(p, rest);
}

static int line_help(struct group_parser *p, struct text rest)
{
	if (!p->formula)
		return refuse(p, "it stands below a formula");
	return take(p, p->formula->help, sizeof(p->formula->help), rest, "the text");
}

static int line_caution(struct group_parser *p, struct text rest)
{
	if (p->event)
		return take(p, p->event->caution, sizeof(p->event->caution), rest, "the text");
	if (p->formula)
		return take(p, p->formula->caution, sizeof(p->formula->caution), rest, "the text");
	return refuse(p, "it stands below an event or a formula");
}

static const struct keyword {
	const char *word;
	int (*parse)(struct group_parser *p, struct text rest);
	bool more; /* belongs to the event or formula above */
} keyword[] = {
	{"cpu", line_cpu, false},
	{"like", line_like, false},
	{"group", line_group, false},
	{"missing", line_missing, false},
	{"event", line_event, false},
	{"package", line_package, false},
	{"or", line_or, true},
	{"and", line_and, true},
	{"formula", line_formula, false},
	{"help", line_help, true},
	{"caution", line_caution, true},
};

static int check_line(struct group_parser *p, struct text line)
{
	const uint8_t *at = (const uint8_t *)line.p, *end = at + line.len;

	while (at < end) {
		size_t n = utf8_length(at, end);

		if (!n || *at == 0x7f || (*at < ' ' && *at != '\t'))
			return refuse(p, "a byte that is no text");
		at += n;
	}
	return 0;
}

static int parse_line(struct group_parser *p, struct text line)
{
	struct text word;

	line = text_strip(line);
	if (check_line(p, line) < 0)
		return -EINVAL;
	if (!line.len || *line.p == '#')
		return 0;
	word = text_word(&line);
	for (size_t i = 0; i < ARRAY_SIZE(keyword); i++) {
		if (!text_is(word, keyword[i].word))
			continue;
		if (!keyword[i].more) {
			p->event = NULL;
			p->formula = NULL;
		}
		return keyword[i].parse(p, line);
	}
	return refuse(p, "%.*s: there is no such keyword", (int)MIN(word.len, 40u), word.p);
}

static int parse_text(struct group_parser *p, const char *text, size_t len)
{
	struct text rest = {text, len};
	int r;

	for (p->line = 1; rest.len; p->line++) {
		r = parse_line(p, text_cut(&rest, '\n'));
		if (r < 0)
			return r;
	}
	return 0;
}

/* An event of several groups is one metric, and so is a formula. */
static int check_same(struct group_parser *p, const struct event_group *a, const struct event_group *b)
{
	for (unsigned i = 0; i < a->nr_events; i++) {
		const struct group_event *e = &a->event[i], *other = event_named(b, text_of(e->name));

		if (other && (strcmp(e->code, other->code) || e->of_package != other->of_package))
			return refuse(
				p, "%s has one code in %s and another in %s", e->name, a->name, b->name);
	}
	for (unsigned i = 0; i < a->nr_formulas; i++) {
		const struct group_formula *f = &a->formula[i];

		if (event_named(b, text_of(f->name)))
			return refuse(
				p, "%s is a formula in %s and an event in %s", f->name, a->name, b->name);
		for (unsigned k = 0; k < b->nr_formulas; k++)
			if (!strcmp(f->name, b->formula[k].name) && (a != b || i != k) &&
				(a == b || strcmp(f->expression, b->formula[k].expression)))
				return refuse(
					p, "%s is two formulas, in %s and in %s", f->name, a->name, b->name);
	}
	return 0;
}

static int check_file(struct group_parser *p)
{
	const struct event_file *f = p->file;

	if (!p->has_cpu)
		return refuse(p, "a line `cpu NAME…` is missing");
	if (!f->nr_groups)
		return refuse(p, "the file has no group");
	for (unsigned i = 0; i < f->nr_groups; i++) {
		const struct event_group *g = &f->group[i];

		if (!g->nr_events && !g->missing[0])
			return refuse(p, "%s has neither events nor `missing` with the reason", g->name);
		for (unsigned k = 0; k < g->nr_formulas; k++)
			if (!g->formula[k].help[0])
				return refuse(p, "%s has no `help`", g->formula[k].name);
		for (unsigned k = 0; k < f->nr_groups; k++)
			if (check_same(p, g, &f->group[k]) < 0)
				return -EINVAL;
	}
	return 0;
}

int event_file_parse(const char *text, size_t len, struct event_file *ret, unsigned *reterr_line, char *err,
	size_t err_size)
{
	struct group_parser p = {.file = ret, .err = err, .err_size = err_size};
	int r;

	*ret = (struct event_file){0};
	ret->group = calloc(GROUPS_OF_FILE_MAX, sizeof(*ret->group));
	if (!ret->group) {
		snprintf(err, err_size, "no memory");
		return -ENOMEM;
	}
	r = parse_text(&p, text, len);
	if (!r)
		r = check_file(&p);
	*reterr_line = p.line;
	if (r < 0)
		event_file_release(ret);
	return r;
}

void event_file_release(struct event_file *f)
{
	free(f->group);
	*f = (struct event_file){0};
}
