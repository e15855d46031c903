/* A finished recording says at its end what the list shows, so that a glance at its first and last blocks is
 * enough; others (unfinished, damaged, by older versions, of a command beside other targets) are read as
 * `tacho show` reads them. Either way the numbers are those of the summary.
 *
 * Filters that need no ticks are asked first: what they leave out is not read. */
#include "query/listing.h"

#include "base/owned.h"
#include "base/str.h"
#include "query/attendance.h"
#include "query/clock.h"
#include "query/run_directory.h"
#include "query/summary.h"
#include "store/glance.h"

#include <dirent.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEPTH_MOST 64

const char *const listed_state_name[NR_LISTED_STATES] = {
	"complete", "unfinished", "being written", "incomplete", "damaged", "unreadable"};
const char *const listed_order_names[NR_LISTED_ORDERS + 1] = {
	"date", "duration", "memory", "cores", "cpu", "processes", "exit", "name", "size", NULL};

struct listing_finding {
	const struct listing_query *q;
	struct listing *l;
	regex_t command;
	struct buf *reterr;
	char **path;
	size_t nr;
};

/* ---- which files ---- */

static char *path_join(const char *directory, const char *name)
{
	char *full = NULL;

	if (!strcmp(directory, "."))
		return strdup(name);
	return asprintf(&full, "%s%s%s", directory, directory[strlen(directory) - 1] == '/' ? "" : "/",
		       name) < 0
		? NULL
		: full;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return str_order((*a)->d_name, (*b)->d_name);
}

/* A directory below that cannot be opened is passed over, as one of another user. That of a run is one line.
 */
static int directory_add(struct listing_finding *f, const char *path, unsigned depth)
{
	struct dirent **entry = NULL;
	int n = scandir(path, &entry, NULL, by_name), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;
		char *full = r < 0 || *name == '.' ? NULL : path_join(path, name);
		struct stat st;

		if (r >= 0 && *name != '.' && !full)
			r = -ENOMEM;
		if (full && run_has_suffix(name) && stat(full, &st) == 0 && !S_ISDIR(st.st_mode))
			r = texts_take(&f->path, &f->nr, strdup(full));
		else if (full && stat(full, &st) == 0 && S_ISDIR(st.st_mode) && is_run_directory(full))
			r = texts_take(&f->path, &f->nr, strdup(full));
		else if (full && f->q->recursive && depth < DEPTH_MOST && lstat(full, &st) == 0 &&
			S_ISDIR(st.st_mode))
			r = directory_add(f, full, depth + 1);
		free(full);
		free(entry[i]);
	}
	free(entry);
	return depth && r != -ENOMEM ? 0 : r;
}

/* ---- one recording ---- */

struct pairs_taking {
	struct listed *l;
	struct node_clock *clock;
};

static int take_pairs(void *arg, enum store_type type, const struct pairs *pairs)
{
	struct pairs_taking *t = arg;
	struct meta *to = type == STORE_META ? &t->l->meta : &t->l->ending;

	return meta_merge(to, clock_pairs(t->clock, pairs)) == -ENOMEM ? -ENOMEM : 0;
}

static double ending_number(const struct listed *l, const char *key, double unit)
{
	int64_t v;

	return meta_num(&l->ending, key, &v) && v >= 0 ? (double)v / unit : NAN;
}

static void take_exit(struct listed *l)
{
	int64_t status = -1;

	l->exit_code = l->signal = -1;
	if (!meta_num(&l->ending, "exit_status", &status) || status < 0 || status > 0xffff)
		return;
	if (WIFEXITED((int)status))
		l->exit_code = WEXITSTATUS((int)status);
	else if (WIFSIGNALED((int)status))
		l->signal = WTERMSIG((int)status);
}

static void take_ending(struct listed *l)
{
	double pss = ending_number(l, "peak_pss_bytes", 1), rss = ending_number(l, "peak_rss_bytes", 1),
	       mark = ending_number(l, "max_process_bytes", 1);

	take_exit(l);
	l->wall_s = ending_number(l, "end_ns", 1e9);
	l->cpu_s = ending_number(l, "cpu_ns", 1e9);
	l->view = memory_answer(mark, rss, pss);
	l->memory_bytes = *l->view == 'h' ? mark : *l->view == 'p' ? pss : rss;
	l->processes = ending_number(l, "processes", 1);
}

