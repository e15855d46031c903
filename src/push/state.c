/* The file that remembers what was sent: see state.h. */
#include "push/state.h"

#include "base/json.h"
#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "push/sink.h"
#include "query/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_VERSION 1
#define STATE_MOST ((size_t)1 << 20)
#define ADDRESSES_MOST 100
#define POSITIONS_MOST 1000
#define TRIES_MOST 25 /* for a name that others take, too */
#define TRY_NS (20 * NSEC_PER_MSEC)
#define NUMBER_MOST \
	(INT64_MAX / 2) /* a file may say anything; what is counted on from there stays a number */

/* ---- in memory ---- */

static bool set_text(char **to, const char *from)
{
	char *copy = from ? strdup(from) : NULL;

	free(*to);
	*to = copy;
	return copy || !from;
}

int64_t push_position(const struct push_state *s, const char *table)
{
	for (size_t i = 0; i < s->nr_positions; i++)
		if (!strcmp(s->position[i].table, table))
			return s->position[i].time_ns;
	return INT64_MIN;
}

int push_position_set(struct push_state *s, const char *table, int64_t time_ns)
{
	struct push_position *p = NULL;

	for (size_t i = 0; i < s->nr_positions && !p; i++)
		if (!strcmp(s->position[i].table, table))
			p = &s->position[i];
	if (!p) {
		p = s->nr_positions < POSITIONS_MOST ? ARRAY_ADD(s->position, s->nr_positions) : NULL;
		if (!p || !set_text(&p->table, table)) {
			s->nr_positions -= p != NULL;
			return -ENOMEM;
		}
	}
	p->time_ns = time_ns;
	return 0;
}

const char *push_note(const struct push_state *s, const char *key)
{
	for (size_t i = 0; i < s->nr_notes; i++)
		if (!strcmp(s->note[i].key, key))
			return s->note[i].value;
	return NULL;
}

int push_note_set(struct push_state *s, const char *key, const char *value)
{
	struct push_note *n = NULL;

	for (size_t i = 0; i < s->nr_notes && !n; i++)
		if (!strcmp(s->note[i].key, key))
			n = &s->note[i];
	if (!n) {
		n = s->nr_notes < POSITIONS_MOST ? ARRAY_ADD(s->note, s->nr_notes) : NULL;
		if (!n || !set_text(&n->key, key)) {
			s->nr_notes -= n != NULL;
			return -ENOMEM;
		}
	}
	return set_text(&n->value, value) ? 0 : -ENOMEM;
}

void push_state_why(struct push_state *s, const char *why, int64_t now_ns)
{
	if (why && !s->why)
		s->why_ns = now_ns;
	set_text(&s->why, why);
}

void push_state_refused(struct push_state *s, const char *words)
{
	set_text(&s->refused, words);
}

static void state_clear(struct push_state *s)
{
	for (size_t i = 0; i < s->nr_positions; i++)
		free(s->position[i].table);
	for (size_t i = 0; i < s->nr_notes; i++) {
		free(s->note[i].key);
		free(s->note[i].value);
	}
	free(s->position);
	free(s->note);
	free(s->sink);
	free(s->address);
	free(s->host);
	free(s->where);
	free(s->why);
	free(s->refused);
	*s = (struct push_state){.path = s->path,
		.recording = s->recording,
		.lock = s->lock,
		.exists = s->exists,
		.elsewhere = s->elsewhere};
}

struct push_state *push_state_close(struct push_state *s)
{
	if (!s)
		return NULL;
	if (s->lock >= 0)
		close(s->lock);
	state_clear(s);
	free(s->path);
	free(s->recording);
	free(s);
	return NULL;
}

/* ---- its text ---- */

static const struct state_number {
	const char *key;
	size_t at;
} state_number[] = {
	{"start_ns", offsetof(struct push_state, start_ns)},
	{"points", offsetof(struct push_state, points)},
	{"dropped", offsetof(struct push_state, dropped)},
	{"requests", offsetof(struct push_state, requests)},
	{"bytes", offsetof(struct push_state, bytes)},
	{"sent_ns", offsetof(struct push_state, sent_ns)},
	{"why_ns", offsetof(struct push_state, why_ns)},
};

static const struct state_text {
	const char *key;
	size_t at;
} state_text[] = {
	{"sink", offsetof(struct push_state, sink)},
	{"address", offsetof(struct push_state, address)},
	{"host", offsetof(struct push_state, host)},
	{"where", offsetof(struct push_state, where)},
	{"why", offsetof(struct push_state, why)},
	{"refused", offsetof(struct push_state, refused)},
};

