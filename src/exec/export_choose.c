/* What is wanted: the options of `tacho export` as formats, names and ranges. */
#include "exec/export.h"

#include "base/str.h"
#include "cmd/cmd.h"
#include "exec/paths.h"
#include "query/phases.h"
#include "query/summary.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* "a,b" and "a" "b" are the same. */
static size_t split_names(
	struct export *x, const struct opt_list *list, const char *option, const char **name, size_t most)
{
	size_t nr = 0;

	for (unsigned i = 0; i < list->nr; i++) {
		char *at = text_made("%s", list->item[i]), *word;

		x->words[x->nr_words++] = at;
		while ((word = strsep(&at, ","))) {
			if (!*word)
				continue;
			if (nr == most)
				usage(&cmd_export, "more than %zu names after --%s", most, option);
			name[nr++] = word;
		}
	}
	return nr;
}

static void formats_in_words(struct buf *out)
{
	for (size_t i = 0; exporters[i]; i++)
		buf_addf(out, "%s%s", i ? ", " : "", exporters[i]->name);
}

static void no_such_format(const char *name)
{
	struct nearest near = nearest_to(name, 3); /* two letters that are swapped, also in a short name */
	struct buf list;

	for (size_t i = 0; exporters[i]; i++)
		nearest_try(&near, exporters[i]->name);
	if (near.best)
		usage(&cmd_export, "there is no format '%s'; did you mean '%s'?", name, near.best);
	buf_init(&list, 4096);
	formats_in_words(&list);
	usage(&cmd_export, "there is no format '%s'; there are %s", name, (char *)list.data);
}

static void add_format(struct export *x, const struct exporter *f)
{
	for (size_t i = 0; i < x->nr_formats; i++)
		if (x->format[i] == f)
			return;
	if (f->missing)
		usage(&cmd_export, "%s is not in this build: it lacks %s; install that and build again",
			f->name, f->missing);
	if (x->nr_formats == EXPORT_FORMATS_MOST)
		usage(&cmd_export, "more than %d formats", EXPORT_FORMATS_MOST);
	x->format[x->nr_formats++] = f;
}

size_t format_ending(const struct exporter *f, const char *path)
{
	size_t longest = path_has_suffix(path, f->suffix) ? strlen(f->suffix) : 0;
	char ending[32];

	for (const char *at = f->also; at && *at; at += *at == ',') {
		size_t len = strcspn(at, ",");

		snprintf(ending, sizeof(ending), "%.*s", (int)len, at);
		if (path_has_suffix(path, ending))
			longest = MAX(longest, len);
		at += len;
	}
	return longest;
}

/* The longest ending that fits: .arrows is not .arrow. */
static const struct exporter *format_of_file(const char *path)
{
	const struct exporter *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; exporters[i]; i++) {
		size_t len = exporters[i]->shape == EXPORT_OWN_FILES ? 0 : format_ending(exporters[i], path);

		if (len > longest) {
			best = exporters[i];
			longest = len;
		}
	}
	return best;
}

static void choose_formats(struct export *x)
{
	const char *word[EXPORT_NAMES_MOST];
	size_t nr = split_names(x, &x->args->to, "to", word, ARRAY_SIZE(word));
	const struct exporter *by_name = x->args->output ? format_of_file(x->args->output) : NULL;

	for (size_t i = 0; i < nr; i++) {
		const struct exporter *f = exporter_find(word[i]);

		if (f)
			add_format(x, f);
		else if (!isdigit((unsigned char)word[i][0]))
			no_such_format(word[i]);
		else if (!is_moment(word[i]))
			usage(&cmd_export, "--to %s is neither a format nor a time", word[i]);
		else
			x->range.to = word[i];
	}
	if (!x->nr_formats)
		add_format(x, by_name ? by_name : exporters[0]);
}

static bool takes_compression(const struct exporter *f, const char *name)
{
	size_t len = strlen(name);

	if (!strcmp(name, "none"))
		return true;
	for (const char *at = f->compressions; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

static void check_formats(const struct export *x)
{
	const char *compression = x->args->compression;

	for (size_t i = 0; i < x->nr_formats; i++) {
		const struct exporter *f = x->format[i];

		if (x->layout != LAYOUT_DEFAULT && !f->layouts)
			usage(&cmd_export, "%s has one form: --long and --wide are not for it", f->name);
		if (compression && !takes_compression(f, compression))
			usage(&cmd_export, "%s takes --compression %s, not '%s'", f->name,
				f->compressions ? f->compressions : "none", compression);
	}
}

void export_choose(struct export *x)
{
	const struct export_args *a = x->args;

	if (a->is_long && a->wide)
		usage(&cmd_export, "--long or --wide, not both");
	x->layout = a->is_long ? LAYOUT_LONG : a->wide ? LAYOUT_WIDE : LAYOUT_DEFAULT;
	x->range =
		(struct range_args){.from = a->from, .to = a->until, .phase = a->phase, .to_name = "--until"};
	choose_formats(x);
	check_formats(x);
	x->options = (struct tables_options){
		.from_s = NAN,
		.to_s = NAN,
		.domain = x->domain,
		.nr_domains = split_names(x, &a->domain, "domain", x->domain, EXPORT_NAMES_MOST),
		.metric = x->metric,
		.nr_metrics = split_names(x, &a->metric, "metric", x->metric, EXPORT_NAMES_MOST),
		.raw = a->raw,
		.per = (enum tables_per)a->per,
		.every_ns = a->every_ns,
		.threads = true,
		.progress = x->progress,
	};
}

void export_choose_range(struct export *x)
{
	range_of_phase(&cmd_export, x->run, &x->range, &x->options.from_s, &x->options.to_s, &x->told.summary,
		&x->told.processes);
	if (x->told.summary) {
		x->options.told = &x->told;
		x->options.phases = x->told.summary->phases;
		x->options.phase = phases_find(x->options.phases, x->range.phase);
	}
}

void export_forget(struct export *x)
{
	summary_free(x->told.summary);
	process_table_free(x->told.processes);
	for (size_t i = 0; i < x->nr_words; i++)
		free(x->words[i]);
	x->nr_words = 0;
}