static double known(const struct summary *s, enum figure_id id)
{
	return has_figure(s, id) ? s->figure[id].value : NAN;
}

/* As `tacho show` does it. */
static int take_ticks(struct listed *l)
{
	const char *path = l->path;
	struct summary *s = NULL;
	struct run *run = NULL;
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = run_open(&path, 1, &run, &err);
	if (r >= 0)
		r = summary_read(run, &s, &err);
	buf_release(&err);
	run_close(run);
	if (r < 0)
		return r;
	l->read = true;
	l->wall_s = known(s, FIG_WALL);
	l->cpu_s = known(s, FIG_CPU);
	l->memory_bytes = known(s, FIG_MEMORY);
	l->view = summary_memory_view(s);
	l->processes = known(s, FIG_SEEN);
	if (s->lost_bytes > 0)
		l->state = LISTED_DAMAGED;
	summary_free(s);
	return 0;
}

static bool is_cut(const struct meta *ending)
{
	return meta_find(ending, "write_error") || meta_find(ending, "gap_ticks");
}

/* Its end mark has the numbers of the whole job. */
static bool has_ending(const struct listed *l)
{
	return l->state == LISTED_COMPLETE || l->state == LISTED_INCOMPLETE;
}

static int listed_glance(struct listed *l)
{
	struct pairs_taking taking = {.l = l};
	struct store_glance g;
	int r = clock_open(l->path, &taking.clock, NULL);

	if (r < 0)
		return r;
	r = store_glance(l->path, take_pairs, &taking, &g);
	clock_close(taking.clock);
	l->bytes = g.bytes;
	l->start_ns = g.modified_ns;
	take_ending(l);
	if (r < 0) {
		l->state = LISTED_UNREADABLE;
		l->error = r;
		return r == -ENOMEM ? r : 0;
	}
	meta_num(&l->meta, "start_wall_ns", &l->start_ns);
	l->state = g.damaged			   ? LISTED_DAMAGED
		: g.complete && is_cut(&l->ending) ? LISTED_INCOMPLETE
		: g.complete			   ? LISTED_COMPLETE
		: g.writing			   ? LISTED_WRITING
						   : LISTED_UNFINISHED;
	/* Of processes that we did not wait for. Where the last ticks are missing, what was written counts.
	 */
	if (l->state == LISTED_COMPLETE && isnan(l->cpu_s))
		l->cpu_s = ending_number(l, "cpu_seen_ns", 1e9);
	return 0;
}

static void listed_release(struct listed *l)
{
	meta_release(&l->meta);
	meta_release(&l->ending);
	free(l->path);
}

/* ---- runs of many nodes, and jobs ---- */

