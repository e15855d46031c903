/* Which file is for this machine, and what its events are here.
 *
 * The user's folder comes first, so that a file can be corrected or added without building anything; a wrong
 * file there is reported, not ignored. */
#include "perf/groups.h"

#include "base/str.h"
#include "base/text.h"
#include "node/microarch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX 65536
#define FILES_MAX 128
#define PATH_SIZE 512

/* What `cpu` lines may call this machine's processor. */
struct groups_wanted {
	struct cpu_identified is;
	char numbers[96]; /* "AuthenticAMD-26-96" */
};

/* Whether a `cpu` line of the text names the processor. */
static bool text_serves(const char *text, const struct groups_wanted *w)
{
	struct text rest = text_of(text);

	while (rest.len) {
		struct text line = text_cut(&rest, '\n'), word = text_word(&line);

		if (!text_is(word, "cpu"))
			continue;
		while ((word = text_word(&line)).len)
			if ((w->is.name && text_is(word, w->is.name)) || text_is(word, w->numbers))
				return true;
	}
	return false;
}

struct groups_listing {
	char name[FILES_MAX][64];
	unsigned nr;
};

static int add_file(void *arg, const char *name)
{
	struct groups_listing *l = arg;
	size_t len = strlen(name);
	unsigned i;

	if (len < 5 || len >= sizeof(l->name[0]) || strcmp(name + len - 4, ".txt") || l->nr == FILES_MAX)
		return 0;
	for (i = l->nr++; i && strcmp(name, l->name[i - 1]) < 0; i--)
		memcpy(l->name[i], l->name[i - 1], sizeof(l->name[i]));
	memcpy(l->name[i], name, len + 1);
	return 0;
}

/* Paths of an env begin at the root; one that does not is of our own working directory. */
static void folder_path(const char *folder, char *out, size_t size)
{
	const char *rest = folder + strspn(folder, "/");
	size_t len;

	snprintf(out, size, "%s%s", rest == folder ? "proc/self/cwd/" : "", *rest ? rest : ".");
	for (len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = 0;
}

static int parse_named(
	const char *text, const char *source, struct event_file *ret, char *err, size_t err_size)
{
	char why[200];
	unsigned line;
	int r = event_file_parse(text, strlen(text), ret, &line, why, sizeof(why));

	if (r < 0)
		snprintf(err, err_size, "%s, line %u: %s", source, line, why);
	else
		snprintf(ret->source, sizeof(ret->source), "%s", source);
	return r;
}

/* -ENOENT: no file of the folder is for this processor. */
static int find_in_folder(struct env *env, const char *folder, const struct groups_wanted *w,
	struct event_file *ret, char *err, size_t err_size)
{
	char base[PATH_SIZE], path[PATH_SIZE + 80];
	_cleanup_(freep) struct groups_listing *files = calloc(1, sizeof(*files));
	_cleanup_(freep) char *text = malloc(FILE_MAX);
	int r;

	if (!files || !text) {
		snprintf(err, err_size, "no memory");
		return -ENOMEM;
	}
	folder_path(folder, base, sizeof(base));
	r = env_list(env, base, add_file, files);
	if (r < 0) {
		snprintf(err, err_size, "the folder %s that TACHO_EVENTS names cannot be read: %s", folder,
			strerror(-r));
		return -EINVAL;
	}
	for (unsigned i = 0; i < files->nr; i++) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", base, files->name[i]);
		n = env_slurp(env, path, text, FILE_MAX);
		snprintf(path, sizeof(path), "%s/%s", folder, files->name[i]);
		/* It cannot be read in full: not known whether it is for this processor. */
		if (n < 0 || strlen(text) != (size_t)n) {
			snprintf(err, err_size, "%s cannot be read: %s", path,
				n < 0 ? strerror((int)-n) : "it is no text");
			return -EINVAL;
		}
		if (text_serves(text, w))
			return parse_named(text, path, ret, err, err_size);
	}
	return -ENOENT;
}

