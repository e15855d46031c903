/* Reads run.json: see run_about.h. Every key may be absent or of another kind than expected: then nothing is
 * known of it. Only what is no JSON at all is an error. */
#include "query/run_about.h"

#include "base/idmap.h"
#include "base/json_read.h"
#include "base/owned.h"
#include "base/str.h"
#include "base/whole_file.h"
#include "query/run.h"

#include <stdio.h>
#include <string.h>

#define FILE_MOST ((size_t)16 << 20)
#define NODES_MOST 200000
#define LABELS_MOST 1000
#define NAME_MOST 4096

static const char *const text_key[NR_ABOUT_TEXTS] = {
	"job", "scheduler", "array_job", "array_task", "name", "user", "launcher"};

struct about_reading {
	struct run_about *a;
	struct idmap seen; /* hashes of nodes */
	bool is_run;
	int64_t version;
};

static bool is_name(enum json_leaf leaf, const char *text, size_t len)
{
	return leaf == LEAF_TEXT && len && len <= NAME_MOST && !memchr(text, 0, len);
}

static int replace_text(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

/* ---- lists ---- */

/* True also for one in many billions that is new: it is then not missed when it is missing. */
static bool is_seen(struct about_reading *r, const char *node)
{
	uint64_t hash = hash_bytes(node, strlen(node));

	if (idmap_get(&r->seen, hash) != IDMAP_NONE)
		return true;
	return idmap_put(&r->seen, hash, 0) < 0;
}

static int take_node(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct about_reading *r = arg;

	if (strchr(path, '.') || !is_name(leaf, text, len) || r->a->nr_nodes == NODES_MOST ||
		is_seen(r, text))
		return 0;
	return texts_take(&r->a->node, &r->a->nr_nodes, strdup(text));
}

static int take_word(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct buf *command = arg;

	if (strchr(path, '.') || leaf != LEAF_TEXT || memchr(text, 0, len))
		return 0;
	if (command->len || strcmp(path, "0"))
		buf_addch(command, 0);
	buf_add(command, text, len);
	return 0;
}

static int take_command(struct run_about *a, const char *text, size_t len)
{
	struct buf command;
	int r;

	buf_init(&command, len + 1);
	r = json_read_list(text, len, take_word, &command);
	if (r >= 0 && command.len) {
		free(a->command);
		a->command = malloc(command.len + 1);
		r = a->command ? 0 : -ENOMEM;
	}
	if (r >= 0 && command.len) {
		memcpy(a->command, command.data, command.len + 1);
		a->command_len = command.len;
	}
	buf_release(&command);
	return r;
}

struct missing_reading {
	struct run_about *a;
	size_t item; /* the number of the last, and 1 */
};

static int take_missing(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct missing_reading *r = arg;
	const char *key = strchr(path, '.');
	size_t item = strtoul(path, NULL, 10) + 1;
	struct about_missing *m;

	if (!key || !is_name(leaf, text, len) || r->a->nr_missing == NODES_MOST)
		return 0;
	if (item != r->item) {
		m = ARRAY_ADD(r->a->missing, r->a->nr_missing);
		if (!m || !(m->node = strdup("")) || !(m->why = strdup("")))
			return -ENOMEM;
		r->item = item;
	}
	m = &r->a->missing[r->a->nr_missing - 1];
	if (!strcmp(key, ".node"))
		return replace_text(&m->node, text);
	return !strcmp(key, ".why") ? replace_text(&m->why, text) : 0;
}

static int take_list(struct about_reading *r, const char *path, const char *text, size_t len)
{
	struct missing_reading missing = {.a = r->a};

	if (!strcmp(path, "nodes"))
		return json_read_list(text, len, take_node, r);
	if (!strcmp(path, "command"))
		return take_command(r->a, text, len);
	return strcmp(path, "missing") ? 0 : json_read_list(text, len, take_missing, &missing);
}

/* ---- the rest ---- */

static int take_label(struct run_about *a, const char *key, const char *text, size_t len)
{
	struct about_label *l;

	if (a->nr_labels == LABELS_MOST || !is_name(LEAF_TEXT, text, len))
		return 0;
	l = ARRAY_ADD(a->label, a->nr_labels);
	if (!l)
		return -ENOMEM;
	l->key = strdup(key);
	l->value = strdup(text);
	return l->key && l->value ? 0 : -ENOMEM;
}

static void take_number(struct about_reading *r, const char *path, const char *text, size_t len)
{
	const struct {
		const char *name;
		int64_t *to;
		int64_t least;
	} number[] = {{"start_wall_ns", &r->a->start_ns, 1}, {"end_wall_ns", &r->a->end_ns, 1},
		{"exit_status", &r->a->exit_status, 0}, {"version", &r->version, 0}};
	int64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(number); i++)
		if (!strcmp(path, number[i].name) && parse_i64n(text, len, &value) &&
			value >= number[i].least)
			*number[i].to = value;
}

