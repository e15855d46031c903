/* What that tool writes beside its lists: which processes there were, and on what hardware. */
#include "export/perfmon.h"

#include "base/json.h"
#include "base/str.h"
#include "export/text.h"
#include "query/summary.h"

#include <math.h>
#include <string.h>

/* ---- processes ---- */

#define PIDS (INT64_C(1) << 22) /* as many as Linux gives out */

static bool set_has(const uint64_t *set, int64_t pid)
{
	return pid >= 0 && pid < PIDS && set[pid / 64] >> pid % 64 & 1;
}

static void set_add(uint64_t *set, int64_t pid)
{
	if (pid >= 0 && pid < PIDS)
		set[pid / 64] |= UINT64_C(1) << pid % 64;
}

struct process_about { /* of a process */
	bool has_pid, has_ppid;
	int64_t pid, ppid;
	const char *name, *exe, *command; /* NULL: not known */
	double start;			  /* s since 1970; NAN: not known */
};

static void add_parent(struct buf *out, const struct process_about *s)
{
	struct json j;
	char key[24], text[EXPORT_TEXT];

	json_init(&j, out, false);
	snprintf(key, sizeof(key), "%lld", (long long)s->pid);
	json_object(&j, key);
	json_int(&j, "pid", s->pid);
	if (s->has_ppid)
		json_int(&j, "ppid", s->ppid);
	json_str(&j, "name", s->name);
	json_str(&j, "exe", s->exe);
	json_str(&j, "cmdline", s->command);
	if (isfinite(s->start))
		json_raw(&j, "create_time", text, format_real(text, s->start));
	json_end_object(&j);
}

static void add_child(struct buf *out, struct buf *text, const struct process_about *s)
{
	buf_reset(text);
	buf_addf(text, "pid=%lld, ", (long long)s->pid);
	if (s->has_ppid)
		buf_addf(text, "ppid=%lld, ", (long long)s->ppid);
	buf_addf(text, "name='%s', cmdline='%s'", s->name ? s->name : "", s->command ? s->command : "");
	add_json_text(out, (char *)text->data, text->len);
	out->err = out->err ? out->err : text->err;
}

/* A process whose parent is not in the job is a "parent" there; the others are "children". */
static int add_process(struct perfmon *p, size_t number, const struct process_about *s)
{
	struct perfmon_host *host = &p->host[number];
	bool parent = s->pid >= 0 && s->pid < PIDS && !(s->has_ppid && set_has(p->pids, s->ppid)) &&
		!set_has(p->parents, s->pid);
	struct spool *to = parent ? &host->parents : &host->children;

	set_add(p->pids, s->pid);
	if (parent)
		set_add(p->parents, s->pid);
	if (to->nr_pieces || to->held.len)
		buf_addch(&to->held, ',');
	if (parent)
		add_parent(&to->held, s);
	else
		add_child(&to->held, &p->text, s);
	return spool_settle(to, &p->file);
}

static int sets_of(struct perfmon *p, size_t host)
{
	int r = 0;

	if (p->pids && p->pids_host == host)
		return 0;
	if (p->pids) {
		r = spool_rest(&p->host[p->pids_host].parents, &p->file);
		if (r >= 0)
			r = spool_rest(&p->host[p->pids_host].children, &p->file);
	}
	free(p->pids);
	free(p->parents);
	p->pids = calloc(PIDS / 64, sizeof(*p->pids));
	p->parents = calloc(PIDS / 64, sizeof(*p->parents));
	p->pids_host = host;
	return p->pids && p->parents ? r : -ENOMEM;
}

static const char *text_at(const struct perfmon *p, const struct data_table *f, const char *name,
	const struct data_table_batch *b, uint32_t row)
{
	size_t at = legacy_csv_field(f, name);
	struct texts t;

	if (at == NO_FIELD || f->field[at].type != FIELD_TEXT || !cell_valid(&b->cell[at], row))
		return NULL;
	t = export_texts(p->job, b->table, at);
	return b->cell[at].text[row] < t.nr ? t.text[b->cell[at].text[row]] : NULL;
}

static bool integer_at(const struct data_table *f, const char *name, const struct data_table_batch *b,
	uint32_t row, int64_t *ret)
{
	size_t at = legacy_csv_field(f, name);
	bool there = at != NO_FIELD && (f->field[at].type == FIELD_INT || f->field[at].type == FIELD_TIME) &&
		cell_valid(&b->cell[at], row);

	*ret = there ? b->cell[at].integer[row] : 0;
	return there;
}

