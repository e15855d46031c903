/* SQLite: a table for each table, in one file. Columns have the names of the fields, so they stand in
 * quotation marks: "proc.mem.rss". Integers are exact, times are ns since 1970, flags 0 and 1, what is
 * missing is NULL. tacho_tables and tacho_columns say what everything means and its unit; views whose names
 * begin with v_ answer common questions.
 *
 * Texts stand in the rows, not in a table of their own: a query typed by hand should not need a join to show
 * a host. STRICT tables were rejected, since a SQLite from before 2021 could not open the file at all; they
 * would only protect against later changes of the file.
 *
 * An unfinished file is useless, so it is written in one transaction, with a journal in memory, which stays
 * empty: it is only used to undo a key that is not unique. Indexes are made at the end, when it takes one
 * sort each, beside the file, where there should be room for it. */
#include "export/text.h"

#include "base/base.h"

#include <sqlite3.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define PAGE_MOST 65536
#define CACHE_PAGES "-16000" /* KiB: memory does not grow with the file */

struct sqlite_table {
	char *name; /* as it is in the file */
	char **column;
	sqlite3_stmt *insert;
};

struct sqlite {
	const struct export_job *job;
	sqlite3 *db;
	struct sqlite_table *table; /* of each table */
	struct buf sql;
};

/* SQLite does not always keep the errno of a write that hit the limit on file size. */
static bool is_at_limit(const struct sqlite *s)
{
	struct rlimit limit;
	struct stat st;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
		!stat(s->job->path, &st) && (rlim_t)st.st_size + PAGE_MOST > limit.rlim_cur;
}

static int sqlite_errno(struct sqlite *s)
{
	int code = sqlite3_errcode(s->db), system = sqlite3_system_errno(s->db);

	if (code == SQLITE_NOMEM)
		return -ENOMEM;
	if (code == SQLITE_FULL)
		return -ENOSPC;
	if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && system > 0)
		return -system;
	if (code == SQLITE_IOERR && is_at_limit(s))
		return -EFBIG;
	if (!s->job->reterr->len)
		buf_addf(s->job->reterr, "SQLite says: %s", sqlite3_errmsg(s->db));
	return -EIO;
}

static int execute(struct sqlite *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_errno(s);
}

static int execute_sql(struct sqlite *s) /* what is in s->sql */
{
	return s->sql.err ? s->sql.err : execute(s, (char *)s->sql.data);
}

static int prepare_sql(struct sqlite *s, sqlite3_stmt **ret)
{
	if (s->sql.err)
		return s->sql.err;
	return sqlite3_prepare_v2(s->db, (char *)s->sql.data, -1, ret, NULL) == SQLITE_OK ? 0
											  : sqlite_errno(s);
}

/* ---- names ---- */

static void add_name_behind(struct buf *out, const char *before, const char *name)
{
	buf_addf(out, "\"%s", before);
	for (; *name; name++) {
		buf_addch(out, *name);
		if (*name == '"')
			buf_addch(out, '"');
	}
	buf_addch(out, '"');
}

static void add_name(struct buf *out, const char *name)
{
	add_name_behind(out, "", name);
}

static bool is_taken(const char *name, char *const *taken, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!sqlite3_stricmp(name, taken[i]))
			return true;
	return false;
}

/* For SQLite, A and a are one name: the second becomes "a_2". */
static int name_unlike(const char *wish, char *const *taken, size_t nr, char **ret)
{
	const char *prefix = !sqlite3_strnicmp(wish, "sqlite_", 7) ? "_" : "";
	char *name = sqlite3_mprintf("%s%s", prefix, wish);

	for (size_t i = 2; name && is_taken(name, taken, nr); i++) {
		sqlite3_free(name);
		name = sqlite3_mprintf("%s%s_%u", prefix, wish, (unsigned)i);
	}
	*ret = name;
	return name ? 0 : -ENOMEM;
}

