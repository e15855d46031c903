/* Lines of the run log: see runlog.h. */
#include "text/runlog.h"

#include "base/str.h"
#include "query/event_words.h"
#include "text/json_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

/* ---- for programs ---- */

/* As datetime.isoformat(timespec="milliseconds") has it in UTC. */
static const char *iso_time(char out[static UNITS_SIZE], int64_t wall_ns)
{
	size_t n = strlen(format_iso8601(out, wall_ns));

	snprintf(out + n - 1, UNITS_SIZE - n + 1, "+00:00"); /* in place of the Z */
	return out;
}

/* With milliseconds, as pytyche has them. */
static double seconds_of(int64_t ns)
{
	return (double)(ns / NSEC_PER_MSEC + (ns % NSEC_PER_MSEC >= NSEC_PER_MSEC / 2)) / 1e3;
}

/* A number of JSON: -12, 0.31, 1e-5. Not 007, +1, .5 or 1e999, which stay texts. */

static bool is_json_number(const char *text, size_t len)
{
	char copy[32], *p = copy;
	size_t digits;

	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = 0;
	p += *p == '-';
	digits = strspn(p, "0123456789");
	if (!digits || (*p == '0' && digits > 1))
		return false;
	p += digits;
	if (*p == '.') {
		digits = strspn(++p, "0123456789");
		if (!digits)
			return false;
		p += digits;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '-' || *p == '+';
		digits = strspn(p, "0123456789");
		if (!digits)
			return false;
		p += digits;
	}
	return p == copy + len && isfinite(strtod(copy, NULL));
}

static void add_value(struct json *j, const char *key, const char *value, size_t len)
{
	size_t blanks = 0; /* before a number they mean nothing: metrics are made of it, too */

	while (blanks < len && value[blanks] == ' ')
		blanks++;
	if (is_json_number(value + blanks, len - blanks))
		json_raw(j, key, value + blanks, len - blanks);
	else
		json_bytes(j, key, value, len);
}

static bool is_taken(const char *key)
{
	static const char *const own[] = {"ts", "type", "name", "seconds", "host", "unfinished"};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (!strcmp(key, own[i]))
			return true;
	return false;
}

/* The words of an entry that count: of a key that is told several times the last one. */
typedef void data_word(void *arg, const char *word, size_t key_len, size_t len);

static void each_word(const struct runlog_entry *e, data_word *take, void *arg)
{
	for (unsigned part = 0; part < ARRAY_SIZE(e->data); part++) {
		const char *data = e->data[part];
		size_t all = data ? e->data_len[part] : 0;

		for (size_t at = 0, n; at < all; at += n + 1) {
			n = strnlen(data + at, all - at);
			const char *sign = memchr(data + at, '=', n);
			size_t key_len = sign ? (size_t)(sign - data) - at : n, next = MIN(at + n + 1, all);
			bool again = sign &&
				(words_have(data + next, all - next, data + at, key_len) ||
					(!part && e->data[1] &&
						words_have(e->data[1], e->data_len[1], data + at, key_len)));

			if (!again)
				take(arg, data + at, key_len, n);
		}
	}
}

struct data_json {
	struct json *j;
	bool beside_own; /* keys of ours stand beside them */
};

static void add_word(void *arg, const char *word, size_t key_len, size_t len)
{
	const struct data_json *to = arg;
	int kept = (int)MIN(key_len, (size_t)200);
	char key[256];

	if (key_len == len)
		return;
	snprintf(key, sizeof(key), "%.*s", kept, word);
	if (to->beside_own && is_taken(key))
		snprintf(key, sizeof(key), "data.%.*s", kept, word);
	add_value(to->j, key, word + key_len + 1, len - key_len - 1);
}

static void add_data(struct json *j, const struct runlog_entry *e)
{
	each_word(e, add_word, &(struct data_json){j, e->is_phase});
}

/* Texts of others, whatever they look like. */
static bool is_text_key(const char *key)
{
	return !strcmp(key, "name") || !strcmp(key, "where") || !strcmp(key, "what") ||
		!strcmp(key, "reason") || !strcmp(key, "expression");
}

