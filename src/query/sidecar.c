/* The file of notes beside a recording: see sidecar.h. */
#include "query/sidecar.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "query/run.h"
#include "store/crc32c.h"
#include "store/glance.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NOTES_VERSION 1
#define NOTES_BEGIN "{\"tacho\":\"notes\"" /* as add_head() writes it */

const char *const note_kind_name[NR_NOTE_KINDS] = {"phase.begin", "phase.end", "mark"};

char *sidecar_path(const char *recording)
{
	size_t n = strlen(recording), suffix = strlen(RECORDING_SUFFIX);
	char *path = NULL;

	if (n > suffix && !strcmp(recording + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	return asprintf(&path, "%.*s%s", (int)n, recording, SIDECAR_SUFFIX) < 0 ? NULL : path;
}

/* ---- in memory ---- */

int sidecar_new(const struct meta *meta, struct sidecar **ret)
{
	struct sidecar *s = calloc(1, sizeof(*s));

	if (!s || !(s->host = strdup(meta_text(meta, "host")))) {
		free(s);
		return -ENOMEM;
	}
	meta_num(meta, "start_wall_ns", &s->start_wall_ns);
	meta_num(meta, "start_monotonic_ns", &s->start_monotonic_ns);
	*ret = s;
	return 0;
}

struct sidecar *sidecar_free(struct sidecar *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->nr; i++) {
		free(s->note[i].name);
		free(s->note[i].data);
	}
	free(s->note);
	free(s->host);
	free(s);
	return NULL;
}

static char *copy_bytes(const char *from, size_t len)
{
	char *to = malloc(len + 1);

	if (!to)
		return NULL;
	memcpy(to, from ? from : "", len);
	to[len] = 0;
	return to;
}

int sidecar_add(struct sidecar *s, const struct sidecar_note *note)
{
	struct sidecar_note *n;

	if (s->nr >= SIDECAR_NOTES_MOST)
		return -E2BIG;
	n = ARRAY_ADD(s->note, s->nr);
	if (!n)
		return -ENOMEM;
	*n = *note;
	n->name = copy_bytes(note->name, note->name_len);
	n->data = copy_bytes(note->data, note->data_len);
	return n->name && n->data ? 0 : -ENOMEM;
}

/* At one time: ends, then phases without length and marks, then beginnings. */
static int rank(const struct sidecar_note *n)
{
	return n->instant || n->kind == NOTE_MARK ? 1 : n->kind == NOTE_END ? 0 : 2;
}

static int by_time(const void *a, const void *b)
{
	const struct sidecar_note *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	if (x->phase != y->phase)
		return x->phase < y->phase ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

void sidecar_sort(struct sidecar *s)
{
	for (size_t i = 1; i < s->nr; i++) /* the two of a phase stand together, or it is longer */
		if (s->note[i - 1].phase == s->note[i].phase && s->note[i - 1].time_ns == s->note[i].time_ns)
			s->note[i - 1].instant = s->note[i].instant = true;
	if (s->nr)
		qsort(s->note, s->nr, sizeof(*s->note), by_time);
}

bool sidecar_is_of(const struct sidecar *s, const struct meta *meta, int64_t wall)
{
	int64_t monotonic = 0;

	meta_num(meta, "start_monotonic_ns", &monotonic);
	return wall == s->start_wall_ns && monotonic == s->start_monotonic_ns &&
		!strcmp(meta_text(meta, "host"), s->host);
}

/* ---- writing ---- */

static void add_note(struct buf *out, const struct sidecar_note *n)
{
	struct json j;

	json_init(&j, out, false);
	json_object(&j, NULL);
	json_int(&j, "time_ns", n->time_ns);
	json_str(&j, "kind", note_kind_name[n->kind]);
	json_text(&j, "name", n->name, n->name_len);
	json_object(&j, "data");
	for (size_t at = 0; at < n->data_len;) {
		size_t len = strnlen(n->data + at, n->data_len - at);
		const char *value = memchr(n->data + at, '=', len);
		char key[256];

		if (value) {
			snprintf(key, sizeof(key), "%.*s", (int)MIN(value - (n->data + at), 255),
				n->data + at);
			json_text(&j, key, value + 1, len - (size_t)(value + 1 - (n->data + at)));
		}
		at += len + 1;
	}
	json_end_object(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}

static void add_head(struct buf *out, const struct sidecar *s, const struct buf *rest)
{
	char sum[16];
	struct json j;

	snprintf(sum, sizeof(sum), "%08x", crc32c(rest->data, rest->len));
	json_init(&j, out, false);
	json_object(&j, NULL);
	json_str(&j, "tacho", "notes");
	json_int(&j, "version", NOTES_VERSION);
	json_text(&j, "host", s->host, strlen(s->host));
	json_int(&j, "start_wall_ns", s->start_wall_ns);
	json_int(&j, "start_monotonic_ns", s->start_monotonic_ns);
	json_uint(&j, "lines", s->nr);
	json_str(&j, "crc32c", sum);
	json_end_object(&j);
	buf_addch(out, '\n');
}

bool sidecar_is_foreign(const char *recording)
{
	_cleanup_(freep) char *path = sidecar_path(recording);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	char first[sizeof(NOTES_BEGIN)];
	struct stat st;
	ssize_t n = 0;
	bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	if (regular)
		n = read(fd, first, strlen(NOTES_BEGIN));
	if (fd >= 0)
		close(fd);
	return n > 0 && ((size_t)n < strlen(NOTES_BEGIN) || memcmp(first, NOTES_BEGIN, (size_t)n) != 0);
}

int sidecar_write(const char *recording, const struct sidecar *s)
{
	_cleanup_(freep) char *path = sidecar_path(recording);
	struct buf head, rest;
	int r = !path ? -ENOMEM : sidecar_is_foreign(recording) ? -EEXIST : 0;

	buf_init(&head, 8192);
	buf_init(&rest, SIDECAR_BYTES_MOST - 8192);
	for (size_t i = 0; i < s->nr; i++)
		add_note(&rest, &s->note[i]);
	add_head(&head, s, &rest);
	if (r >= 0 && (head.err || rest.err))
		r = head.err ? head.err : rest.err;
	if (r >= 0)
		r = file_replace(path, &head, &rest);
	buf_release(&head);
	buf_release(&rest);
	return r;
}

/* ---- reading ---- */

struct head_reading {
	struct sidecar *s;
	int64_t version, lines;
	bool is_notes, has_sum;
	uint32_t sum;
};

static int take_head(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct head_reading *h = arg;
	const struct {
		const char *name;
		int64_t *to;
	} number[] = {{"version", &h->version}, {"lines", &h->lines}, {"start_wall_ns", &h->s->start_wall_ns},
		{"start_monotonic_ns", &h->s->start_monotonic_ns}};

	for (size_t i = 0; i < ARRAY_SIZE(number); i++)
		if (leaf == LEAF_NUMBER && !strcmp(path, number[i].name))
			return parse_i64n(text, len, number[i].to) ? 0 : -EBADMSG;
	if (leaf != LEAF_TEXT)
		return 0;
	if (!strcmp(path, "tacho"))
		h->is_notes = !strcmp(text, "notes");
	if (!strcmp(path, "crc32c")) {
		char *end;

		h->sum = (uint32_t)strtoul(text, &end, 16);
		h->has_sum = len == 8 && !*end;
	}
	if (!strcmp(path, "host")) {
		free(h->s->host);
		h->s->host = strdup(text);
	}
	return h->s->host ? 0 : -ENOMEM;
}

struct note_reading {
	struct sidecar_note note;
	bool has_time, has_kind;
	struct buf name, data;
};

static int take_kind(struct note_reading *n, const char *text)
{
	for (unsigned i = 0; i < NR_NOTE_KINDS; i++)
		if (!strcmp(text, note_kind_name[i])) {
			n->note.kind = (enum note_kind)i;
			n->has_kind = true;
			return 0;
		}
	return -EBADMSG;
}

static int take_note(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct note_reading *n = arg;

	if (!strcmp(path, "time_ns") && leaf == LEAF_NUMBER) {
		n->has_time = parse_i64n(text, len, &n->note.time_ns) && n->note.time_ns >= 0;
		return n->has_time ? 0 : -EBADMSG;
	}
	if (leaf != LEAF_TEXT)
		return 0;
	if (!strcmp(path, "kind"))
		return take_kind(n, text);
	if (!strcmp(path, "name"))
		buf_add(&n->name, text, len);
	if (str_starts(path, "data.") && !memchr(text, 0, len)) {
		buf_addf(&n->data, "%s=", path + strlen("data."));
		buf_add(&n->data, text, len + 1); /* with its NUL */
	}
	return 0;
}

/* Of notes that were kept it is only known which two are one phase when it has no length. */
static uint32_t phase_of(const struct sidecar *s, const struct sidecar_note *n)
{
	const struct sidecar_note *before = s->nr ? &s->note[s->nr - 1] : NULL;
	bool one = before && n->kind == NOTE_END && before->kind == NOTE_BEGIN &&
		before->time_ns == n->time_ns && before->name_len == n->name_len &&
		!memcmp(before->name, n->name, n->name_len);

	return one ? before->phase : (uint32_t)s->nr + 1;
}

static int add_line(struct sidecar *s, const char *line, size_t len)
{
	struct note_reading n = {0};
	int r;

	buf_init(&n.name, len + 1);
	buf_init(&n.data, 2 * len + 1);
	r = json_read(line, len, take_note, &n);
	if (r >= 0 && (!n.has_time || !n.has_kind || n.name.err || n.data.err))
		r = -EBADMSG;
	if (r >= 0 && s->nr && n.note.time_ns < s->note[s->nr - 1].time_ns)
		r = -EBADMSG;
	n.note.name = (char *)n.name.data;
	n.note.name_len = n.name.len;
	n.note.data = (char *)n.data.data;
	n.note.data_len = n.data.len ? n.data.len - 1 : 0;
	n.note.phase = phase_of(s, &n.note);
	if (r >= 0)
		r = sidecar_add(s, &n.note);
	buf_release(&n.name);
	buf_release(&n.data);
	return r;
}

static int read_text(struct sidecar *s, const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len), *rest = end ? end + 1 : NULL;
	struct head_reading h = {.s = s, .version = -1, .lines = -1};
	size_t left;
	int r = end ? json_read(text, (size_t)(end - text), take_head, &h) : -EBADMSG;

	if (r < 0 || !h.is_notes || h.lines < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	if (h.version != NOTES_VERSION)
		return -EPROTO;
	left = len - (size_t)(rest - text);
	if (!h.has_sum || crc32c(rest, left) != h.sum)
		return -EBADMSG;
	while (left && r >= 0) {
		size_t n;

		end = memchr(rest, '\n', left);
		n = end ? (size_t)(end - rest) : left;
		r = end ? add_line(s, rest, n) : -EBADMSG;
		left -= MIN(n + 1, left);
		rest += n + 1;
	}
	return r < 0 ? r : (int64_t)s->nr == h.lines ? 0 : -EBADMSG;
}

static void add_why(struct buf *why, int r)
{
	if (r == -EBADMSG)
		buf_adds(why, "is damaged, or not made by tacho annotate");
	else if (r == -EPROTO)
		buf_adds(why, "is of a version that this tacho does not know");
	else
		file_read_why(why, r == -E2BIG ? -EFBIG : r);
}

int sidecar_read(const char *recording, struct sidecar **ret, struct buf *why)
{
	_cleanup_(freep) char *path = sidecar_path(recording), *text = NULL;
	struct sidecar *s = NULL;
	size_t len = 0;
	int r = path ? file_read(path, SIDECAR_BYTES_MOST, &text, &len) : -ENOMEM;

	*ret = NULL;
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r >= 0)
		r = sidecar_new(&(struct meta){0}, &s);
	if (r >= 0)
		r = read_text(s, text, len);
	if (r < 0) {
		sidecar_free(s);
		if (why)
			add_why(why, r);
		return r;
	}
	*ret = s;
	return 0;
}

struct meta_taking {
	struct meta *meta, *ending;
};

static int take_meta(void *arg, enum store_type type, const struct pairs *pairs)
{
	struct meta_taking *m = arg;
	struct meta *to = type == STORE_META ? m->meta : m->ending;

	return to && meta_merge(to, pairs) == -ENOMEM ? -ENOMEM : 0;
}

int sidecar_meta(const char *recording, struct meta *ret_meta, struct meta *ret_ending)
{
	struct meta_taking m = {ret_meta, ret_ending};
	struct store_glance glance;

	return store_glance(recording, take_meta, &m, &glance);
}

void sidecar_check(const char *recording, struct buf *why)
{
	struct sidecar *s = NULL;
	struct meta meta = {0};
	int64_t start = 0;

	if (sidecar_read(recording, &s, why) >= 0 && s && sidecar_meta(recording, &meta, NULL) >= 0) {
		meta_num(&meta, "start_wall_ns", &start);
		if (!sidecar_is_of(s, &meta, start))
			buf_adds(why, "belongs to another recording");
	}
	meta_release(&meta);
	sidecar_free(s);
}