static double sum_known(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

static int64_t listed_end(const struct listed *l)
{
	return isnan(l->wall_s) ? l->start_ns : add_clamped(l->start_ns, round_i64(l->wall_s * 1e9));
}

/* One recording more in the line of all. How much memory they had together is not known without reading. */
static void listed_merge(struct listed *to, const struct listed *l)
{
	int64_t end = MAX(listed_end(to), listed_end(l)), start = MIN(to->start_ns, l->start_ns);
	bool known = !isnan(to->wall_s) || !isnan(l->wall_s);

	to->nodes++;
	to->bytes += l->bytes;
	to->start_ns = start;
	to->wall_s = known ? ((double)end - (double)start) / 1e9 : NAN;
	to->cpu_s = sum_known(to->cpu_s, l->cpu_s);
	to->processes = sum_known(to->processes, l->processes);
	to->memory_bytes = NAN;
	to->state = MAX(to->state, l->state);
	if (l->signal >= 0 || (l->exit_code > 0 && to->signal < 0)) {
		to->exit_code = l->exit_code;
		to->signal = l->signal;
	}
}

static int meta_add(struct meta *m, const char *key, const char *value, size_t len)
{
	struct pair pair = {key, value, len};

	return len ? MIN(meta_merge(m, &(struct pairs){.pair = &pair, .nr = 1, .cap = 1}), 0) : 0;
}

/* What its launcher says of the run, as recordings say it of themselves. */
static int take_about(struct listed *l, const struct run_about *a)
{
	static const struct {
		enum about_text text;
		const char *key;
	} row[] = {{ABOUT_JOB, "scheduler.job_id"}, {ABOUT_SCHEDULER, "scheduler.kind"}, {ABOUT_NAME, "name"},
		{ABOUT_USER, "user"}};
	struct buf key;
	int r = 0;

	buf_init(&key, 8192);
	for (size_t i = 0; i < ARRAY_SIZE(row) && r >= 0; i++)
		r = meta_add(&l->meta, row[i].key, a->text[row[i].text], strlen(a->text[row[i].text]));
	for (size_t i = 0; i < a->nr_labels && r >= 0; i++) {
		buf_reset(&key);
		buf_addf(&key, "tag.%s", a->label[i].key);
		r = meta_add(&l->meta, (char *)key.data, a->label[i].value, strlen(a->label[i].value));
	}
	if (r >= 0 && a->command)
		r = meta_add(&l->meta, "command", a->command, a->command_len);
	buf_release(&key);
	l->nodes_expected = a->nr_nodes;
	if (a->start_ns && a->end_ns > a->start_ns)
		l->wall_s = ((double)a->end_ns - (double)a->start_ns) / 1e9;
	l->start_ns = a->start_ns ? a->start_ns : l->start_ns;
	if (a->exit_status >= 0 && a->exit_status < 256)
		l->exit_code = (int)a->exit_status;
	if (a->end_ns)
		l->state = LISTED_COMPLETE;
	return r == -ENOMEM ? r : 0;
}

static int note_absent(struct listing_finding *f, const char *path, const struct attendance *a)
{
	struct buf words;
	int r = 0;

	for (enum absence i = 0; i < NR_ABSENCES && r >= 0; i++) {
		buf_init(&words, 1 << 16);
		buf_addf(&words, "%s: ", path);
		if (attendance_words(a, i, &words))
			r = texts_take(&f->l->note, &f->l->nr_notes, strdup((char *)words.data));
		buf_release(&words);
	}
	return r;
}

static int take_nodes(struct listed *l, struct listed *node, char *const *name, size_t nr)
{
	_cleanup_(freep) char *nodes = run_directory_nodes(l->path);
	int r = nodes ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		node[i] = (struct listed){.path = path_join(nodes, name[i]), .view = "rss"};
		r = node[i].path ? listed_glance(&node[i]) : -ENOMEM;
		if (r < 0 || node[i].state == LISTED_UNREADABLE)
			continue;
		if (l->nodes) {
			listed_merge(l, &node[i]);
			continue;
		}
		*l = (struct listed){.path = l->path,
			.nodes = 1,
			.state = node[i].state,
			.bytes = node[i].bytes,
			.start_ns = node[i].start_ns,
			.wall_s = node[i].wall_s,
			.cpu_s = node[i].cpu_s,
			.memory_bytes = node[i].memory_bytes,
			.view = node[i].view,
			.processes = node[i].processes,
			.exit_code = node[i].exit_code,
			.signal = node[i].signal};
		r = meta_add(&l->meta, "scheduler.job_id", meta_text(&node[i].meta, "scheduler.job_id"),
			strlen(meta_text(&node[i].meta, "scheduler.job_id")));
	}
	return r;
}

static int judge_nodes(struct listing_finding *f, const char *path, const struct run_about *about,
	const struct listed *node, size_t nr)
{
	_cleanup_(freep) struct attendance_seen *seen = calloc(nr + 1, sizeof(*seen));
	struct attendance *a = NULL;
	size_t nr_seen = 0;
	int r = seen ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		if (node[i].path && node[i].state != LISTED_UNREADABLE)
			seen[nr_seen++] = (struct attendance_seen){.host = meta_text(&node[i].meta, "host"),
				.path = node[i].path,
				.start_ns = node[i].start_ns,
				.length_s = node[i].wall_s,
				.complete = has_ending(&node[i]),
				.writing = node[i].state == LISTED_WRITING};
	if (r >= 0)
		r = attendance_take(about, seen, nr_seen, &a);
	if (r >= 0)
		r = note_absent(f, path, a);
	attendance_free(a);
	return r;
}

