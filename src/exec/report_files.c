/* What stands beside the documents of a report: pictures, numbers, what the machines are. */
#include "exec/report.h"

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "cmd/signals.h"
#include "draw/draw.h"
#include "exec/paths.h"
#include "text/processes.h"
#include "text/series.h"
#include "text/stats.h"
#include "text/summary.h"
#include "text/words.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)1 << 30)

/* ---- pictures ---- */

static int write_picture(struct report *r, const struct chart *f, enum draw_form form, const char *suffix)
{
	const struct draw_style style = {.dark = r->args->dark};
	_cleanup_(freep) char *path = path_in(r->places.plots, f->id, suffix);
	struct buf out;
	int drawn, status;

	buf_init(&out, FILE_MAX);
	drawn = draw_picture(f, form, &style, &out);
	if (drawn < 0) {
		error("cannot draw %s: %s", path, strerror(-drawn));
		status = EXIT_TROUBLE;
	} else {
		status = outputs_add(&r->out, path, &out);
	}
	buf_release(&out);
	return status;
}

int report_pictures(struct report *r)
{
	int status = outputs_directory(&r->out, r->places.plots);

	for (size_t i = 0; status == EXIT_OK && !signals_noted() && i < r->charts->nr; i++) {
		const struct chart *f = &r->charts->item[i];

		progress_tell(r->progress, "drawing", (double)i / (double)r->charts->nr);
		if (r->places.formats & FORMAT_PNG)
			status = write_picture(r, f, DRAW_PNG, ".png");
		if (status == EXIT_OK && r->places.formats & FORMAT_SVG)
			status = write_picture(r, f, DRAW_SVG, ".svg");
	}
	progress_clear();
	return status == EXIT_OK ? say_path(r, r->places.plots) : status;
}

/* ---- numbers ---- */

#define SERIES_FILES 32

/* A file of series: those of the panels that share it. */
struct report_files_wanted {
	const char *metric[SERIES_MAX];
	size_t nr;
	bool rate, per_instance;
	char name[40];
};

static void want(struct report_files_wanted *w, const char *metric)
{
	for (size_t i = 0; i < w->nr; i++)
		if (!strcmp(w->metric[i], metric))
			return;
	if (w->nr < SERIES_MAX)
		w->metric[w->nr++] = metric;
}

static bool is_per_instance(enum panel_shape shape)
{
	return shape == PANEL_INSTANCES || shape == PANEL_HEAT;
}

static bool is_whole(enum panel_shape shape)
{
	return shape == PANEL_LINES || shape == PANEL_STACKED;
}

/* Curves of single processes are left out: they would be larger than the recording, and `tacho show --series`
 * gives those that are wanted. */
static void gather(const struct report *r, const struct analysis_panel *p, struct report_files_wanted *file,
	size_t *nr, size_t max)
{
	for (size_t i = 0; i < PANEL_METRICS && p->row->metric[i]; i++) {
		const char *metric = p->row->metric[i];
		struct report_files_wanted own = {
			.rate = p->row->rate, .per_instance = is_per_instance(p->row->shape)};
		size_t at = 0;

		if (p->query[i] < 0 || !r->analysis->curves->column[p->query[i]].known)
			continue;
		if (own.per_instance)
			snprintf(own.name, sizeof(own.name), "%.*s%s", (int)strcspn(metric, "."), metric,
				own.rate ? "-rates" : "");
		else
			snprintf(own.name, sizeof(own.name), own.rate ? "rates" : "run");
		while (at < *nr && strcmp(file[at].name, own.name) != 0)
			at++;
		if (at == max)
			continue;
		if (at == *nr)
			file[(*nr)++] = own;
		want(&file[at], metric);
	}
}