static void state_write(const struct push_state *s, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_str(&j, "tacho", "push");
	json_int(&j, "version", STATE_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(state_text); i++)
		json_name(&j, state_text[i].key, *(char *const *)((const char *)s + state_text[i].at));
	for (size_t i = 0; i < ARRAY_SIZE(state_number); i++)
		json_int(&j, state_number[i].key, *(const int64_t *)((const char *)s + state_number[i].at));
	json_bool(&j, "all", s->all);
	json_bool(&j, "done", s->done);
	json_object(&j, "sent");
	for (size_t i = 0; i < s->nr_positions; i++)
		json_int(&j, s->position[i].table, s->position[i].time_ns);
	json_end_object(&j);
	json_object(&j, "notes");
	for (size_t i = 0; i < s->nr_notes; i++)
		json_name(&j, s->note[i].key, s->note[i].value);
	json_end_object(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}

struct state_reading {
	struct push_state *s;
	bool ours;
	int64_t version;
};

static bool is_sane(int64_t number)
{
	return number >= -NUMBER_MOST && number <= NUMBER_MOST;
}

static int take_named(
	struct state_reading *r, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct push_state *s = r->s;
	int64_t number;

	if (leaf == LEAF_TEXT && memchr(text, 0, len))
		return 0;
	if (str_starts(path, "sent.") && leaf == LEAF_NUMBER && parse_i64n(text, len, &number) &&
		is_sane(number))
		return push_position_set(s, path + 5, number);
	if (str_starts(path, "notes.") && leaf == LEAF_TEXT)
		return push_note_set(s, path + 6, text);
	for (size_t i = 0; i < ARRAY_SIZE(state_number); i++)
		if (!strcmp(path, state_number[i].key) && leaf == LEAF_NUMBER &&
			parse_i64n(text, len, &number) && is_sane(number))
			*(int64_t *)((char *)s + state_number[i].at) = number;
	for (size_t i = 0; i < ARRAY_SIZE(state_text); i++)
		if (!strcmp(path, state_text[i].key) && leaf == LEAF_TEXT &&
			!set_text((char **)((char *)s + state_text[i].at), text))
			return -ENOMEM;
	return 0;
}

static int take_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct state_reading *r = arg;

	if (!strcmp(path, "tacho"))
		r->ours = leaf == LEAF_TEXT && !strcmp(text, "push");
	else if (!strcmp(path, "version"))
		parse_i64n(text, len, &r->version);
	else if (!strcmp(path, "all"))
		r->s->all = leaf == LEAF_TRUE;
	else if (!strcmp(path, "done"))
		r->s->done = leaf == LEAF_TRUE;
	else
		return take_named(r, path, leaf, text, len);
	return 0;
}

/* -ENOENT: there is none. -EBADMSG: a file of that name that is none, or damaged. */
static int state_read(struct push_state *s)
{
	struct state_reading reading = {.s = s};
	_cleanup_(freep) char *text = NULL;
	size_t len;
	int r = file_read(s->path, STATE_MOST, &text, &len);

	if (r < 0)
		return r;
	r = json_read(text, len, take_leaf, &reading);
	if (r == -ENOMEM)
		return r;
	s->exists = true;
	return r < 0 || !reading.ours || reading.version != STATE_VERSION || !s->sink || !s->address
		? -EBADMSG
		: 0;
}

/* ---- where it is ---- */

/* NAME.push-SINK, or the nth. */
static char *path_beside(const char *recording, const char *sink, unsigned nth)
{
	size_t n = strlen(recording), suffix = strlen(RECORDING_SUFFIX);
	char number[16] = "", *path;

	if (n > suffix && !strcmp(recording + n - suffix, RECORDING_SUFFIX))
		n -= suffix;
	if (nth > 1)
		snprintf(number, sizeof(number), "-%u", nth);
	return asprintf(&path, "%.*s.push-%s%s", (int)n, recording, sink, number) < 0 ? NULL : path;
}

