/* A trace for Perfetto (ui.perfetto.dev, trace_processor): every node is a track, and below it are its
 * processes as tracks with a slice for the life of each, phases as slices, marks and other events as
 * instants, and counters.
 *
 * A counter is written where it changes: a viewer draws the value on to the next one. So a process that
 * does nothing costs nothing. What is not known is not written; the line goes on there, since a counter
 * of a trace has no gaps. The levels of a process fall to 0 at its end.
 *
 * Of all metrics the table below has what people look for, and of domains that it does not name there is
 * everything. Where metrics are chosen (-m) they are all there. Rows that repeat the keys of a table
 * become one line. */
#include "base/owned.h"
#include "export/labels.h"
#include "export/perfetto_packets.h"
#include "export/text.h"

#include <math.h>
#include <string.h>

/* clang-format off */
/* What is shown of a domain; no metric: nothing is. */
static const struct perfetto_choice {
	const char *table, *field;
	const char *instance; /* only of this one */
} choice[] = {
	{"tree", "tree.cores"},
	{"tree", "tree.processes"},
	{"tree", "tree.io.read_rate"},
	{"tree", "tree.io.write_rate"},
	{"tree", "tree.disk.read_rate"},
	{"tree", "tree.disk.write_rate"},
	{"tree", "tree.starts"},
	{"process", "proc.cpu.cores"},
	{"process", "proc.mem.rss"},
	{"process", "proc.mem.pss_now"},
	{"process", "proc.io.read_rate"},
	{"process", "proc.io.write_rate"},
	{"process", "proc.threads"},
	{"group", "group.cores"},
	{"group", "group.processes"},
	{"group", "group.io.read_rate"},
	{"group", "group.io.write_rate"},
	{"node", "mem.used"},
	{"node", "mem.available"},
	{"node", "load.1m"},
	{"node", "pressure.cpu.some.rate"},
	{"node", "pressure.memory.some.rate"},
	{"node", "pressure.io.some.rate"},
	{"node", "paging.major_faults.rate"},
	{"cpu", "cpu.busy", "total"},
	{"cpu", "cpu.waiting", "total"},
	{"cpu", "freq.current", "total"},
	{"cgroup", "cgroup.cpu.usage.rate"},
	{"cgroup", "cgroup.cpu.throttled.rate"},
	{"cgroup", "cgroup.memory.current"},
	{"cgroup", "cgroup.memory.limit"},
	{"cgroup", "cgroup.pressure.cpu.some.rate"},
	{"cgroup", "cgroup.pressure.memory.some.rate"},
	{"cgroup", "cgroup.pressure.io.some.rate"},
	{"net", "net.rx.rate"},
	{"net", "net.tx.rate"},
	{"ib", "ib.rx.rate"},
	{"ib", "ib.tx.rate"},
	{"disk", "disk.read.rate"},
	{"disk", "disk.write.rate"},
	{"disk", "disk.busy_ratio"},
	{"filesystem", "fs.used"},
	{"energy", "energy.watts"},
	{"gpu", "gpu.util"},
	{"gpu", "gpu.mem_util"},
	{"gpu", "gpu.memory.used"},
	{"gpu", "gpu.watts"},
	{"gpu", "gpu.temperature"},
	{"gpu", "gpu.clock.sm"},
	{"gpu_process", "gpu_process.memory"},
	{"gpu_process", "gpu_process.util"},
	{"collector", NULL},
};
/* Of all processes together, which the table of processes has one by one. */
static const char *const folded[] = {"proc.mem.rss", "proc.mem.pss_now"};
/* clang-format on */

#define NO_FIELD SIZE_MAX
#define LANES_MOST 64
#define DEPTH_MOST 256

struct perfetto_cell {
	uint64_t track; /* 0: no value was seen */
	uint64_t bits;
};

struct perfetto_line { /* rows with the same keys */
	uint64_t track;
	int64_t last;	 /* the time of its last row */
	uint32_t before; /* number + 1 of another line of the same process; 0: none */
};