static int table_names(struct sqlite *s)
{
	char **taken = calloc(s->job->nr_tables + 2, sizeof(*taken));
	int r = taken ? 0 : -ENOMEM;

	if (taken) {
		taken[0] = (char *)"tacho_tables";
		taken[1] = (char *)"tacho_columns";
	}
	for (size_t i = 0; r >= 0 && i < s->job->nr_tables; i++) {
		const struct data_table *f = &s->job->table[i];
		struct sqlite_table *t = &s->table[i];

		r = name_unlike(f->name, taken, i + 2, &t->name);
		taken[i + 2] = t->name;
		t->column = calloc(MAX(f->nr_fields, (size_t)1), sizeof(*t->column));
		if (!t->column)
			r = -ENOMEM;
		for (size_t c = 0; r >= 0 && c < f->nr_fields; c++)
			r = name_unlike(f->field[c].name, t->column, c, &t->column[c]);
	}
	free(taken);
	return r;
}

/* ---- tables ---- */

static const char *sql_type(enum field_type type)
{
	return type == FIELD_TEXT ? "TEXT" : type == FIELD_REAL ? "REAL" : "INTEGER";
}

static const struct data_table *data_table_named(const struct sqlite *s, const char *name)
{
	for (size_t i = 0; i < s->job->nr_tables; i++)
		if (!strcmp(s->job->table[i].name, name))
			return &s->job->table[i];
	return NULL;
}

static bool has_field(const struct data_table *f, const char *name)
{
	for (size_t i = 0; f && i < f->nr_fields; i++)
		if (!strcmp(f->field[i].name, name))
			return true;
	return false;
}

static int make_table(struct sqlite *s, size_t i)
{
	const struct data_table *f = &s->job->table[i];
	struct sqlite_table *t = &s->table[i];
	bool refers = f->domain && has_field(data_table_named(s, "processes"), "process");
	int r;

	buf_reset(&s->sql);
	buf_adds(&s->sql, "CREATE TABLE ");
	add_name(&s->sql, t->name);
	for (size_t c = 0; c < f->nr_fields; c++) {
		buf_adds(&s->sql, c ? ", " : " (");
		add_name(&s->sql, t->column[c]);
		buf_addf(&s->sql, " %s", sql_type(f->field[c].type));
		if (refers && !strcmp(f->field[c].name, "process"))
			buf_adds(&s->sql, " REFERENCES processes(process)");
	}
	buf_adds(&s->sql, ")");
	r = execute_sql(s);
	buf_reset(&s->sql);
	buf_adds(&s->sql, "INSERT INTO ");
	add_name(&s->sql, t->name);
	buf_adds(&s->sql, " VALUES (");
	for (size_t c = 0; c < f->nr_fields; c++)
		buf_adds(&s->sql, c ? ",?" : "?");
	buf_adds(&s->sql, ")");
	return r < 0 ? r : prepare_sql(s, &t->insert);
}

static int step_and_reset(struct sqlite *s, sqlite3_stmt *statement)
{
	int r = sqlite3_step(statement) == SQLITE_DONE ? 0 : sqlite_errno(s);

	sqlite3_reset(statement);
	return r;
}

static void bind_word(sqlite3_stmt *statement, int at, const char *word)
{
	sqlite3_bind_text(statement, at, word, -1, SQLITE_TRANSIENT); /* of NULL it makes NULL */
}

static int describe_column(struct sqlite *s, sqlite3_stmt *statement, size_t table, size_t column)
{
	const struct field *f = &s->job->table[table].field[column];
	char unit[EXPORT_TEXT];

	bind_word(statement, 1, s->table[table].name);
	bind_word(statement, 2, s->table[table].column[column]);
	sqlite3_bind_int64(statement, 3, (sqlite3_int64)column + 1);
	bind_word(statement, 4, field_type_name(f->type));
	bind_word(statement, 5, field_unit(f, unit));
	bind_word(statement, 6, f->is_metric ? kind_name(f->kind) : NULL);
	bind_word(statement, 7, f->resample);
	sqlite3_bind_double(statement, 8, f->scale);
	bind_word(statement, 9, f->help);
	return step_and_reset(s, statement);
}