/* Leaves out what some recording does not have. */
static int keep_known(const struct run *run, struct report_files_wanted *file, size_t nr, struct buf *reterr)
{
	const char *metric[SERIES_FILES * SERIES_MAX] = {0};
	bool known[ARRAY_SIZE(metric)];
	size_t all = 0, at = 0, kept;
	int r;

	for (size_t i = 0; i < nr; i++)
		for (size_t k = 0; k < file[i].nr; k++)
			metric[all++] = file[i].metric[k];
	r = series_known(run, metric, all, known, reterr);
	for (size_t i = 0; r >= 0 && i < nr; i++, file[i - 1].nr = kept) {
		kept = 0;
		for (size_t k = 0; k < file[i].nr; k++)
			if (known[at++])
				file[i].metric[kept++] = file[i].metric[k];
	}
	return r;
}

static int take_piece(void *arg, const struct buf *piece)
{
	return output_add(arg, piece);
}

static int write_text(struct report *r, const char *directory, const char *name, struct buf *text)
{
	_cleanup_(freep) char *path = path_in(directory, name, "");
	int status = outputs_add(&r->out, path, text);

	buf_reset(text);
	return status;
}

static int write_numbers(struct report *r, const char *directory)
{
	const struct stats_page page = {.style.form = FORM_CSV, .levels = (1u << NR_STATS_LEVELS) - 1};
	struct buf out;
	int status;

	buf_init(&out, FILE_MAX);
	summary_json(r->analysis->summary, &out);
	status = write_text(r, directory, "summary.json", &out);
	if (status == EXIT_OK) {
		stats_write(r->analysis->stats, r->analysis->processes, &page, &out);
		status = write_text(r, directory, "statistics.csv", &out);
	}
	if (status == EXIT_OK) {
		processes_write(r->analysis->processes, 0, &page.style, &out);
		status = write_text(r, directory, "processes.csv", &out);
	}
	buf_release(&out);
	return status;
}

/* Files of which one could not be made are all dropped. */
static int write_series(struct report *r, const struct report_files_wanted *file, size_t nr,
	const char *directory, struct buf *reterr)
{
	struct series_wanted wanted[SERIES_FILES] = {0};
	struct output output[SERIES_FILES];
	int status = EXIT_OK, poured = 0;
	size_t opened = 0, asked = 0;

	for (size_t i = 0; status == EXIT_OK && i < nr; i++) {
		_cleanup_(freep) char *path = path_in(directory, file[i].name, ".csv");

		if (!file[i].nr)
			continue;
		status = output_open(&r->out, &output[opened], path);
		if (status != EXIT_OK)
			break;
		wanted[asked++] = (struct series_wanted){.query = {.metric = file[i].metric,
								 .nr = file[i].nr,
								 .rate = file[i].rate,
								 .per_instance = file[i].per_instance},
			.page = {.form = FORM_CSV, .per_instance = file[i].per_instance, .utf8 = true},
			.taker = {.take = take_piece, .arg = &output[opened++]}};
	}
	if (status == EXIT_OK)
		poured = series_pour_together(r->run, wanted, asked, r->progress, reterr);
	for (size_t i = 0; i < opened; i++) {
		if (status == EXIT_OK && !poured)
			status = output_close(&output[i]);
		else
			output_drop(&output[i]);
	}
	return status == EXIT_OK ? poured : status;
}

int report_metrics(struct report *r)
{
	static struct report_files_wanted file[SERIES_FILES];
	_cleanup_(freep) char *directory = path_in(r->places.directory, "metrics", "");
	int status = outputs_directory(&r->out, directory);
	struct buf err;
	size_t nr = 0;

	buf_init(&err, 8192);
	for (size_t i = 0; i < r->analysis->nr_panels; i++)
		if (is_whole(r->analysis->panel[i].row->shape) ||
			is_per_instance(r->analysis->panel[i].row->shape))
			gather(r, &r->analysis->panel[i], file, &nr, ARRAY_SIZE(file));
	if (status == EXIT_OK)
		status = keep_known(r->run, file, nr, &err);
	if (status == EXIT_OK)
		status = write_series(r, file, nr, directory, &err);
	progress_clear();
	if (status < 0) {
		error("cannot make %s: %s", directory, err.len ? (char *)err.data : strerror(-status));
		status = EXIT_TROUBLE;
	}
	buf_release(&err);
	if (status == EXIT_OK)
		status = write_numbers(r, directory);
	return status == EXIT_OK ? say_path(r, directory) : status;
}