struct perfetto_table {
	const struct data_table *table;
	size_t group;				   /* the table whose track its lines are below */
	size_t time, instance, pid, process, host; /* fields; NO_FIELD: it has none */
	const char *only;			   /* the instance, by its name; NULL: all */
	size_t *column;				   /* fields that are shown */
	size_t nr_columns;
	size_t *key;
	size_t nr_keys;
	struct label *set; /* of a row: the recording, then its keys */
	struct label_sets sets;
	struct perfetto_line *line; /* by the set's number */
	struct perfetto_cell *cell; /* nr_columns of each line */
	uint32_t nr_lines, nr_cells;
	struct idmap by_process; /* its last line, by the process' number */
};

/* Slices of one track must lie within each other: what overlaps goes to the next. */
struct perfetto_lane {
	uint64_t track;
	int64_t end[DEPTH_MOST]; /* of slices that are open at the last one's beginning */
	unsigned depth;
};

struct perfetto_node {
	uint64_t track, *group; /* group: one for each table */
	char *name;
	struct perfetto_lane *lane[2]; /* of phases, of other events */
	uint32_t nr_lanes[2];
	uint64_t moments; /* the track of instants */
};

struct perfetto {
	const struct export_job *job;
	struct perfetto_packets packets;
	struct perfetto_table *table;
	size_t nr_tables;
	struct perfetto_node *node; /* by the number of the recording */
	uint32_t nr_nodes;
	struct idmap process; /* from the number of a process to its track */
};

/* ---- what is shown ---- */

static size_t field_called(const struct data_table *t, const char *name)
{
	for (size_t i = 0; i < t->nr_fields; i++)
		if (!strcmp(t->field[i].name, name))
			return i;
	return NO_FIELD;
}

static bool is_number(const struct field *f)
{
	return f->type == FIELD_INT || f->type == FIELD_REAL || f->type == FIELD_FLAG;
}

static bool is_shown(
	const struct perfetto *p, const struct data_table *t, const struct field *f, const char **ret_only)
{
	bool named = false;

	if (!f->is_metric || !is_number(f))
		return false;
	if (p->job->options && p->job->options->nr_metrics)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(choice); i++) {
		if (strcmp(choice[i].table, t->name) != 0)
			continue;
		named = true;
		if (!choice[i].field || strcmp(choice[i].field, f->name) != 0)
			continue;
		*ret_only = choice[i].instance;
		return true;
	}
	return !named;
}

/* Each line is a process; a table may have several of one, which it then calls otherwise. */
static bool is_of_processes(const struct perfetto_table *t)
{
	return t->pid != NO_FIELD && t->process != NO_FIELD && !strcmp(t->table->name, "process");
}

static int table_init(const struct perfetto *p, struct perfetto_table *t, const struct data_table *table)
{
	*t = (struct perfetto_table){.table = table,
		.group = (size_t)(t - p->table),
		.time = field_called(table, "time"),
		.instance = field_called(table, "instance"),
		.pid = field_called(table, "pid"),
		.process = field_called(table, "process"),
		.host = field_called(table, "host")};
	t->column = calloc(table->nr_fields + 1, sizeof(*t->column));
	t->key = calloc(table->nr_fields + 1, sizeof(*t->key));
	t->set = calloc(table->nr_fields + 1, sizeof(*t->set));
	if (!t->column || !t->key || !t->set)
		return -ENOMEM;
	for (size_t i = 0; table->domain && t->time != NO_FIELD && i < table->nr_fields; i++) {
		const struct field *f = &table->field[i];

		if (is_shown(p, table, f, &t->only))
			t->column[t->nr_columns++] = i;
		else if (i == t->host || (i == t->instance && is_of_processes(t)))
			continue; /* the recording says it; the name of a process may change */
		else if (!f->is_metric && (f->type == FIELD_TEXT || f->type == FIELD_INT))
			t->key[t->nr_keys++] = i;
	}
	if (t->instance == NO_FIELD)
		t->only = NULL;
	label_sets_init(&t->sets, t->nr_keys + 1);
	return 0;
}

static void table_release(struct perfetto_table *t)
{
	free(t->column);
	free(t->key);
	free(t->set);
	free(t->line);
	free(t->cell);
	label_sets_release(&t->sets);
	idmap_release(&t->by_process);
}

static void perfetto_drop(void *e)
{
	struct perfetto *p = e;

	for (size_t i = 0; p->table && i <= p->job->nr_tables; i++)
		table_release(&p->table[i]);
	for (uint32_t i = 0; i < p->nr_nodes; i++) {
		free(p->node[i].group);
		free(p->node[i].name);
		free(p->node[i].lane[0]);
		free(p->node[i].lane[1]);
	}
	free(p->table);
	free(p->node);
	idmap_release(&p->process);
	perfetto_release(&p->packets);
	free(p);
}