int perfmon_processes(struct perfmon *p, const struct data_table *table, const struct data_table_batch *b)
{
	int r = 0;

	for (uint32_t row = 0; row < b->nr_rows && r >= 0; row++) {
		const char *host = text_at(p, table, "host", b, row);
		struct process_about s = {.name = text_at(p, table, "name", b, row),
			.exe = text_at(p, table, "exe", b, row),
			.command = text_at(p, table, "command", b, row),
			.start = NAN};
		int64_t start;
		size_t number;

		s.has_pid = integer_at(table, "pid", b, row, &s.pid);
		s.has_ppid = integer_at(table, "ppid", b, row, &s.ppid);
		if (integer_at(table, "start", b, row, &start))
			s.start = (double)start / 1e9;
		if (!s.has_pid)
			continue;
		r = perfmon_host_find(p, perfmon_recording(b, row), host ? host : "", &number);
		if (r >= 0)
			r = sets_of(p, number);
		if (r >= 0)
			r = add_process(p, number, &s);
	}
	return r;
}

void perfmon_hosts_release(struct perfmon *p)
{
	for (size_t i = 0; i < p->nr_hosts; i++) {
		spool_release(&p->host[i].parents);
		spool_release(&p->host[i].children);
		free(p->host[i].name);
		free(p->host[i].key);
	}
	free(p->host);
	free(p->pids);
	free(p->parents);
}

/* ---- hardware ---- */

static void add_fact(struct json *j, const char *name, const char *value)
{
	if (*value && strlen(value) < 19 && strspn(value, "0123456789") == strlen(value) &&
		(*value != '0' || !value[1])) {
		json_raw(j, name, value, strlen(value));
		return;
	}
	json_name(j, name, value);
}

static void add_gpu(struct json *j, const struct summary_gpu *g)
{
	static const struct {
		const char *name;
		enum gpu_text_id text;
	} row[] = {{"instance", GPU_TEXT_INSTANCE}, {"vendor", GPU_TEXT_VENDOR}, {"name", GPU_TEXT_NAME},
		{"uuid", GPU_TEXT_UUID}, {"pci", GPU_TEXT_PCI}};
	const struct figure *memory = &g->figure[GPU_FIG_MEMORY_TOTAL];

	json_object(j, NULL);
	if (g->index >= 0)
		json_int(j, "index", g->index);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (g->text[row[i].text])
			add_fact(j, row[i].name, g->text[row[i].text]);
	if (!memory->why)
		json_int(j, "memory_total", round_i64(memory->value));
	json_end_object(j);
}

/* The key of a recording's host as in the other files; it need not have ticks. */
static int key_of(struct perfmon *p, const struct summary *node, size_t recording, size_t *ret)
{
	struct buf name;
	int r;

	buf_init(&name, SIZE_MAX / 2);
	if (node->host)
		utf8_escape(&name, node->host, strlen(node->host));
	r = name.err ? name.err : perfmon_host_find(p, (uint32_t)recording, (char *)name.data, ret);
	buf_release(&name);
	return r;
}

static void add_node(struct json *j, const char *key, const struct summary *node)
{
	json_object(j, key);
	for (size_t i = 0; i < node->nr_hardware; i++)
		add_fact(j, node->hardware[i].name, node->hardware[i].value);
	json_array(j, "gpus");
	for (size_t i = 0; i < node->nr_gpus; i++)
		add_gpu(j, &node->gpu[i]);
	json_end_array(j);
	json_end_object(j);
}

static int add_nodes(struct perfmon *p, const struct summary *s, struct json *j)
{
	const struct summary *node = s->node ? s->node : s;
	size_t nr = s->node ? s->nr_nodes : 1;
	_cleanup_(freep) size_t *host = calloc(nr + 1, sizeof(*host));
	int r = host ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = key_of(p, &node[i], i, &host[i]);
	if (r >= 0)
		r = perfmon_name_hosts(p);
	json_object(j, NULL);
	json_array(j, "host_names");
	for (size_t i = 0; i < nr && r >= 0; i++)
		json_str(j, NULL, p->host[host[i]].key);
	json_end_array(j);
	for (size_t i = 0; i < nr && r >= 0; i++)
		add_node(j, p->host[host[i]].key, &node[i]);
	json_end_object(j);
	buf_addch(j->out, '\n');
	return r;
}

int perfmon_metadata(struct perfmon *p, const struct summary *s)
{
	struct outlet out = {0};
	struct json j;
	int r, fd = -1;

	buf_reset(&p->text);
	json_init(&j, &p->text, true);
	r = add_nodes(p, s, &j);
	if (r >= 0)
		r = p->text.err;
	if (r >= 0)
		r = fd = legacy_csv_create(p->job, "meta_data.json");
	if (r >= 0)
		r = outlet_open(&out, fd);
	if (r >= 0)
		r = outlet_add(&out, p->text.data, p->text.len);
	if (r >= 0)
		r = outlet_flush(&out);
	outlet_release(&out);
	if (fd >= 0 && close(fd) < 0 && r >= 0)
		r = -errno;
	return r;
}