static int take_leaf(void *arg, const char *path, enum json_leaf leaf, const char *text, size_t len)
{
	struct about_reading *r = arg;

	if (leaf == LEAF_LIST)
		return take_list(r, path, text, len);
	if (leaf == LEAF_NUMBER)
		take_number(r, path, text, len);
	if (leaf != LEAF_TEXT)
		return 0;
	if (!strcmp(path, "format"))
		r->is_run = !strcmp(text, "tacho-run");
	if (str_starts(path, "labels."))
		return take_label(r->a, path + strlen("labels."), text, len);
	for (unsigned i = 0; i < NR_ABOUT_TEXTS; i++)
		if (!strcmp(path, text_key[i]) && is_name(leaf, text, len))
			return replace_text(&r->a->text[i], text);
	return 0;
}

static struct run_about *about_new(void)
{
	struct run_about *a = calloc(1, sizeof(*a));
	bool whole = a;

	for (unsigned i = 0; whole && i < NR_ABOUT_TEXTS; i++)
		whole = (a->text[i] = strdup(""));
	if (whole)
		a->exit_status = -1;
	return whole ? a : about_free(a);
}

static int about_parse(const char *text, size_t len, struct run_about **ret)
{
	struct about_reading reading = {.a = about_new()};
	int r = reading.a ? json_read(text, len, take_leaf, &reading) : -ENOMEM;

	idmap_release(&reading.seen);
	if (r >= 0 && !reading.is_run)
		r = -EBADMSG;
	if (r >= 0 && reading.version != 1)
		r = -EPROTO;
	if (r < 0)
		about_free(reading.a);
	else
		*ret = reading.a;
	return r;
}

int about_read(const char *directory, struct run_about **ret, struct buf *why)
{
	_cleanup_(freep) char *path = NULL, *text = NULL;
	size_t len = 0;
	int r;

	if (asprintf(&path, "%s/" RUN_FILE, directory) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = file_read(path, FILE_MOST, &text, &len);
	if (r >= 0) {
		r = about_parse(text, len, ret);
		if (why && r == -EBADMSG)
			buf_adds(why, "is damaged, or not that of a run");
		else if (why && r == -EPROTO)
			buf_adds(why, "is of a version that this tacho does not know");
	} else if (why && r != -ENOENT && r != -ENOTDIR) {
		file_read_why(why, r);
	}
	return r == -ENOTDIR ? -ENOENT : r;
}

struct run_about *about_free(struct run_about *a)
{
	if (!a)
		return NULL;
	for (unsigned i = 0; i < NR_ABOUT_TEXTS; i++)
		free(a->text[i]);
	texts_free(a->node, a->nr_nodes);
	for (size_t i = 0; i < a->nr_missing; i++) {
		free(a->missing[i].node);
		free(a->missing[i].why);
	}
	for (size_t i = 0; i < a->nr_labels; i++) {
		free(a->label[i].key);
		free(a->label[i].value);
	}
	free(a->missing);
	free(a->label);
	free(a->command);
	free(a);
	return NULL;
}

/* ---- names ---- */

const char *about_job(const struct run_about *a, struct buf *memory)
{
	if (!*a->text[ABOUT_ARRAY_JOB] || !*a->text[ABOUT_ARRAY_TASK])
		return a->text[ABOUT_JOB];
	buf_reset(memory);
	buf_addf(memory, "%s_%s", a->text[ABOUT_ARRAY_JOB], a->text[ABOUT_ARRAY_TASK]);
	return (char *)memory->data;
}

bool about_is_job(const struct run_about *a, const char *job)
{
	struct buf memory;
	bool is;

	buf_init(&memory, 3 * NAME_MOST);
	is = !strcmp(a->text[ABOUT_JOB], job) || !strcmp(about_job(a, &memory), job);
	buf_release(&memory);
	return is;
}