static int find_embedded(const struct groups_wanted *w, struct event_file *ret, char *err, size_t err_size)
{
	char source[120];

	for (size_t i = 0; embedded_events[i].name; i++) {
		const char *file = embedded_events[i].name, *cpu = w->is.name ? w->is.name : w->numbers;

		if (!text_serves(embedded_events[i].text, w))
			continue;
		/* A file of the user must name the processor; its own name may be any. */
		if (strcmp(file, cpu))
			snprintf(source, sizeof(source), "%s (built in, serves %s)", file, cpu);
		else
			snprintf(source, sizeof(source), "%s (built in)", file);
		return parse_named(embedded_events[i].text, source, ret, err, err_size);
	}
	return -ENOENT;
}

int event_file_find(struct env *env, struct event_file *ret, char *err, size_t err_size)
{
	const char *folder = env_getenv(env, "TACHO_EVENTS");
	struct groups_wanted w = {0};
	int r = cpu_identify(env, &w.is);

	*ret = (struct event_file){0};
	if (r < 0) {
		snprintf(err, err_size, "the processor is not known: proc/cpuinfo cannot be read (%s)",
			strerror(-r));
		return -ENOENT;
	}
	snprintf(w.numbers, sizeof(w.numbers), "%s-%lld-%lld", w.is.cpu.vendor, (long long)w.is.cpu.family,
		(long long)w.is.cpu.model);
	r = -ENOENT;
	if (folder && *folder)
		r = find_in_folder(env, folder, &w, ret, err, err_size);
	if (r == -ENOENT)
		r = find_embedded(&w, ret, err, err_size);
	if (r == -ENOENT)
		snprintf(err, err_size,
			"no event file for %s family %lld model %lld%s%s%s: generic events only; write "
			"%s.txt into a folder and name that in TACHO_EVENTS (see docs/counters.md)",
			*w.is.cpu.vendor ? w.is.cpu.vendor : "this processor,", (long long)w.is.cpu.family,
			(long long)w.is.cpu.model, w.is.name ? " (" : "", w.is.name ? w.is.name : "",
			w.is.name ? ")" : "", w.is.name ? w.is.name : w.numbers);
	return r;
}

int event_file_unknown(struct event_file *ret)
{
	static const struct groups_wanted unknown = {.is = {.name = "unknown"}};
	char err[400];

	return find_embedded(&unknown, ret, err, sizeof(err));
}

const struct event_group *event_group_find(const struct event_file *f, const char *name)
{
	for (unsigned i = 0; i < f->nr_groups; i++)
		if (!strcasecmp(f->group[i].name, name))
			return &f->group[i];
	return NULL;
}

/* All parts of one alternative, or none. */
static int resolve_sum(struct env *env, const struct group_event *e, struct text codes,
	struct perf_event *ret, size_t max, char *err, size_t err_size)
{
	size_t nr = 0;

	while (codes.len) {
		struct text code = text_strip(text_cut(&codes, '+'));
		int n;

		if (nr == max)
			break;
		if (e->of_package)
			n = perf_event_boxes(env, code.p, code.len, ret + nr, max - nr, err, err_size);
		else
			n = perf_event_parse(env, code.p, code.len, ret + nr, err, err_size) < 0 ? -EINVAL
												 : 1;
		if (n <= 0)
			return -EINVAL;
		nr += (size_t)n;
	}
	for (size_t i = 0; i < nr; i++)
		snprintf(ret[i].name, sizeof(ret[i].name), "%s", e->name);
	return (int)nr;
}

int group_event_resolve(struct env *env, const struct group_event *e, struct perf_event *ret, size_t max,
	char *err, size_t err_size)
{
	struct text rest = text_of(e->code);
	int r = -EINVAL;

	/* The error of the first alternative is reported; the others are for other kernels. */
	for (bool first = true; rest.len && r < 0; first = false) {
		char why[256] = "";

		r = resolve_sum(env, e, text_strip(text_cut(&rest, '|')), ret, max, why, sizeof(why));
		if (r < 0 && first)
			snprintf(err, err_size, "%s", why);
	}
	return r;
}