/* ---- all processes together ---- */

/* Where metrics are chosen, or folded, there is nothing beside them. */
static size_t perfetto_folds(const struct tables_options *chosen, struct table_fold *ret)
{
	if (chosen->nr_metrics || chosen->per != TABLES_EACH)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(folded); i++)
		ret[i] = (struct table_fold){"process", folded[i]};
	return ARRAY_SIZE(folded);
}

static size_t table_called(const struct perfetto *p, const char *name)
{
	for (size_t i = 0; i < p->nr_tables; i++)
		if (!strcmp(p->table[i].table->name, name))
			return i;
	return NO_FIELD;
}

/* Other formats may have asked for more. */
static void keep_folded(struct perfetto_table *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_columns; i++)
		for (size_t k = 0; k < ARRAY_SIZE(folded); k++)
			if (!strcmp(t->table->field[t->column[i]].name, folded[k]))
				t->column[kept++] = t->column[i];
	t->nr_columns = kept;
}

/* Its lines stand with those of the job. */
static int folded_init(struct perfetto *p)
{
	struct perfetto_table *t = &p->table[p->nr_tables];
	struct table_fold ignored[ARRAY_SIZE(folded)];
	size_t tree = table_called(p, "tree");
	int r = 0;

	if (!p->job->options || !perfetto_folds(p->job->options, ignored))
		return 0;
	for (size_t i = 0; i < p->job->nr_folded && r >= 0; i++) {
		if (strcmp(p->job->folded[i].name, "process") != 0)
			continue;
		r = table_init(p, t, &p->job->folded[i]);
		keep_folded(t);
		if (tree != NO_FIELD)
			t->group = tree;
	}
	return r;
}

/* ---- opening ---- */

static bool is_deflated(const struct export_job *job)
{
#ifdef HAVE_ZLIB
	return !job->compression || strcmp(job->compression, "none") != 0;
#else
	(void)job;
	return false;
#endif
}

static int perfetto_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	int r = 0;

	(void)reterr;
	if (!p)
		return -ENOMEM;
	p->job = job;
	perfetto_init(&p->packets, job->out, is_deflated(job));
	p->table = calloc(job->nr_tables + 1, sizeof(*p->table)); /* the last: all processes folded */
	if (!p->table)
		r = -ENOMEM;
	while (r >= 0 && p->nr_tables < job->nr_tables) {
		size_t i = p->nr_tables++;

		r = table_init(p, &p->table[i], &job->table[i]);
	}
	if (r >= 0)
		r = folded_init(p);
	if (r < 0)
		perfetto_drop(p);
	else
		*ret = p;
	return r;
}

/* ---- cells ---- */

struct perfetto_row {
	const struct export_job *job;
	const struct data_table *table;
	const struct data_table_batch *b;
	uint32_t row;
	int64_t time;
};

static bool is_there(const struct perfetto_row *at, size_t field)
{
	return field != NO_FIELD && cell_valid(&at->b->cell[field], at->row);
}

static struct perfetto_text text_in(const struct perfetto_row *at, size_t field)
{
	struct perfetto_text none = {"", 0};
	struct texts t;
	uint32_t number;

	if (!is_there(at, field) || at->table->field[field].type != FIELD_TEXT)
		return none;
	t = export_texts(at->job, at->b->table, field);
	number = at->b->cell[field].text[at->row];
	return number < t.nr ? (struct perfetto_text){t.text[number], t.len[number]} : none;
}

/* False: there is none, or it is before 1970, which a trace cannot say. */
static bool time_in(const struct perfetto_row *at, size_t field, int64_t *ret)
{
	if (!is_there(at, field) || at->table->field[field].type != FIELD_TIME)
		return false;
	*ret = at->b->cell[field].integer[at->row];
	return *ret > 0;
}

static uint32_t recording_of(const struct perfetto_row *at)
{
	return at->b->recording ? at->b->recording[at->row] : 0;
}

static struct perfetto_text words(const char *text)
{
	return (struct perfetto_text){text, strlen(text)};
}

/* ---- tracks ---- */

static bool is_taken(const struct perfetto *p, const char *name)
{
	for (uint32_t i = 0; i < p->nr_nodes; i++)
		if (p->node[i].name && !strcmp(p->node[i].name, name))
			return true;
	return false;
}