/* $XDG_CACHE_HOME/tacho/push/HASH-NAME.push-SINK, by the path of the recording. */
static char *path_in_cache(const char *recording, const char *sink, unsigned nth)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	_cleanup_(freep) char *real = realpath(recording, NULL), *name = NULL;
	const char *full = real ? real : recording, *base = strrchr(full, '/');
	char *path;

	if (!cache || *cache != '/')
		cache = NULL;
	if (!cache && (!home || *home != '/'))
		return NULL;
	if (asprintf(&name, "%s%s/tacho/push/%016llx-%s", cache ? cache : home, cache ? "" : "/.cache",
		    (unsigned long long)hash_bytes(full, strlen(full)), base ? base + 1 : full) < 0) {
		name = NULL;
		return NULL;
	}
	path = path_beside(name, sink, nth);
	return path;
}

void push_make_directories(const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return;
	for (char *p = copy + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(copy, 0700);
		*p = '/';
	}
}

static char *path_of(const struct push_state *s, const char *sink, unsigned nth)
{
	return s->elsewhere ? path_in_cache(s->recording, sink, nth) : path_beside(s->recording, sink, nth);
}

/* In a directory where all may write, a state of another user may say anything: that all is sent, or to which
 * run. Where it is not to be believed, ours is elsewhere. */
static bool is_trusted(const struct push_state *s, const struct stat *state)
{
	struct stat recording;

	return state->st_uid == geteuid() ||
		(stat(s->recording, &recording) == 0 && recording.st_uid == state->st_uid);
}

/* The lock is on the file itself, and goes over to each new one before that gets the name. */
static int lock_file(struct push_state *s)
{
	int fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat locked, named;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return -EBUSY;
	}
	/* Replaced between the two: by another pusher, which lives. */
	if (fstat(fd, &locked) < 0 || stat(s->path, &named) < 0 || locked.st_ino != named.st_ino ||
		locked.st_dev != named.st_dev) {
		close(fd);
		return -EBUSY;
	}
	if (!s->elsewhere && !is_trusted(s, &locked)) {
		close(fd);
		return -EACCES;
	}
	s->lock = fd;
	return 0;
}

static bool is_of(const struct push_state *s, const struct meta *meta)
{
	int64_t start = 0;

	meta_num(meta, "start_wall_ns", &start);
	return s->host && !strcmp(s->host, meta_text(meta, "host")) && s->start_ns == start;
}

static int state_begin(struct push_state *s, const struct meta *meta, const char *sink, const char *address)
{
	state_clear(s);
	meta_num(meta, "start_wall_ns", &s->start_ns);
	return set_text(&s->sink, sink) && set_text(&s->address, address) &&
			set_text(&s->host, meta_text(meta, "host"))
		? 0
		: -ENOMEM;
}

/* Looks through the files of this sink for the address. 1: it was found; 0: `path` is the first free name, or
 * one of a former recording. */
static int find_address(struct push_state *s, const struct meta *meta, const char *sink, const char *address,
	struct buf *reterr)
{
	for (unsigned nth = 1; nth <= ADDRESSES_MOST; nth++) {
		int r;

		free(s->path);
		s->path = path_of(s, sink, nth);
		if (!s->path)
			return -ENOENT;
		state_clear(s);
		s->exists = false;
		r = state_read(s);
		if (r == -ENOENT || r == -ENOTDIR)
			return 0;
		if (r == -EBADMSG || r == -EINVAL || r == -EFBIG) {
			buf_addf(reterr,
				"%s is damaged, or not of tacho; remove it, and all of the recording is sent "
				"again",
				s->path);
			return -EBADMSG;
		}
		if (r < 0) {
			buf_addf(reterr, "%s: %s", s->path, strerror(-r));
			return r;
		}
		if (!is_of(s, meta))
			return 0;
		if (!strcmp(s->address, address))
			return 1;
	}
	buf_addf(reterr,
		"the recording was pushed to %d addresses already: remove some of its files .push-%s*",
		ADDRESSES_MOST, sink);
	return -E2BIG;
}

static int state_create(struct push_state *s, const struct meta *meta, const char *sink, const char *address)
{
	int r = state_begin(s, meta, sink, address);

	if (s->elsewhere)
		push_make_directories(s->path);
	return r < 0 ? r : push_state_save(s);
}

static int state_take(struct push_state *s, const struct meta *meta, const char *sink, const char *address,
	bool only_read, struct buf *reterr)
{
	int r = find_address(s, meta, sink, address, reterr);

	if (r < 0)
		return r;
	if (only_read)
		return r ? 0 : state_begin(s, meta, sink, address);
	if (s->exists) {
		int l = lock_file(s);

		if (l == -EBUSY)
			buf_addf(reterr, "another tacho push sends this recording to %s already", address);
		if (l < 0)
			return l;
	}
	return r ? 0 : state_create(s, meta, sink, address);
}