/* By the beginnings and ends of its recordings, and run.json. */
static int listed_run(struct listing_finding *f, struct listed *l)
{
	_cleanup_(freep) char *nodes = run_directory_nodes(l->path);
	struct run_about *about = NULL;
	struct listed *node = NULL;
	char **name = NULL;
	size_t nr = 0;
	int r = nodes ? about_read(l->path, &about, NULL) : -ENOMEM;

	if (r != -ENOMEM) {
		r = recordings_in(nodes, &name, &nr);
		node = calloc(nr + 1, sizeof(*node));
		r = !node || r == -ENOMEM ? -ENOMEM : 0;
	}
	if (r >= 0)
		r = take_nodes(l, node, name, nr);
	if (r >= 0 && !l->nodes)
		*l = (struct listed){.path = l->path,
			.state = LISTED_UNFINISHED,
			.wall_s = NAN,
			.cpu_s = NAN,
			.memory_bytes = NAN,
			.view = "rss",
			.processes = NAN,
			.exit_code = -1,
			.signal = -1};
	l->run = true;
	if (r >= 0 && about)
		r = take_about(l, about);
	if (r >= 0)
		r = judge_nodes(f, l->path, about, node, nr);
	for (size_t i = 0; node && i < nr; i++)
		listed_release(&node[i]);
	free(node);
	texts_free(name, nr);
	about_free(about);
	return r;
}

static bool same_job(const struct listed *a, const struct listed *b)
{
	return !strcmp(meta_text(&a->meta, "scheduler.job_id"), meta_text(&b->meta, "scheduler.job_id")) &&
		!strcmp(meta_text(&a->meta, "scheduler.kind"), meta_text(&b->meta, "scheduler.kind"));
}

/* One line for the recordings of a job; for those of none, too. */
static void merge_jobs(struct listing *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nr; i++) {
		bool alone = l->item[i].run || l->item[i].state == LISTED_UNREADABLE;
		size_t k = alone ? kept : 0;

		while (k < kept &&
			(l->item[k].run || l->item[k].state == LISTED_UNREADABLE ||
				!same_job(&l->item[k], &l->item[i])))
			k++;
		if (k < kept) {
			listed_merge(&l->item[k], &l->item[i]);
			listed_release(&l->item[i]);
			continue;
		}
		l->item[kept] = l->item[i];
		l->item[kept].nodes += !alone;
		kept++;
	}
	l->nr = kept;
}

/* Its recordings, and what is to be said of the run. */
static int run_add(struct listing_finding *f, const char *path)
{
	_cleanup_(freep) char *nodes = run_directory_nodes(path);
	struct listed whole = {0};
	int r = nodes ? directory_add(f, nodes, 1) : -ENOMEM;

	if (r < 0 || !(whole.path = strdup(path)))
		return -ENOMEM;
	r = listed_run(f, &whole);
	listed_release(&whole);
	return r;
}

static int operand_add(struct listing_finding *f, const char *path)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		r = -errno;
	else if (S_ISDIR(st.st_mode) && !(f->q->whole && is_run_directory(path)))
		r = is_run_directory(path) ? run_add(f, path) : directory_add(f, path, 0);
	else
		r = texts_take(&f->path, &f->nr, strdup(path));
	if (r < 0)
		buf_addf(f->reterr, "%s: %s", path, strerror(-r));
	return r;
}

/* ---- filters ---- */