static void add_pairs(struct json *j, const struct pairs *p)
{
	if (!p || !p->nr)
		return;
	json_object(j, "data");
	for (uint32_t i = 0; i < p->nr; i++) {
		if (is_text_key(p->pair[i].key))
			json_bytes(j, p->pair[i].key, p->pair[i].value, p->pair[i].len);
		else
			add_value(j, p->pair[i].key, p->pair[i].value, p->pair[i].len);
	}
	json_end_object(j);
}

static void add_group(struct json *j, const char *key, const struct meta *m, const char *prefix)
{
	size_t n = strlen(prefix);

	json_object(j, key);
	for (uint32_t i = 0; i < m->nr; i++) /* the flags that matter are in cpu_flags */
		if (!strncmp(m->item[i].key, prefix, n) && strncmp(m->item[i].key + n, "group.", 6) != 0 &&
			strcmp(m->item[i].key + n, "cpu_all_flags") != 0)
			add_value(j, m->item[i].key + n, m->item[i].value, m->item[i].len);
	json_end_object(j);
}

static void add_text_of(struct json *j, const char *key, const struct meta *m, const char *name)
{
	const struct meta_item *item = meta_find(m, name);

	if (item)
		json_bytes(j, key, item->value, item->len);
}

static void add_number_of(
	struct json *j, const char *key, const struct meta *m, const char *name, double scale)
{
	int64_t v;

	if (meta_num(m, name, &v))
		json_num(j, key, (double)v * scale);
}

static void add_start(struct json *j, const struct meta *m)
{
	const struct meta_item *command = meta_find(m, "command");

	json_object(j, "data");
	add_text_of(j, "tacho", m, "version");
	if (command)
		json_words(j, "command", command->value, command->len);
	add_text_of(j, "target", m, "target");
	add_text_of(j, "name", m, "name");
	add_text_of(j, "message", m, "message");
	add_text_of(j, "mode", m, "mode");
	add_text_of(j, "host", m, "host");
	add_text_of(j, "user", m, "user");
	add_text_of(j, "kernel", m, "kernel");
	add_number_of(j, "interval_s", m, "interval_ns", 1e-9);
	add_group(j, "hardware", m, "hw.");
	add_group(j, "limits", m, "limits.");
	json_end_object(j);
}

void resources_json(const struct resources *r, struct json *j, const char *key)
{
	json_object(j, key);
	for (unsigned i = 0; i < NR_RESOURCES; i++) {
		const char *name;
		double value;

		if (resources_number(r, i, &name, &value))
			json_num(j, name, value);
	}
	json_end_object(j);
}

static void add_end(struct json *j, const struct runlog *log)
{
	const struct meta *m = runlog_ending(log);
	int64_t status, end_ns;

	json_object(j, "data");
	add_text_of(j, "tacho", runlog_about(log), "version");
	add_text_of(j, "ended", m, "ended");
	if (meta_num(m, "exit_status", &status)) {
		if (WIFSIGNALED((int)status))
			json_int(j, "signal", WTERMSIG((int)status));
		else
			json_int(j, "exit", WEXITSTATUS((int)status));
	}
	if (meta_num(m, "end_ns", &end_ns))
		json_num(j, "seconds", seconds_of(end_ns));
	add_number_of(j, "ticks", m, "ticks", 1);
	add_number_of(j, "missed", m, "missed", 1);
	if (runlog_resources(log))
		resources_json(runlog_resources(log), j, "resources");
	json_end_object(j);
}

static void add_event(struct json *j, const struct runlog *log, const struct runlog_entry *e)
{
	if (e->of_job && !e->name_len)
		json_str(j, "event", "mark");
	else
		json_bytes(j, "event", e->name, e->name_len);
	if (e->of_job) {
		if (!e->data_len[0])
			return;
		json_object(j, "data");
		add_data(j, e);
		json_end_object(j);
	} else if (!strcmp(e->kind, "start")) {
		add_start(j, runlog_about(log));
	} else if (!strcmp(e->kind, "end")) {
		add_end(j, log);
	} else {
		add_pairs(j, e->pairs);
	}
}