/* Pushers to several addresses begin together, and each looks for a name: the next look finds the others'. */
static int state_take_soon(struct push_state *s, const struct meta *meta, const char *sink,
	const char *address, bool only_read, struct buf *reterr)
{
	for (unsigned tries = 0;; tries++) {
		int r = state_take(s, meta, sink, address, only_read, reterr);

		if ((r != -EBUSY && r != -EEXIST) || tries >= TRIES_MOST)
			return r;
		buf_reset(reterr);
		nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
	}
}

int push_state_open(const char *recording, const struct meta *meta, const char *sink, const char *address,
	bool only_read, struct push_state **ret, struct buf *reterr)
{
	struct push_state *s = calloc(1, sizeof(*s));
	int r;

	if (!s || !(s->recording = strdup(recording))) {
		free(s);
		return -ENOMEM;
	}
	s->lock = -1;
	r = state_take_soon(s, meta, sink, address, only_read, reterr);
	if (r == -EACCES || r == -EROFS || r == -EPERM || r == -ENOSPC || r == -EDQUOT ||
		(only_read && r >= 0 && !s->exists)) {
		buf_reset(reterr);
		s->elsewhere = true;
		r = state_take_soon(s, meta, sink, address, only_read, reterr);
	}
	if (r < 0) {
		if (!reterr->len)
			buf_addf(reterr, "%s cannot be written: %s; a push must remember what it has sent",
				s->path ? s->path : "the file of states", strerror(-r));
		push_state_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* Gives the new file its name. A first one replaces none, since another pusher may have made one meanwhile:
 * -EEXIST. Some file systems cannot promise that. */
static int give_name(const struct push_state *s, const char *temporary)
{
	if (!s->exists) {
		if (renameat2(AT_FDCWD, temporary, AT_FDCWD, s->path, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
	}
	return rename(temporary, s->path) < 0 ? -errno : 0;
}

/* The new file is locked before it has the name, so that there is no moment without a lock. */
int push_state_save(struct push_state *s)
{
	_cleanup_(freep) char *temporary = NULL;
	struct buf text;
	int fd, r = 0;

	if (asprintf(&temporary, "%s.XXXXXX", s->path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	buf_init(&text, STATE_MOST);
	state_write(s, &text);
	fd = text.err ? -1 : mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		r = text.err ? text.err : -errno;
	errno = ENOSPC; /* of a write that is short */
	if (r >= 0 && write(fd, text.data, text.len) != (ssize_t)text.len)
		r = -errno;
	if (r >= 0)
		flock(fd, LOCK_EX | LOCK_NB);
	if (r >= 0)
		r = give_name(s, temporary);
	if (r < 0 && fd >= 0) {
		unlink(temporary);
		close(fd);
	}
	buf_release(&text);
	if (r < 0)
		return r;
	if (s->lock >= 0)
		close(s->lock);
	s->lock = fd;
	s->exists = true;
	return 0;
}

/* ---- to be looked at ---- */

static int add_state(const char *recording, const struct meta *meta, const char *sink, unsigned nth,
	bool elsewhere, struct push_state ***ret, size_t *ret_nr)
{
	struct push_state *s = calloc(1, sizeof(*s)), **more;
	int r = s && (s->recording = strdup(recording)) ? 0 : -ENOMEM;

	if (r >= 0) {
		s->lock = -1;
		s->elsewhere = elsewhere;
		s->path = path_of(s, sink, nth);
		r = s->path ? state_read(s) : -ENOENT;
	}
	if (r >= 0 && is_of(s, meta) && (more = ARRAY_ADD(*ret, *ret_nr))) {
		*more = s;
		return 1;
	}
	push_state_close(s);
	return r;
}

int push_states_of(const char *recording, const struct meta *meta, struct push_state ***ret, size_t *ret_nr)
{
	for (size_t i = 0; push_sinks[i]; i++)
		for (int elsewhere = 0; elsewhere < 2; elsewhere++)
			for (unsigned nth = 1; nth <= ADDRESSES_MOST; nth++) {
				int r = add_state(
					recording, meta, push_sinks[i]->name, nth, elsewhere, ret, ret_nr);

				if (r == -ENOMEM)
					return r;
				if (r < 0)
					break;
			}
	return 0;
}