bool listed_label(
	const struct listed *l, size_t *at, const char **ret_key, const struct meta_item **ret_value)
{
	static const char *const first[] = {"name", "scheduler.job_id"};

	for (; *at < ARRAY_SIZE(first) + l->meta.nr; (*at)++) {
		const struct meta_item *item = *at < ARRAY_SIZE(first)
			? meta_find(&l->meta, first[*at])
			: &l->meta.item[*at - ARRAY_SIZE(first)];
		bool tag = *at >= ARRAY_SIZE(first);

		if (!item || (tag && !str_starts(item->key, "tag.")))
			continue;
		*ret_key = tag ? item->key + strlen("tag.") : *at ? "job" : "name";
		*ret_value = item;
		(*at)++;
		return true;
	}
	return false;
}

static bool holds(const char *text, size_t len, const char *wanted)
{
	return memmem(text, len, wanted, strlen(wanted)) != NULL;
}

static bool meta_holds(const struct listed *l, const char *key, const char *wanted)
{
	const struct meta_item *item = meta_find(&l->meta, key);

	return item && holds(item->value, item->len, wanted);
}

/* The words with blanks between them. */
static char *command_text(const struct listed *l)
{
	const struct meta_item *item = meta_find(&l->meta, "command");
	char *text = item ? malloc(item->len + 1) : strdup("");

	for (size_t i = 0; text && item && i < item->len; i++)
		text[i] = item->value[i] ? item->value[i] : ' ';
	if (text && item)
		text[item->len] = 0;
	return text;
}

static bool has_tag(const struct listed *l, const char *wanted)
{
	size_t len = strcspn(wanted, "="), at = 0;
	const struct meta_item *value;
	const char *key;

	while (listed_label(l, &at, &key, &value)) {
		if (strlen(key) != len || strncmp(key, wanted, len))
			continue;
		if (!wanted[len] ||
			(value->len == strlen(wanted + len + 1) &&
				!memcmp(value->value, wanted + len + 1, value->len)))
			return true;
	}
	return false;
}

static bool matches_text(const struct listed *l, const char *wanted, const char *command)
{
	const struct meta_item *value;
	const char *key;
	size_t at = 0;

	if (strstr(l->path, wanted) || strstr(command, wanted) || meta_holds(l, "host", wanted) ||
		meta_holds(l, "message", wanted) || meta_holds(l, "user", wanted))
		return true;
	while (listed_label(l, &at, &key, &value))
		if (strstr(key, wanted) || holds(value->value, value->len, wanted))
			return true;
	return false;
}

static bool is_failed(const struct listed *l)
{
	return l->exit_code > 0 || l->signal >= 0;
}

static bool is_of_job(const struct listed *l, const char *job)
{
	const char *slash = strrchr(l->path, '/');

	return !strcmp(meta_text(&l->meta, "scheduler.job_id"), job) ||
		(l->run && !strcmp(slash ? slash + 1 : l->path, job));
}

/* 1: it is wanted, 0: it is not. */
static int is_wanted(const struct listing_finding *f, const struct listed *l)
{
	const struct listing_query *q = f->q;
	bool wanted = true;
	char *command;

	if (l->state == LISTED_UNREADABLE)
		return 1;
	if ((q->failed && !is_failed(l)) || (q->since_ns && l->start_ns < q->since_ns) ||
		(q->until_ns && l->start_ns > q->until_ns) ||
		(q->user && strcmp(meta_text(&l->meta, "user"), q->user)) ||
		(q->host && strcmp(meta_text(&l->meta, "host"), q->host)) ||
		(q->job && !is_of_job(l, q->job)))
		return 0;
	for (size_t i = 0; i < q->nr_tags; i++)
		if (!has_tag(l, q->tag[i]))
			return 0;
	if (!q->command && !q->match)
		return 1;
	command = command_text(l);
	if (!command)
		return -ENOMEM;
	if (q->command)
		wanted = !regexec(&f->command, command, 0, NULL, 0);
	if (q->match)
		wanted = wanted && matches_text(l, q->match, command);
	free(command);
	return wanted;
}

/* ---- all of them ---- */

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int listed_fill(struct listing_finding *f, struct listed *l)
{
	bool run = is_directory(l->path);
	int r = run ? listed_run(f, l) : listed_glance(l);

	if (r < 0)
		return r;
	r = is_wanted(f, l);
	if (r <= 0 || l->state == LISTED_UNREADABLE)
		return r;
	if (!f->q->glance && !run &&
		(!has_ending(l) || isnan(l->memory_bytes) || isnan(l->cpu_s) || isnan(l->wall_s))) {
		r = take_ticks(l);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			l->state = LISTED_UNREADABLE;
			l->error = r;
		}
	}
	l->cores = l->wall_s > 0 ? l->cpu_s / l->wall_s : NAN;
	return 1;
}