static int describe(struct sqlite *s)
{
	sqlite3_stmt *tables = NULL, *columns = NULL;
	int r = execute(s,
		"CREATE TABLE tacho_tables (name TEXT PRIMARY KEY, domain TEXT, help TEXT);"
		"CREATE TABLE tacho_columns (table_name TEXT REFERENCES tacho_tables(name), name TEXT,"
		" position INTEGER, type TEXT, unit TEXT, kind TEXT, resample TEXT, scale REAL, help TEXT,"
		" PRIMARY KEY (table_name, name))");

	buf_reset(&s->sql);
	buf_adds(&s->sql, "INSERT INTO tacho_tables VALUES (?,?,?)");
	if (r >= 0)
		r = prepare_sql(s, &tables);
	buf_reset(&s->sql);
	buf_adds(&s->sql, "INSERT INTO tacho_columns VALUES (?,?,?,?,?,?,?,?,?)");
	if (r >= 0)
		r = prepare_sql(s, &columns);
	for (size_t i = 0; r >= 0 && i < s->job->nr_tables; i++) {
		bind_word(tables, 1, s->table[i].name);
		bind_word(tables, 2, s->job->table[i].domain);
		bind_word(tables, 3, s->job->table[i].help);
		r = step_and_reset(s, tables);
		for (size_t c = 0; r >= 0 && c < s->job->table[i].nr_fields; c++)
			r = describe_column(s, columns, i, c);
	}
	sqlite3_finalize(tables);
	sqlite3_finalize(columns);
	return r;
}

/* ---- indexes and views ---- */