/* Several recordings of one host have names of their own: "host (2)". */
static char *node_name(const struct perfetto *p, struct perfetto_text host)
{
	char *name = NULL;

	for (unsigned i = 1; !name; i++) {
		if (asprintf(&name, i > 1 ? "%.*s (%u)" : "%.*s", (int)MIN(host.len, (size_t)1024),
			    host.len ? host.text : "", i) < 0)
			return NULL;
		if (!is_taken(p, name))
			return name;
		free(name);
		name = NULL;
	}
	return name;
}

static struct perfetto_node *node_of(struct perfetto *p, const struct perfetto_row *at, size_t host)
{
	uint32_t number = recording_of(at);
	struct perfetto_node *more = array_reach(p->node, &p->nr_nodes, number, sizeof(*more)), *node;

	if (!more)
		return NULL;
	p->node = more;
	node = &p->node[number];
	if (node->track)
		return node;
	node->group = calloc(p->job->nr_tables + 1, sizeof(*node->group));
	node->name = node_name(p, text_in(at, host));
	if (!node->group || !node->name)
		return NULL;
	node->track = perfetto_track(&p->packets, at->time,
		&(struct perfetto_track){.name = words(node->name),
			.help = "A node of the job.",
			.pid = -1,
			.order = PERFETTO_BY_RANK});
	return node;
}

/* Its one line has this name, too. */
static const char *title_of(const struct data_table *t)
{
	return !strcmp(t->name, "tree") ? "job" : t->name;
}

/* The track of a table on a node, above its lines. */
static uint64_t group_of(
	struct perfetto *p, struct perfetto_node *node, const struct perfetto_row *at, size_t table)
{
	if (!node->group[table])
		node->group[table] = perfetto_track(&p->packets, at->time,
			&(struct perfetto_track){.parent = node->track,
				.name = words(title_of(p->table[table].table)),
				.help = p->table[table].table->help,
				.rank = (int)table + 4,
				.pid = -1});
	return node->group[table];
}

/* That of a process, described (again): 0 when there is no memory. */
static uint64_t process_of(struct perfetto *p, const struct perfetto_node *node, int64_t number, int64_t time,
	struct perfetto_track about)
{
	uint32_t known = idmap_get(&p->process, (uint64_t)number);

	about.number = known == IDMAP_NONE ? 0 : known;
	about.parent = node->track;
	about.number = perfetto_track(&p->packets, time, &about);
	if (about.number >= IDMAP_NONE ||
		idmap_put(&p->process, (uint64_t)number, (uint32_t)about.number) < 0)
		return 0;
	return about.number;
}

/* ---- counters ---- */

static int64_t integer_in(const struct perfetto_row *at, size_t field)
{
	return at->table->field[field].type == FIELD_FLAG ? at->b->cell[field].flag[at->row] != 0
							  : at->b->cell[field].integer[at->row];
}

static bool is_of_process(const struct perfetto_table *t, const struct perfetto_row *at)
{
	return t->pid != NO_FIELD && is_there(at, t->process) && is_there(at, t->pid) &&
		at->table->field[t->process].type == FIELD_INT && at->table->field[t->pid].type == FIELD_INT;
}

/* The process of a row, which has this line more. */
static uint64_t track_of_process(struct perfetto *p, struct perfetto_table *t,
	const struct perfetto_node *node, const struct perfetto_row *at, uint32_t line)
{
	int64_t number = at->b->cell[t->process].integer[at->row];
	uint32_t known = idmap_get(&p->process, (uint64_t)number);
	struct perfetto_track about = {.pid = at->b->cell[t->pid].integer[at->row], .name = words("")};

	t->line[line].before = idmap_get(&t->by_process, (uint64_t)number) + 1;
	if (idmap_put(&t->by_process, (uint64_t)number, line) < 0)
		return 0;
	if (is_of_processes(t))
		about.name = text_in(at, t->instance);
	return known != IDMAP_NONE ? known : process_of(p, node, number, at->time, about);
}

/* The track above the counters of a line: its process, its instance, or that of the table. */
static uint64_t track_of_line(
	struct perfetto *p, struct perfetto_table *t, const struct perfetto_row *at, uint32_t line)
{
	struct perfetto_node *node = node_of(p, at, t->host);
	struct perfetto_text instance = text_in(at, t->instance);
	uint64_t above = 0;