void runlog_json(const struct runlog *log, const struct runlog_entry *e, const char *host, struct buf *out)
{
	char text[UNITS_SIZE];
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_str(&j, "ts", iso_time(text, runlog_wall(log, e->time_ns)));
	json_str(&j, "type", e->is_phase ? "phase" : "event");
	if (e->is_phase) {
		json_bytes(&j, "name", e->name, e->name_len);
		json_num(&j, "seconds", seconds_of(e->length_ns));
		if (e->unfinished)
			json_bool(&j, "unfinished", true);
		add_data(&j, e);
	} else {
		add_event(&j, log, e);
	}
	if (host)
		json_name(&j, "host", host);
	json_end_object(&j);
	buf_addch(out, '\n');
}

/* ---- for people ---- */

/* In a column of ten letters: what is left out says in words what it is. */
static const char *short_kind(const char *kind)
{
	return is_left_out(kind) ? "left out" : kind;
}

static const char *color_of(const struct runlog_entry *e)
{
	static const struct {
		const char *kind, *color;
	} row[] = {{"phase", "36"}, {"mark", "32"}, {"start", "1"}, {"end", "1"}, {"oom", "31"},
		{"left out", "31"}, {"lost", "31"}, {"gap", "31"}, {"signal", "31"}, {"throttled", "33"},
		{"missed", "33"}, {"stopped", "33"}, {"continued", "33"}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (!strcmp(row[i].kind, short_kind(e->kind)))
			return row[i].color;
	return NULL;
}

struct data_text {
	struct buf *out;
	enum letters letters;
	bool first;
};

static void say_word(void *arg, const char *word, size_t key_len, size_t len)
{
	struct data_text *to = arg;

	(void)key_len;
	buf_adds(to->out, to->first ? "" : "  ");
	add_text(to->out, word, len, to->letters);
	to->first = false;
}

static void say_data(struct buf *out, const struct runlog_entry *e, enum letters letters)
{
	bool first = !out->len || out->data[out->len - 1] == ' ';

	each_word(e, say_word, &(struct data_text){out, letters, first});
}

static void say_start(struct buf *out, const struct meta *m, enum letters letters)
{
	const struct meta_item *command = meta_find(m, "command");
	int64_t cpus, memory;

	if (command)
		add_command(out, command->value, command->len, letters);
	buf_adds(out, "  on ");
	add_text(out, meta_text(m, "host"), strlen(meta_text(m, "host")), letters);
	if (meta_num(m, "limits.cpus", &cpus))
		buf_addf(out, ", %lld CPU%s", (long long)cpus, cpus == 1 ? "" : "s");
	if (meta_num(m, "limits.memory_bytes", &memory))
		buf_addf(out, ", %s", format_bytes(SHOWN, (double)memory));
}

/* "user CPU 74.8 %, idle 0 %"; the names of pytyche are for programs. */
static void say_resources(struct buf *out, const struct resources *r)
{
	/* clang-format off */
	static const struct {
		const char *name, *before, *behind;
	} row[] = {
		{"cpu_usr_mean_pct", "user CPU ", " %"},
		{"cpu_idle_mean_pct", "idle ", " %"},
		{"gpu_util_mean_pct", "GPU use ", " %"},
		{"gpu_util_max_pct", "at most ", " %"},
		{"mem_util_mean_pct", "GPU memory use ", " %"},
		{"mem_util_max_pct", "at most ", " %"},
		{"peak_vram_mb", "peak GPU memory ", " MiB"},
		{"power_watts_mean", "GPU power ", " W"},
		{"power_watts_max", "at most ", " W"},
		{"jax_peak_bytes_mb", "peak memory of JAX ", " MiB"},
	};
	/* clang-format on */
	const char *name, *sign = "  ";
	double value;

	for (size_t k = 0; k < ARRAY_SIZE(row); k++)
		for (unsigned i = 0; i < NR_RESOURCES; i++)
			if (resources_number(r, i, &name, &value) && !strcmp(name, row[k].name)) {
				buf_addf(out, "%s%s%s%s", sign, row[k].before, format_exact(SHOWN, value),
					row[k].behind);
				sign = ", ";
			}
}

static void say_end(struct buf *out, const struct runlog *log)
{
	const struct meta *m = runlog_ending(log);
	int64_t status, end_ns;

	if (!meta_num(m, "exit_status", &status))
		buf_addf(out, "the recording ended");
	else if (WIFSIGNALED((int)status))
		buf_addf(out, "killed by %s", format_signal(SHOWN, WTERMSIG((int)status)));
	else
		buf_addf(out, "exit %d", WEXITSTATUS((int)status));
	if (meta_num(m, "end_ns", &end_ns))
		buf_addf(out, " after %s", format_duration(SHOWN, (double)end_ns / 1e9));
	if (runlog_resources(log))
		say_resources(out, runlog_resources(log));
}

static void say_pairs(struct buf *out, const struct pairs *p, enum letters letters)
{
	for (uint32_t i = 0; p && i < p->nr; i++) {
		buf_addf(out, "%s%s=", i ? "  " : "", p->pair[i].key);
		add_text(out, p->pair[i].value, p->pair[i].len, letters);
	}
}

static void say_kills(struct buf *out, const struct pairs *p, enum letters letters)
{
	const struct pair *where = pairs_find(p, "where");
	int64_t kills = 1;

	pairs_get_num(p, "kills", &kills);
	buf_addf(out, "out of memory: ");
	add_count(out, (double)kills, "process", "processes");
	buf_adds(out, kills == 1 ? " was killed in " : " were killed in ");
	if (where)
		add_text(out, where->value, where->len, letters);
}

static void say_event(
	struct buf *out, const struct runlog *log, const struct runlog_entry *e, enum letters letters)
{
	static const char *const plain[] = {"throttled", "missed", "continued", "lost"};

	if (!strcmp(e->kind, "start")) {
		say_start(out, runlog_about(log), letters);
		return;
	}
	if (!strcmp(e->kind, "end")) {
		say_end(out, log);
		return;
	}
	if (!strcmp(e->kind, "oom")) {
		say_kills(out, e->pairs, letters);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (!strcmp(e->kind, plain[i])) {
			say_pairs(out, e->pairs, letters);
			return;
		}
	event_words(out, e->kind, e->pairs);
}

static void say(struct buf *out, const struct runlog *log, const struct runlog_entry *e, enum letters letters)
{
	if (!e->of_job) {
		say_event(out, log, e, letters);
		return;
	}
	add_text(out, e->name, e->name_len, letters);
	if (e->is_phase)
		buf_addf(out, "  %s%s", format_duration(SHOWN, (double)e->length_ns / 1e9),
			e->unfinished ? " (not ended)" : "");
	say_data(out, e, letters);
}

static void add_clock(struct buf *out, int64_t wall_ns)
{
	int64_t s = wall_ns / NSEC_PER_SEC - (wall_ns % NSEC_PER_SEC < 0);
	time_t seconds = (time_t)s;
	struct tm tm = {0};
	char text[40];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	buf_addf(out, "%s.%03d", text, (int)((wall_ns - s * NSEC_PER_SEC) / NSEC_PER_MSEC));
}

void runlog_print(const struct runlog *log, const struct runlog_entry *e, const struct runlog_page *page,
	struct buf *out)
{
	enum letters letters = page->utf8 ? LETTERS_UTF8 : LETTERS_ASCII;
	const char *color = page->color ? color_of(e) : NULL, *host = meta_text(runlog_about(log), "host");
	struct buf kind;

	buf_addf(out, "%11.3fs  ", (double)e->time_ns / 1e9 + page->offset_s);
	add_clock(out, runlog_wall(log, e->time_ns));
	buf_adds(out, "  ");
	if (page->several) {
		add_text(out, host, strlen(host), letters);
		buf_adds(out, "  ");
	}
	buf_init(&kind, 4096);
	add_text(&kind, short_kind(e->kind), strlen(short_kind(e->kind)), letters);
	if (color)
		buf_addf(out, "\033[%sm", color);
	buf_addf(out, "%-10s", (char *)kind.data);
	if (color)
		buf_adds(out, "\033[0m");
	buf_release(&kind);
	buf_addch(out, ' ');
	say(out, log, e, letters);
	while (out->len && out->data[out->len - 1] == ' ')
		out->data[--out->len] = 0;
	buf_addch(out, '\n');
}