/* ---- what the machines are ---- */

static void add_facts(struct buf *out, const char *title, const struct summary_fact *fact, size_t nr)
{
	buf_addf(out, "[%s]\n", title);
	for (size_t i = 0; i < nr; i++) {
		add_text(out, fact[i].name, strlen(fact[i].name), LETTERS_UTF8);
		buf_adds(out, " = ");
		add_text(out, fact[i].value, strlen(fact[i].value), LETTERS_UTF8);
		buf_addch(out, '\n');
	}
	buf_addch(out, '\n');
}

static void add_words(struct buf *out, const struct summary *s)
{
	buf_adds(out, "[recording]\n");
	for (size_t i = 0; i < NR_TEXTS; i++) {
		if (!s->text[i])
			continue;
		buf_addf(out, "%s%s%s = ", summary_text_row[i].group ? summary_text_row[i].group : "",
			summary_text_row[i].group ? "." : "", summary_text_row[i].name);
		add_text(out, s->text[i], strlen(s->text[i]), LETTERS_UTF8);
		buf_addch(out, '\n');
	}
	buf_addch(out, '\n');
}

int report_configs(struct report *r)
{
	_cleanup_(freep) char *directory = path_in(r->places.directory, "configs", "");
	const struct summary *whole = r->analysis->summary;
	size_t nr = whole->nr_nodes ? whole->nr_nodes : 1;
	int status = outputs_directory(&r->out, directory);
	struct buf out, name;

	buf_init(&out, FILE_MAX);
	buf_init(&name, 1 << 16);
	for (size_t i = 0; status == EXIT_OK && !signals_noted() && i < nr; i++) {
		const struct summary *s = whole->nr_nodes ? &whole->node[i] : whole;

		buf_reset(&name);
		if (nr > 1)
			buf_addf(&name, "%zu-", i + 1);
		add_file_name(&name, s->host && *s->host ? s->host : "node");
		buf_adds(&name, ".txt");
		add_words(&out, s);
		add_facts(&out, "hardware", s->hardware, s->nr_hardware);
		add_facts(&out, "environment", s->environment, s->nr_environment);
		status = write_text(r, directory, (char *)name.data, &out);
	}
	buf_release(&name);
	buf_release(&out);
	return status == EXIT_OK ? say_path(r, directory) : status;
}

/* ---- GitHub ---- */

/* All of it or nothing: what a failed write left is cut off again. */
static int append_whole(int fd, const struct buf *text, off_t before)
{
	size_t done = 0;

	while (done < text->len) {
		ssize_t n = write(fd, text->data + done, text->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;

			return ftruncate(fd, before) < 0 ? -errno : r;
		}
		done += (size_t)n;
	}
	return 0;
}

static int append_report(const struct report *r, int fd)
{
	size_t room;
	struct buf out;
	struct stat st;
	int result;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	room = GITHUB_MOST - (size_t)MIN(st.st_size, (off_t)GITHUB_MOST);
	buf_init(&out, GITHUB_MOST);
	if (st.st_size && room) /* its last line may have no end */
		buf_addch(&out, '\n');
	result = github_report(r->analysis, r->charts, room, &out);
	if (result >= 0)
		result = append_whole(fd, &out, st.st_size);
	buf_release(&out);
	return result;
}

int report_step(struct report *r)
{
	const char *path = r->places.step;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	int result = fd < 0 ? -errno : append_report(r, fd);

	if (fd >= 0 && close(fd) < 0 && result >= 0)
		result = -errno;
	if (result >= 0)
		return say_path(r, path);
	if (result == -ENOBUFS)
		error("%s has no room for the report: GitHub shows at most 1 MiB of a step", path);
	else
		output_trouble(path, -result);
	return EXIT_TROUBLE;
}