	if (node)
		above = is_of_process(t, at) ? track_of_process(p, t, node, at, line)
					     : group_of(p, node, at, t->group);
	if (!above || !instance.len || is_of_processes(t) || !strcmp(instance.text, title_of(t->table)))
		return above;
	return perfetto_track(&p->packets, at->time,
		&(struct perfetto_track){.parent = above, .name = instance, .pid = -1});
}

static int line_of(struct perfetto *p, struct perfetto_table *t, const struct perfetto_row *at, uint32_t *ret)
{
	struct perfetto_line *more;
	struct perfetto_cell *cells;
	int r;

	t->set[0] = (struct label){recording_of(at), 1};
	for (size_t i = 0; i < t->nr_keys; i++) {
		bool there = is_there(at, t->key[i]);
		const struct field_cells *cell = &at->b->cell[t->key[i]];

		t->set[i + 1] = (struct label){.there = there};
		if (there)
			t->set[i + 1].value = t->table->field[t->key[i]].type == FIELD_TEXT
				? cell->text[at->row]
				: (uint64_t)cell->integer[at->row];
	}
	r = label_sets_number(&t->sets, t->set, ret);
	if (r < 0)
		return r;
	more = array_reach(t->line, &t->nr_lines, *ret, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->line = more;
	if ((uint64_t)(*ret + 1) * t->nr_columns >= UINT32_MAX)
		return -E2BIG;
	cells = array_reach(t->cell, &t->nr_cells, (uint32_t)((*ret + 1) * t->nr_columns), sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	t->cell = cells;
	if (!t->line[*ret].track)
		t->line[*ret].track = track_of_line(p, t, at, *ret);
	return t->line[*ret].track ? 0 : -ENOMEM;
}

static void put_counter(struct perfetto *p, struct perfetto_cell *cell, uint64_t parent,
	const struct perfetto_row *at, size_t field)
{
	const struct field *f = &at->table->field[field];
	double real = f->type == FIELD_REAL ? at->b->cell[field].real[at->row] : 0;
	int64_t integer = f->type == FIELD_REAL ? 0 : integer_in(at, field);
	uint64_t bits = (uint64_t)integer;

	if (f->type == FIELD_REAL) {
		if (!isfinite(real))
			return;
		memcpy(&bits, &real, sizeof(bits));
	}
	if (cell->track && cell->bits == bits)
		return;
	if (!cell->track)
		cell->track = perfetto_track(&p->packets, at->time,
			&(struct perfetto_track){.parent = parent,
				.name = words(f->name),
				.help = f->help,
				.counter = f,
				.pid = -1});
	cell->bits = bits;
	if (f->type == FIELD_REAL)
		perfetto_real(&p->packets, cell->track, at->time, real);
	else
		perfetto_integer(&p->packets, cell->track, at->time, integer);
}

static int put_counters(struct perfetto *p, struct perfetto_table *t, const struct perfetto_row *at)
{
	bool some = false;
	uint32_t line;
	int r;

	if (t->only && strcmp(text_in(at, t->instance).text, t->only) != 0)
		return 0;
	for (size_t i = 0; i < t->nr_columns && !some; i++)
		some = is_there(at, t->column[i]);
	if (!some)
		return 0;
	r = line_of(p, t, at, &line);
	if (r < 0)
		return r;
	t->line[line].last = at->time;
	for (size_t i = 0; i < t->nr_columns; i++)
		if (is_there(at, t->column[i]))
			put_counter(
				p, &t->cell[line * t->nr_columns + i], t->line[line].track, at, t->column[i]);
	return 0;
}

/* ---- slices ---- */

/* All that a row has beside what stands elsewhere, for the reader who selects the slice. */
static void add_notes(
	struct perfetto *p, const struct perfetto_row *at, const char *const *but, size_t nr_but)
{
	for (size_t i = 0; i < at->table->nr_fields; i++) {
		const struct field *f = &at->table->field[i];
		bool left_out = !is_there(at, i) || f->type == FIELD_TIME;

		for (size_t k = 0; k < nr_but; k++)
			left_out |= !strcmp(f->name, but[k]);
		if (left_out)
			continue;
		if (f->type == FIELD_TEXT && !strcmp(f->name, "data"))
			perfetto_note_json(&p->packets, f->name,
				text_in(at, i)); /* an object: each of its keys is shown */
		else if (f->type == FIELD_TEXT)
			perfetto_note_text(&p->packets, f->name, text_in(at, i));
		else if (f->type == FIELD_INT)
			perfetto_note_integer(&p->packets, f->name, at->b->cell[i].integer[at->row]);
		else if (f->type == FIELD_REAL)
			perfetto_note_real(&p->packets, f->name, at->b->cell[i].real[at->row]);
		else if (at->b->cell[i].flag[at->row])
			perfetto_note_flag(&p->packets, f->name, true);
	}
}

/* What it held is given back. */
static void end_line(struct perfetto *p, const struct perfetto_table *t, uint32_t line, int64_t end)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct perfetto_cell *cell = &t->cell[line * t->nr_columns + i];
		const struct field *f = &t->table->field[t->column[i]];

		if (!cell->track || !cell->bits || f->kind != KIND_GAUGE)
			continue;
		if (f->type == FIELD_REAL)
			perfetto_real(&p->packets, cell->track, MAX(end, t->line[line].last), 0);
		else
			perfetto_integer(&p->packets, cell->track, MAX(end, t->line[line].last), 0);
	}
}

