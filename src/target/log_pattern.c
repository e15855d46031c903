/* Expressions over lines of a log: see log_pattern.h. The C library knows no names of groups: they are taken
 * out of the expression, and kept by number. */
#include "target/log_pattern.h"

#include <string.h>
#include <time.h>

#define DATA_MOST 2048
/* An expression that takes longer for one line is given up. */
#define MATCH_MOST_NS (50 * NSEC_PER_MSEC)

#define TEXT_MOST 1024
#define REPEATED_MOST 250

int64_t log_spent_ns(void)
{
	struct timespec ts = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* The name at `at`, right behind "(?<" or "(?P<"; NULL: it cannot be one. Returns what follows ">". */
static const char *take_name(const char *at, char to[static 32])
{
	size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	if (!n || n >= 32 || at[n] != '>')
		return NULL;
	memcpy(to, at, n);
	to[n] = 0;
	return at + n + 1;
}

/* A group begins: what follows its "(". NULL: it is none that we know. */
static const char *take_group(struct log_pattern *p, const char *at, struct buf *reterr)
{
	char *name;

	if (++p->nr_groups >= LOG_GROUPS) {
		buf_addf(reterr, "it has more than %d groups", LOG_GROUPS - 1);
		return NULL;
	}
	name = p->name[p->nr_groups];
	if (*at != '?')
		return at;
	if (at[1] == ':')
		return at + 2;
	if (at[1] == '<' || (at[1] == 'P' && at[2] == '<'))
		at = take_name(at + (at[1] == 'P' ? 3 : 2), name);
	else
		at = NULL;
	if (!at)
		buf_adds(reterr,
			"a group may begin with (?<NAME>, (?P<NAME> or (?:, and a name has letters, "
			"digits and _");
	return at;
}

/* Copies a list of characters, [...]. Returns what follows it. */
static const char *copy_list(const char *at, struct buf *out)
{
	const char *from = at++;

	at += *at == '^';
	at += *at == ']';
	while (*at && *at != ']') {
		char kind = *at == '[' ? at[1] : 0;

		if (kind == ':' || kind == '.' || kind == '=')
			for (at += 2; *at && !(*at == kind && at[1] == ']'); at++)
				;
		at += *at != 0;
	}
	at += *at == ']';
	buf_add(out, from, (size_t)(at - from));
	return at;
}

/* ---- how large it becomes: the C library writes out what {m,n} repeats, and needs memory and time for all
 * of it ---- */

struct weight {
	unsigned depth;
	uint64_t sum[LOG_GROUPS + 1], last[LOG_GROUPS + 1]; /* of a group; of what a {m,n} would repeat */
	uint64_t repeated;
};

static void weigh(struct weight *w, uint64_t atom)
{
	w->last[w->depth] = atom;
	w->sum[w->depth] += atom;
}

static void weigh_end(struct weight *w)
{
	if (!w->depth)
		return;
	w->depth--;
	weigh(w, w->sum[w->depth + 1]);
}

static void weigh_begin(struct weight *w)
{
	w->depth++;
	w->sum[w->depth] = w->last[w->depth] = 0;
}

/* Copies {m,n}, or a brace that is none. Returns what follows it. Saturates: the limit is far below. */
static const char *copy_repetition(struct weight *w, const char *at, struct buf *out)
{
	size_t len = strspn(at + 1, "0123456789,") + 1;
	uint64_t times = 0, most = 0, more;

	buf_add(out, at, len);
	for (size_t i = 1; i < len; i++) {
		times = at[i] == ',' ? 0 : MIN(times * 10 + (uint64_t)(at[i] - '0'), UINT64_C(65536));
		most = MAX(most, times);
	}
	more = w->last[w->depth] * (MAX(most, 1) - 1);
	w->last[w->depth] = MIN(w->last[w->depth] + more, UINT64_C(1) << 32);
	w->sum[w->depth] = MIN(w->sum[w->depth] + more, UINT64_C(1) << 32);
	w->repeated = MIN(w->repeated + more, UINT64_C(1) << 32);
	if (at[len] == '}')
		buf_addch(out, at[len++]);
	return at + len;
}

static void weigh_char(struct weight *w, const char *at)
{
	if (*at == '(')
		weigh_begin(w);
	else if (*at == ')')
		weigh_end(w);
	else
		weigh(w, 1);
}

/* The expression without names of groups; \d is a digit. */
static int translate(struct log_pattern *p, const char *text, struct buf *out, struct buf *reterr)
{
	struct weight w = {0};

	for (const char *at = text; at && *at;) {
		if (*at == '\\' && at[1] >= '1' && at[1] <= '9') {
			buf_adds(reterr, "it may not refer to a group (\\1): that can take for ever");
			return -EINVAL;
		}
		if (*at == '\\' && at[1] == 'd') {
			buf_adds(out, "[0-9]");
			weigh(&w, 1);
			at += 2;
		} else if (*at == '\\' && at[1]) {
			buf_add(out, at, 2);
			weigh(&w, 1);
			at += 2;
		} else if (*at == '[') {
			weigh(&w, 1);
			at = copy_list(at, out);
		} else if (*at == '{') {
			at = copy_repetition(&w, at, out);
		} else if (*at == '*' || *at == '+' || *at == '?') {
			buf_addch(out, *at++); /* of what is before it, as a {m,n} behind it */
		} else {
			weigh_char(&w, at);
			buf_addch(out, *at);
			at = *at == '(' ? take_group(p, at + 1, reterr) : at + 1;
		}
		if (!at)
			return -EINVAL;
	}
	if (w.repeated > REPEATED_MOST)
		buf_addf(reterr,
			"its repetitions {m,n} are too large: written out they have more than %d parts",
			REPEATED_MOST);
	return w.repeated > REPEATED_MOST ? -EINVAL : 0;
}

int log_pattern_compile(struct log_pattern *p, const char *text, bool phase, struct buf *reterr)
{
	struct buf plain;
	char why[200];
	int r;

	*p = (struct log_pattern){.phase = phase, .text = text};
	if (strlen(text) > TEXT_MOST) {
		buf_addf(reterr, "it is longer than %d bytes", TEXT_MOST);
		return -EINVAL;
	}
	buf_init(&plain, 65536);
	r = translate(p, text, &plain, reterr);
	if (r >= 0 && (plain.err || !plain.len)) {
		buf_adds(reterr, plain.err ? "it is too long" : "it is empty");
		r = -EINVAL;
	}
	if (r >= 0) {
		r = regcomp(&p->regex, (const char *)plain.data, REG_EXTENDED);
		if (r)
			regerror(r, &p->regex, why, sizeof(why));
		if (r)
			buf_adds(reterr, why);
		r = r ? -EINVAL : 0;
	}
	buf_release(&plain);
	return r;
}

void log_pattern_release(struct log_pattern *p)
{
	regfree(&p->regex);
}

static bool group_is(const struct log_pattern *p, unsigned i, const char *name)
{
	return !strcmp(p->name[i], name);
}

/* The named groups that took part; names have a meaning for the pattern itself are no data. */
static size_t put_data(
	const struct log_pattern *p, const char *line, const regmatch_t *m, char *to, size_t size)
{
	size_t at = 0;

	for (unsigned i = 1; i <= p->nr_groups; i++) {
		size_t key = strlen(p->name[i]), len = (size_t)(m[i].rm_eo - m[i].rm_so);

		if (!key || m[i].rm_so < 0 || group_is(p, i, "name") || group_is(p, i, "end") ||
			memchr(line + m[i].rm_so, 0, len) || at + key + len + 2 > size)
			continue;
		memcpy(to + at, p->name[i], key);
		to[at + key] = '=';
		memcpy(to + at + key + 1, line + m[i].rm_so, len);
		at += key + 1 + len;
		to[at++] = 0;
	}
	return at ? at - 1 : 0;
}

static void end_open(struct log_pattern *p, struct job_message *m, log_take_fn *take, void *arg)
{
	if (!*p->open)
		return;
	m->kind = "phase.end";
	m->text = p->open;
	m->text_len = strlen(p->open);
	take(arg, m);
	*p->open = 0;
}

static void tell_phase(struct log_pattern *p, struct job_message *m, bool ends, log_take_fn *take, void *arg)
{
	struct job_message end = {.data = "", .time_ns = -1};
	char name[LOG_NAME];
	size_t len = 0;

	for (size_t i = 0; i < m->text_len && len + 1 < sizeof(name); i++)
		name[len++] = m->text[i] ? m->text[i] : ' ';
	name[len] = 0;
	if (ends) {
		end_open(p, m, take, arg);
		return;
	}
	end_open(p, &end, take, arg);
	memcpy(p->open, name, len + 1);
	m->text = p->open;
	m->text_len = len;
	m->kind = "phase.begin";
	take(arg, m);
}

/* A line has no end but its length, and may hold any bytes. */
static int match_line(const regex_t *regex, const char *line, size_t len, unsigned nr, regmatch_t *match)
{
#ifdef REG_STARTEND
	match[0] = (regmatch_t){.rm_so = 0, .rm_eo = (regoff_t)len};
	return regexec(regex, line, nr, match, REG_STARTEND);
#else /* musl: line[len] is 0, and a zero before it ends the line */
	(void)len;
	return regexec(regex, line, nr, match, 0);
#endif
}

void log_pattern_match(struct log_pattern *p, const char *line, size_t len, log_take_fn *take, void *arg)
{
	regmatch_t match[LOG_GROUPS];
	struct job_message m = {.kind = "mark", .time_ns = -1};
	char data[DATA_MOST];
	int64_t before = log_spent_ns();
	bool ends = false;
	int r = match_line(&p->regex, line, len, p->nr_groups + 1, match);

	p->given_up = log_spent_ns() - before > MATCH_MOST_NS;
	if (r != 0)
		return;
	p->matched++;
	m.text = line + match[0].rm_so;
	m.text_len = (size_t)(match[0].rm_eo - match[0].rm_so);
	for (unsigned i = 1; i <= p->nr_groups; i++) {
		if (match[i].rm_so < 0)
			continue;
		ends |= group_is(p, i, "end");
		if (group_is(p, i, "name")) {
			m.text = line + match[i].rm_so;
			m.text_len = (size_t)(match[i].rm_eo - match[i].rm_so);
		}
	}
	m.data = data;
	m.data_len = put_data(p, line, match, data, sizeof(data));
	if (p->phase)
		tell_phase(p, &m, ends, take, arg);
	else
		take(arg, &m);
}
