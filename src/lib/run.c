/* Runs for programs that link libtacho: opening, what there is in them, and why something failed. */
#include "lib/internal.h"

#include "export/text.h"

#include <math.h>
#include <string.h>

/* One for each thread, so that a thread gets its own error. Of fixed size, so that nothing has to be freed
 * when the thread ends. */
static _Thread_local char last_error[1024];

struct tacho_run {
	struct lib_run *shared;
	struct tables *tables; /* only for their description */
	const struct data_table *table;
	size_t nr_tables;
	struct tacho_frame *face;
	struct tacho_field **field; /* by table */
	char (**unit)[EXPORT_TEXT]; /* by table and field */
};

const char *tacho_version(void)
{
	return TACHO_VERSION;
}

const char *tacho_error(void)
{
	return last_error;
}

int lib_fail(int error, const char *text)
{
	struct buf b;

	buf_init_fixed(&b, last_error, sizeof(last_error));
	buf_adds(&b, text && *text ? text : strerror(-error));
	if (b.err) { /* too long: only its beginning is used */
		memcpy(last_error, text, sizeof(last_error) - 1);
		last_error[sizeof(last_error) - 1] = 0;
	}
	return error;
}

struct lib_run *lib_run_use(struct lib_run *r)
{
	__atomic_fetch_add(&r->users, 1, __ATOMIC_RELAXED);
	return r;
}

void lib_run_drop(struct lib_run *r)
{
	if (!r || __atomic_sub_fetch(&r->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	run_close(r->run);
	free(r);
}

static int describe(struct tacho_run *run, size_t i)
{
	const struct data_table *f = &run->table[i];
	size_t nr = MAX(f->nr_fields, (size_t)1);

	run->face[i] = (struct tacho_frame){f->name, f->help, f->domain, f->nr_fields};
	run->field[i] = calloc(nr, sizeof(**run->field));
	run->unit[i] = calloc(nr, sizeof(**run->unit));
	if (!run->field[i] || !run->unit[i])
		return -ENOMEM;
	for (size_t k = 0; k < f->nr_fields; k++) {
		const struct field *field = &f->field[k];

		run->field[i][k] = (struct tacho_field){.name = field->name,
			.help = field->help,
			.type = field_type_name(field->type),
			.unit = field_unit(field, run->unit[i][k]),
			.kind = field->is_metric ? kind_name(field->kind) : NULL};
	}
	return 0;
}

static int describe_all(struct tacho_run *run, struct buf *reterr)
{
	const struct tables_options all = {.from_s = NAN, .to_s = NAN};
	size_t nr;
	int r = tables_open(run->shared->run, &all, &run->tables, reterr);

	if (r < 0)
		return r;
	run->nr_tables = tables_list(run->tables, &run->table);
	nr = MAX(run->nr_tables, (size_t)1);
	run->face = calloc(nr, sizeof(*run->face));
	run->field = calloc(nr, sizeof(*run->field));
	run->unit = calloc(nr, sizeof(*run->unit));
	if (!run->face || !run->field || !run->unit)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < run->nr_tables; i++)
		r = describe(run, i);
	return r;
}

int tacho_open(const char *const *paths, size_t nr_paths, tacho_run **ret)
{
	struct tacho_run *run = calloc(1, sizeof(*run));
	struct buf err;
	int r = run ? 0 : -ENOMEM;

	buf_init(&err, 1 << 16);
	if (r >= 0 && (!paths || !nr_paths || !ret)) {
		r = -EINVAL;
		buf_adds(&err, "no recording is named");
	}
	if (r >= 0) {
		run->shared = calloc(1, sizeof(*run->shared));
		r = run->shared ? 0 : -ENOMEM;
	}
	if (r >= 0) {
		run->shared->users = 1;
		r = run_open(paths, nr_paths, &run->shared->run, &err);
	}
	if (r >= 0)
		r = describe_all(run, &err);
	if (r < 0) {
		lib_fail(r, (char *)err.data);
		tacho_close(run);
	} else {
		*ret = run;
	}
	buf_release(&err);
	return r;
}

void tacho_close(tacho_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; i < run->nr_tables; i++) {
		if (run->field)
			free(run->field[i]);
		if (run->unit)
			free(run->unit[i]);
	}
	free(run->face);
	free(run->field);
	free(run->unit);
	tables_close(run->tables);
	lib_run_drop(run->shared);
	free(run);
}

size_t tacho_nr_frames(const tacho_run *run)
{
	return run->nr_tables;
}

const struct tacho_frame *tacho_frame(const tacho_run *run, size_t table)
{
	return table < run->nr_tables ? &run->face[table] : NULL;
}

const struct tacho_field *tacho_field(const tacho_run *run, size_t table, size_t field)
{
	return table < run->nr_tables && field < run->face[table].nr_fields ? &run->field[table][field]
									    : NULL;
}

struct lib_run *lib_run_of(const tacho_run *run)
{
	return run->shared;
}