static int listing_fill(struct listing_finding *f)
{
	f->l->item = calloc(MAX(f->nr, 1), sizeof(*f->l->item));
	if (!f->l->item)
		return -ENOMEM;
	for (size_t i = 0; i < f->nr; i++) {
		struct listed *l = &f->l->item[f->l->nr];
		int r;

		*l = (struct listed){.path = f->path[i], .cores = NAN, .view = "rss"};
		f->path[i] = NULL;
		r = listed_fill(f, l);
		if (r <= 0) {
			listed_release(l);
			f->l->left_out++;
		}
		if (r < 0)
			return r;
		f->l->nr += r > 0;
		progress_tell(f->q->progress, l->path ? "recordings" : "", (double)(i + 1) / (double)f->nr);
	}
	return 0;
}

int listing_read(const char *const *path, size_t nr, const struct listing_query *q, struct listing **ret,
	struct buf *reterr)
{
	struct listing_finding f = {.q = q, .reterr = reterr, .l = calloc(1, sizeof(struct listing))};
	int r = f.l ? 0 : -ENOMEM;
	bool compiled = r >= 0 && q->command;

	if (compiled && regcomp(&f.command, q->command, REG_EXTENDED | REG_NOSUB)) {
		buf_addf(reterr, "'%s' is no regular expression", q->command);
		compiled = false;
		r = -EINVAL;
	}
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = operand_add(&f, path[i]);
	if (r >= 0)
		r = listing_fill(&f);
	if (r >= 0 && q->by_job)
		merge_jobs(f.l);
	texts_free(f.path, f.nr);
	if (compiled)
		regfree(&f.command);
	if (r < 0) {
		listing_free(f.l);
		if (!reterr->len)
			buf_addf(reterr, "%s", strerror(-r));
		return r;
	}
	*ret = f.l;
	return 0;
}

struct listing *listing_free(struct listing *l)
{
	for (size_t i = 0; l && i < l->nr; i++)
		listed_release(&l->item[i]);
	if (l) {
		free(l->item);
		texts_free(l->note, l->nr_notes);
	}
	free(l);
	return NULL;
}

/* ---- order ---- */

struct listing_order {
	enum listed_order by;
	bool reverse;
};

static double order_value(const struct listed *l, enum listed_order by)
{
	switch (by) {
	case LISTED_BY_DURATION:
		return l->wall_s;
	case LISTED_BY_MEMORY:
		return l->memory_bytes;
	case LISTED_BY_CORES:
		return l->cores;
	case LISTED_BY_CPU:
		return l->cpu_s;
	case LISTED_BY_PROCESSES:
		return l->processes;
	case LISTED_BY_EXIT:
		return l->signal >= 0 ? 1000 + l->signal : l->exit_code >= 0 ? l->exit_code : NAN;
	case LISTED_BY_SIZE:
		return (double)l->bytes;
	default:
		return (double)l->start_ns;
	}
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct listed *x = a, *y = b;
	const struct listing_order *order = arg;
	double p = order_value(x, order->by), q = order_value(y, order->by);
	int c;

	if (order->by == LISTED_BY_NAME) {
		c = str_order(x->path, y->path);
		return order->reverse ? -c : c;
	}
	if (isnan(p) || isnan(q))
		return isnan(p) != isnan(q) ? isnan(p) - isnan(q) : str_order(x->path, y->path);
	c = (p < q) - (p > q);
	if (order->reverse)
		c = -c;
	return c ? c : str_order(x->path, y->path);
}

void listing_sort(struct listing *l, enum listed_order by, bool reverse)
{
	struct listing_order order = {.by = by, .reverse = reverse};

	if (l->nr)
		qsort_r(l->item, l->nr, sizeof(*l->item), compare, &order);
}