static int make_index(struct sqlite *s, size_t table, bool unique, const char *columns)
{
	buf_reset(&s->sql);
	buf_addf(&s->sql, "CREATE %sINDEX ", unique ? "UNIQUE " : "");
	add_name_behind(&s->sql, "key of ", s->table[table].name);
	buf_adds(&s->sql, " ON ");
	add_name(&s->sql, s->table[table].name);
	buf_addf(&s->sql, " (%s)", columns);
	if (s->sql.err)
		return s->sql.err;
	/* Two rows with one key, in a malformed recording: then it is no key. */
	if (sqlite3_exec(s->db, (char *)s->sql.data, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	if (unique && sqlite3_errcode(s->db) == SQLITE_CONSTRAINT)
		return make_index(s, table, false, columns);
	return sqlite_errno(s);
}

static int index_table(struct sqlite *s, size_t i)
{
	const struct data_table *f = &s->job->table[i];

	if (f->domain && has_field(f, "process") && has_field(f, "time"))
		return make_index(
			s, i, true, has_field(f, "instance") ? "process, time, instance" : "process, time");
	if (f->domain && has_field(f, "host") && has_field(f, "time"))
		return make_index(
			s, i, true, has_field(f, "instance") ? "host, instance, time" : "host, time");
	if (!strcmp(f->name, "processes") && has_field(f, "process"))
		return make_index(s, i, true, "process");
	if (!strcmp(f->name, "metrics") && has_field(f, "frame") && has_field(f, "name"))
		return make_index(s, i, true, "frame, name");
	return 0;
}

/* For each instance the mean and the most of everything that has one; counters have their rates. */
static int view_instances(struct sqlite *s, size_t i)
{
	const struct data_table *f = &s->job->table[i];
	const struct sqlite_table *t = &s->table[i];

	if (!f->domain || !has_field(f, "host") || !has_field(f, "instance") || !has_field(f, "elapsed") ||
		f->nr_fields > 900) /* SQLite has 2000 columns at most */
		return 0;
	buf_reset(&s->sql);
	buf_adds(&s->sql, "CREATE VIEW ");
	add_name_behind(&s->sql, "v_", t->name);
	buf_addf(&s->sql,
		" AS SELECT host, instance%s, count(*) AS nr_rows, min(elapsed) AS first_s,"
		" max(elapsed) AS last_s",
		has_field(f, "process") ? ", pid, process" : "");
	for (size_t c = 0; c < f->nr_fields; c++) {
		const struct field *field = &f->field[c];

		if (!field->is_metric || field->kind == KIND_COUNTER || field->unit == UNIT_CODE ||
			(field->type != FIELD_INT && field->type != FIELD_REAL))
			continue;
		for (unsigned most = field->kind == KIND_PEAK; most < 2; most++) {
			buf_adds(&s->sql, most ? ", max(" : ", avg(");
			add_name(&s->sql, t->column[c]);
			buf_adds(&s->sql, ") AS ");
			add_name_behind(&s->sql, most ? "max of " : "mean of ", t->column[c]);
		}
	}
	buf_adds(&s->sql, " FROM ");
	add_name(&s->sql, t->name);
	buf_addf(&s->sql, " GROUP BY host, %s", has_field(f, "process") ? "process, instance" : "instance");
	return s->sql.err;
}

#define WHEN(column) "strftime('%Y-%m-%dT%H:%M:%fZ', [" column "] / 1e9, 'unixepoch')"

#define FIGURE(name) "max(CASE name WHEN '" name "' THEN value END) AS [" name "], "

/* Made when their tables are there; the names are properties of processes and of the run, not metrics. */
/* clang-format off */
static const char *const views[][2] = {
	{"v_run", /* host NULL: all nodes together */
		"SELECT host, " FIGURE("wall_s") FIGURE("exit.code") FIGURE("cpu.total_s")
		FIGURE("cpu.mean_cores") FIGURE("cpu.peak_cores") FIGURE("memory.peak_bytes")
		FIGURE("memory.peak_rss_bytes") FIGURE("memory.peak_pss_bytes") "count(*) AS figures FROM summary GROUP BY host"},
	{"v_unknown", /* what the summary does not know, and why */
		"SELECT host, name, why FROM summary WHERE value IS NULL AND why IS NOT NULL"},
	{"v_top_processes",
		"SELECT process, host, pid, name, wall, cpu, cpu / nullif(wall, 0) AS cores,"
		" rss_peak AS memory_peak, read_bytes, write_bytes,"
		" exit_code, exit_signal, command FROM processes ORDER BY cpu DESC"},
	{"v_cpu_by_process",
		"SELECT host, name, count(*) AS processes, sum(cpu) AS cpu, sum(user) AS user,"
		" sum(system) AS system, sum(cpu) / nullif((SELECT sum(cpu) FROM processes), 0) AS share"
		" FROM processes GROUP BY host, name ORDER BY 4 DESC"},
	{"v_peak_memory",
		"SELECT process, host, pid, name, rss_peak, hwm, pss_peak, uss_peak, command"
		" FROM processes ORDER BY rss_peak DESC"},
	{"v_failed_processes",
		"SELECT process, host, pid, name, exit_code, exit_signal, how, " WHEN("end") " AS ended_at,"
		" command FROM processes WHERE exit_code <> 0 OR exit_signal <> 0"},
	{"v_events",
		"SELECT " WHEN("time") " AS at, elapsed, length, host, kind, label FROM events ORDER BY time"},
	{"v_missing_metrics",
		"SELECT frame, name, why FROM metrics WHERE NOT available"},
};
/* clang-format on */

/* Drops a view that cannot be read because its tables were not exported. */
static int keep_if_readable(struct sqlite *s, const char *name)
{
	sqlite3_stmt *statement = NULL;
	int code;

	buf_reset(&s->sql);
	buf_addf(&s->sql, "SELECT * FROM %s", name);
	if (s->sql.err)
		return s->sql.err;
	code = sqlite3_prepare_v2(s->db, (char *)s->sql.data, -1, &statement, NULL);
	sqlite3_finalize(statement);
	if (code == SQLITE_OK)
		return 0;
	buf_reset(&s->sql);
	buf_addf(&s->sql, "DROP VIEW %s", name);
	return execute_sql(s);
}

static int make_views(struct sqlite *s)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(views); i++) {
		buf_reset(&s->sql);
		buf_addf(&s->sql, "CREATE VIEW %s AS %s", views[i][0], views[i][1]);
		r = execute_sql(s);
		if (r >= 0)
			r = keep_if_readable(s, views[i][0]);
	}
	for (size_t i = 0; r >= 0 && i < s->job->nr_tables; i++) {
		buf_reset(&s->sql);
		r = view_instances(s, i);
		/* A table may be called like one of the views: that view is there already. */
		if (r >= 0 && s->sql.len)
			sqlite3_exec(s->db, (char *)s->sql.data, NULL, NULL, NULL);
	}
	return r;
}

/* ---- the exporter ---- */

static void sqlite_drop(void *e)
{
	struct sqlite *s = e;

	for (size_t i = 0; s->table && i < s->job->nr_tables; i++) {
		struct sqlite_table *t = &s->table[i];

		sqlite3_finalize(t->insert);
		sqlite3_free(t->name);
		for (size_t c = 0; t->column && c < s->job->table[i].nr_fields; c++)
			sqlite3_free(t->column[c]);
		free(t->column);
	}
	free(s->table);
	sqlite3_close(s->db);
	sqlite3_free(sqlite3_temp_directory);
	sqlite3_temp_directory = NULL;
	buf_release(&s->sql);
	free(s);
}