static void end_counters(struct perfetto *p, int64_t number, int64_t end)
{
	for (size_t i = 0; i < p->nr_tables; i++) {
		const struct perfetto_table *t = &p->table[i];

		for (uint32_t line = idmap_get(&t->by_process, (uint64_t)number); line != IDMAP_NONE;
			line = t->line[line].before - 1)
			end_line(p, t, line, end);
	}
}

static bool span_of(const struct perfetto_row *at, int64_t *ret_start, int64_t *ret_end)
{
	size_t wall = field_called(at->table, "wall");
	double s = is_there(at, wall) && at->table->field[wall].type == FIELD_REAL
		? at->b->cell[wall].real[at->row]
		: NAN;

	if (!time_in(at, field_called(at->table, "start"), ret_start))
		return false;
	if (time_in(at, field_called(at->table, "end"), ret_end))
		*ret_end = MAX(*ret_end, *ret_start);
	else if (s >= 0 && s < 4e9)
		*ret_end = *ret_start + (int64_t)llround(s * 1e9);
	else
		*ret_end = *ret_start;
	return true;
}

static int put_process(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at)
{
	static const char *const but[] = {"process", "host", "pid", "name"};
	struct perfetto_text name = text_in(at, field_called(at->table, "name"));
	struct perfetto_node *node;
	int64_t end, number;
	size_t ended = field_called(at->table, "ended");
	uint64_t track;

	if (!is_of_process(t, at) || !span_of(at, &at->time, &end))
		return 0;
	node = node_of(p, at, t->host);
	if (!node)
		return -ENOMEM;
	number = at->b->cell[t->process].integer[at->row];
	track = process_of(p, node, number, at->time,
		(struct perfetto_track){.name = name,
			.pid = at->b->cell[t->pid].integer[at->row],
			.command = text_in(at, field_called(at->table, "command")),
			.start = at->time});
	if (!track)
		return -ENOMEM;
	perfetto_event(&p->packets, PERFETTO_BEGIN, track, at->time, words("process"), name);
	add_notes(p, at, but, ARRAY_SIZE(but));
	perfetto_done(&p->packets);
	perfetto_event(&p->packets, PERFETTO_END, track, end, words(""), words(""));
	perfetto_done(&p->packets);
	if (is_there(at, ended) && at->table->field[ended].type == FIELD_FLAG &&
		at->b->cell[ended].flag[at->row])
		end_counters(p, number, end);
	return 0;
}

/* ---- events ---- */

static bool lane_takes(struct perfetto_lane *l, int64_t start, int64_t end)
{
	while (l->depth && l->end[l->depth - 1] <= start)
		l->depth--;
	return l->depth < DEPTH_MOST && (!l->depth || l->end[l->depth - 1] >= end);
}