static int begin(struct sqlite *s)
{
	const char *slash = strrchr(s->job->path, '/');
	int r;

	if (slash > s->job->path)
		sqlite3_temp_directory = sqlite3_mprintf("%.*s", (int)(slash - s->job->path), s->job->path);
	if (sqlite3_open_v2(s->job->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
		SQLITE_OK)
		return s->db ? sqlite_errno(s) : -ENOMEM;
	r = execute(s,
		"PRAGMA page_size = 8192; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = " CACHE_PAGES ";"
		"PRAGMA encoding = 'UTF-8'; PRAGMA application_id = 1413563983; BEGIN");
	if (r >= 0)
		r = table_names(s);
	if (r >= 0)
		r = describe(s);
	for (size_t i = 0; r >= 0 && i < s->job->nr_tables; i++)
		r = make_table(s, i);
	return r;
}

static int sqlite_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct sqlite *s = calloc(1, sizeof(*s));
	int r;

	(void)reterr; /* is job->reterr */
	if (!s)
		return -ENOMEM;
	s->job = job;
	buf_init(&s->sql, 1 << 24);
	s->table = calloc(MAX(job->nr_tables, (size_t)1), sizeof(*s->table));
	r = s->table ? begin(s) : -ENOMEM;
	if (r < 0)
		sqlite_drop(s);
	else
		*ret = s;
	return r;
}

static int bind_cell(sqlite3_stmt *insert, int at, enum field_type type, const struct field_cells *c,
	uint32_t row, const struct texts *texts)
{
	uint32_t number;

	if (!cell_valid(c, row))
		return sqlite3_bind_null(insert, at);
	switch (type) {
	case FIELD_TIME:
	case FIELD_INT:
		return sqlite3_bind_int64(insert, at, c->integer[row]);
	case FIELD_REAL:
		return sqlite3_bind_double(insert, at, c->real[row]);
	case FIELD_FLAG:
		return sqlite3_bind_int(insert, at, c->flag[row] != 0);
	case FIELD_TEXT:
		number = c->text[row];
		return number < texts->nr ? sqlite3_bind_text64(insert, at, texts->text[number],
						    texts->len[number], SQLITE_STATIC, SQLITE_UTF8)
					  : SQLITE_RANGE;
	}
	return SQLITE_RANGE;
}

static int sqlite_add(void *e, const struct data_table_batch *b)
{
	struct sqlite *s = e;
	size_t i = b->table - s->job->first_table;
	const struct data_table *f = &s->job->table[i];
	sqlite3_stmt *insert = s->table[i].insert;
	struct texts *texts = calloc(MAX(f->nr_fields, (size_t)1), sizeof(*texts));
	int r = texts ? 0 : -ENOMEM;

	for (size_t c = 0; texts && c < f->nr_fields; c++)
		if (f->field[c].type == FIELD_TEXT)
			texts[c] = export_texts(s->job, b->table, c);
	for (uint32_t row = 0; r >= 0 && row < b->nr_rows; row++) {
		for (size_t c = 0; r >= 0 && c < f->nr_fields; c++)
			if (bind_cell(insert, (int)c + 1, f->field[c].type, &b->cell[c], row, &texts[c]) !=
				SQLITE_OK)
				r = sqlite_errno(s);
		if (r >= 0)
			r = step_and_reset(s, insert);
	}
	sqlite3_clear_bindings(insert); /* the texts are freed with the batch */
	free(texts);
	return r;
}

static int sqlite_end(void *e)
{
	struct sqlite *s = e;
	int r = 0;

	for (size_t i = 0; i < s->job->nr_tables; i++) {
		sqlite3_finalize(s->table[i].insert);
		s->table[i].insert = NULL;
	}
	for (size_t i = 0; r >= 0 && i < s->job->nr_tables; i++)
		r = index_table(s, i);
	if (r >= 0)
		r = make_views(s);
	if (r >= 0)
		r = execute(s, "COMMIT");
	sqlite_drop(s);
	return r;
}

const struct exporter exporter_sqlite = {
	.name = "sqlite",
	.suffix = ".sqlite",
	.also = ".sqlite3,.db",
	.help = "SQLite: tables with keys, and views for common questions",
	.shape = EXPORT_ONE_FILE,
	.by_path = true,
	.open = sqlite_open,
	.add = sqlite_add,
	.close = sqlite_end,
	.drop = sqlite_drop,
};