/* A lane in which the slice lies within others or beside them; 0: none is left, or no memory. */
static uint64_t lane_of(struct perfetto *p, struct perfetto_node *node, const struct perfetto_row *at,
	bool phase, int64_t end)
{
	uint32_t *nr = &node->nr_lanes[phase], i = 0;
	struct perfetto_lane *lane, *more;
	char name[48];

	while (i < *nr && node->lane[phase][i].track && !lane_takes(&node->lane[phase][i], at->time, end))
		i++;
	if (i >= LANES_MOST)
		return 0;
	more = array_reach(node->lane[phase], nr, i, sizeof(*more));
	if (!more)
		return 0;
	node->lane[phase] = more;
	lane = &more[i];
	if (!lane->track) {
		snprintf(name, sizeof(name), i ? "%s (%u)" : "%s", phase ? "phases" : "states", i + 1);
		lane->track = perfetto_track(&p->packets, at->time,
			&(struct perfetto_track){.parent = node->track,
				.name = words(name),
				.help = phase
					? "Phases that the job told. Those that overlap have several tracks."
					: "What lasted for some time.",
				.rank = phase ? 1 : 3,
				.pid = -1});
	}
	lane->end[lane->depth++] = end;
	return lane->track;
}

static int put_moment(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at)
{
	static const char *const but[] = {"elapsed", "length", "host", "kind", "label"};
	struct perfetto_text kind = text_in(at, field_called(at->table, "kind"));
	struct perfetto_text label = text_in(at, field_called(at->table, "label"));
	struct perfetto_node *node = node_of(p, at, t->host);
	uint64_t track = 0;
	int64_t end;

	if (!node)
		return -ENOMEM;
	if (time_in(at, field_called(at->table, "end"), &end) && end >= at->time)
		track = lane_of(p, node, at, kind.len == 5 && !memcmp(kind.text, "phase", 5), end);
	if (!track && !node->moments)
		node->moments = perfetto_track(&p->packets, at->time,
			&(struct perfetto_track){.parent = node->track,
				.name = words("events"),
				.help = "Marks of the job, and what the recorder saw.",
				.rank = 2,
				.pid = -1});
	perfetto_event(&p->packets, track ? PERFETTO_BEGIN : PERFETTO_INSTANT, track ? track : node->moments,
		at->time, kind, label.len ? label : kind);
	add_notes(p, at, but, ARRAY_SIZE(but));
	perfetto_done(&p->packets);
	if (!track)
		return 0;
	perfetto_event(&p->packets, PERFETTO_END, track, end, words(""), words(""));
	perfetto_done(&p->packets);
	return 0;
}

/* ---- rows ---- */

typedef int put_row(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at);

static int put_row_of_time(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at)
{
	return time_in(at, t->time, &at->time) ? put_counters(p, t, at) : 0;
}

static int put_event(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at)
{
	return time_in(at, t->time, &at->time) ? put_moment(p, t, at) : 0;
}

static put_row *way_of(const struct perfetto_table *t)
{
	if (t->table->domain)
		return t->nr_columns ? put_row_of_time : NULL;
	return !strcmp(t->table->name, "processes") ? put_process
		: !strcmp(t->table->name, "events") ? put_event
						    : NULL;
}

static int add_rows(struct perfetto *p, struct perfetto_table *t, struct perfetto_row *at)
{
	put_row *put = way_of(t);
	int r = 0;

	for (at->row = 0; put && r >= 0 && at->row < at->b->nr_rows; at->row++) {
		r = put(p, t, at);
		if (r >= 0)
			r = perfetto_settle(&p->packets, false);
	}
	return r;
}

static int perfetto_add(void *e, const struct data_table_batch *b)
{
	struct perfetto *p = e;
	size_t i = b->table - p->job->first_table;
	struct perfetto_table *t = &p->table[MIN(i, p->nr_tables)];
	struct perfetto_row at = {.job = p->job, .table = t->table, .b = b};

	if (i >= p->nr_tables && t->table != &p->job->folded[i - p->nr_tables])
		return 0; /* for another format */
	return add_rows(p, t, &at);
}

static int perfetto_close(void *e)
{
	struct perfetto *p = e;
	int r = perfetto_settle(&p->packets, true);

	perfetto_drop(p);
	return r;
}

const struct exporter exporter_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace",
	.also = ".perfetto-trace",
	.help = "a trace for ui.perfetto.dev: processes, phases, marks, counters",
#ifdef HAVE_ZLIB
	.compressions = "zlib,none",
#endif
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.folds = perfetto_folds,
	.open = perfetto_open,
	.add = perfetto_add,
	.close = perfetto_close,
	.drop = perfetto_drop,
};
