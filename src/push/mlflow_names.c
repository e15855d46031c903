/* Names of metrics in MLflow: our own ones below "tacho/", those of the ProcessMetricsMonitor, and those of
 * MLflow's own system metrics. The two tables are all that is known of foreign names. */
#include "push/mlflow.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define MIB (1.0 / (1 << 20))
#define MB 1e-6

/* ---- the job's processes, as ProcessMetricsMonitor has them ---- */

/* What is 100 %: what the job may use. The rows that tacho-push was told another total are changed. */
enum { ROW_BUSY, ROW_HELD };

static const struct push_name process_name[] = {
	[ROW_BUSY] = {"cpu_usage_percentage", "tree", "tree.cpu.of_allocation", .scale = 100},
	[ROW_HELD] = {"memory_usage_percentage", "tree", "tree.rss.of_allocation", .scale = 100},
	{"memory_rss_megabytes", "process", "proc.mem.rss", .folded = true, .scale = MIB},
	{"memory_vms_megabytes", "process", "proc.mem.vms", .folded = true, .scale = MIB},
	{"memory_uss_megabytes", "process", "proc.mem.uss_now", .folded = true, .scale = MIB},
	{"num_threads", "process", "proc.threads", .folded = true},
	{"num_fds", "process", "proc.fds", .folded = true},
	{"io_read_megabytes", "process", "proc.io.read_bytes", .folded = true, .scale = MIB},
	{"io_write_megabytes", "process", "proc.io.write_bytes", .folded = true, .scale = MIB},
	{NULL},
};

static double total_of(const struct push *p, double given, const char *recorded)
{
	const char *text = meta_text(p->run->meta, recorded);
	double value = given;

	if (!(given > 0) && !parse_decimal(text, &value))
		value = 0;
	return value;
}

/* The same every time it is asked for: the options do not change. */
static const struct push_name *process_names(const struct push *p)
{
	static struct push_name name[ARRAY_SIZE(process_name)];
	bool alone = p->options->no_children;
	double cpus = total_of(p, p->options->total_cpus, "limits.cpus");
	double memory = total_of(p, p->options->total_memory, "limits.memory_bytes");

	memcpy(name, process_name, sizeof(name));
	for (size_t i = 0; alone && i < ARRAY_SIZE(name) - 1; i++)
		name[i].folded = false;
	if (alone || p->options->total_cpus > 0) {
		name[ROW_BUSY].table = alone ? "process" : "tree";
		name[ROW_BUSY].metric = alone ? "proc.cpu.cores" : "tree.cores";
		name[ROW_BUSY].scale = cpus > 0 ? 100 / cpus : 100;
	}
	if (alone || p->options->total_memory > 0) {
		name[ROW_HELD].table = "process";
		name[ROW_HELD].metric = "proc.mem.rss";
		name[ROW_HELD].folded = !alone;
		name[ROW_HELD].scale = memory > 0 ? 100 / memory : 100;
	}
	return name;
}

/* ---- the node, as MLflow's system metrics have it ---- */

/* `attribute`: "instance=" only of that one; "number" the instance's number stands for the #; "growth" since
 * the first value that was sent. */
#define OF_ROOT "instance=/"
#define NUMBERED "number"
#define GROWTH "growth"

static const struct push_name system_name[] = {
	{"cpu_utilization_percentage", "cpu", "cpu.busy", .folded = true, .scale = 100},
	{"system_memory_usage_megabytes", "node", "mem.used", .scale = MB},
	{"system_memory_usage_percentage", "node", "mem.used_ratio", .scale = 100},
	{"disk_usage_percentage", "filesystem", "fs.used_ratio", .scale = 100, .attribute = OF_ROOT},
	{"disk_usage_megabytes", "filesystem", "fs.used", .scale = MB, .attribute = OF_ROOT},
	{"disk_available_megabytes", "filesystem", "fs.available", .scale = MB, .attribute = OF_ROOT},
	{"network_receive_megabytes", "net", "net.rx.bytes", .folded = true, .scale = MB,
		.attribute = GROWTH},
	{"network_transmit_megabytes", "net", "net.tx.bytes", .folded = true, .scale = MB,
		.attribute = GROWTH},
	{"gpu_#_utilization_percentage", "gpu", "gpu.util", .scale = 100, .attribute = NUMBERED},
	{"gpu_#_memory_usage_percentage", "gpu", "gpu.memory.used_ratio", .scale = 100,
		.attribute = NUMBERED},
	{"gpu_#_memory_usage_megabytes", "gpu", "gpu.memory.used", .scale = MB, .attribute = NUMBERED},
	{"gpu_#_power_usage_watts", "gpu", "gpu.watts", .attribute = NUMBERED},
	{NULL},
};

/* ---- which are wanted ---- */

enum mlflow_as mlflow_as_of(const struct push_options *o)
{
	return !o->as			    ? MLFLOW_AS_TACHO
		: !strcmp(o->as, "process") ? MLFLOW_AS_PROCESS
		: !strcmp(o->as, "system")  ? MLFLOW_AS_SYSTEM
					    : MLFLOW_AS_TACHO;
}

const char *mlflow_prefix(const struct push_options *o)
{
	enum mlflow_as as = mlflow_as_of(o);

	return o->prefix ? o->prefix : as == MLFLOW_AS_PROCESS ? "process/" : "tacho/";
}

const struct push_name *mlflow_names(const struct push *p)
{
	switch (mlflow_as_of(p->options)) {
	case MLFLOW_AS_PROCESS:
		return process_names(p);
	case MLFLOW_AS_SYSTEM:
		return system_name;
	default:
		return NULL;
	}
}

/* ---- keys ---- */

size_t mlflow_cut(const char *text, size_t len, size_t most)
{
	if (len <= most)
		return len;
	while (most && ((unsigned char)text[most] & 0xc0) == 0x80)
		most--;
	return most;
}

static bool is_allowed(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		(c && strchr("_-. :/", c));
}

/* A key is a path to MLflow: no empty part, no "." and "..". */
static bool is_plain_path(const char *key)
{
	for (const char *part = key;;) {
		size_t n = strcspn(part, "/");

		if (!n || (n == 1 && *part == '.') || (n == 2 && !memcmp(part, "..", 2)))
			return false;
		if (!part[n])
			return true;
		part += n + 1;
	}
}

void mlflow_allowed(const char *text, size_t most, char *ret)
{
	size_t n = 0;
	bool changed = false;
	char number[16];

	for (const char *p = text; *p && n < most; p++) {
		bool ok = is_allowed(*p) && *p != ':'; /* servers on Windows take none */

		changed |= !ok;
		if (ok || ((unsigned char)*p & 0xc0) != 0x80)
			ret[n++] = ok ? *p : '_';
	}
	changed |= strlen(text) > most;
	ret[n] = 0;
	if (!is_plain_path(ret)) {
		changed = true;
		for (char *p = ret; *p; p++)
			*p = *p == '/' || *p == '.' ? '_' : *p;
	}
	if (!changed)
		return;
	snprintf(number, sizeof(number), "-%06x", (unsigned)(hash_bytes(text, strlen(text)) & 0xffffff));
	n = MIN(n, most - strlen(number));
	snprintf(ret + n, sizeof(number), "%s", number);
}

/* "/" of a mount is no part of a path here: '_', or where that would be another's name what is not allowed,
 * so that mlflow_allowed() tells them apart. */
static void add_instance(struct buf *out, const struct push_series *s)
{
	char name[MLFLOW_KEY_MOST + 1], part[100], slash;

	if (!s->instance)
		return;
	snprintf(name, sizeof(name), "%s", s->instance);
	slash = strchr(name, '_') ? ':' : '_';
	for (char *p = name; *p; p++)
		*p = *p == '/' ? slash : *p;
	mlflow_allowed(name, sizeof(part) - 1, part);
	buf_addf(out, "/%s", part);
	if (s->pid)
		buf_addf(out, "-%lld", (long long)s->pid);
}

/* Digits at the end of "nvidia-0". */
static const char *number_of(const char *instance)
{
	const char *end = instance ? instance + strlen(instance) : NULL;

	while (end && end > instance && end[-1] >= '0' && end[-1] <= '9')
		end--;
	return end && *end ? end : NULL;
}

/* Of the usual choice it is NULL: these go by our own names. */
static const struct push_name *foreign_of(const struct push_series *s)
{
	return s->as && !s->as->usual ? s->as : NULL;
}

static void add_foreign(const struct mlflow *m, struct buf *out, const struct push_series *s)
{
	const char *name = s->as->name, *number = strchr(name, '#');

	buf_adds(out, m->as == MLFLOW_AS_SYSTEM ? "system/" : m->prefix);
	if (m->nodes)
		buf_addf(out, "node_%u/", s->node);
	else if (m->node)
		buf_adds(out, m->node);
	if (number)
		buf_addf(out, "%.*s%s%s", (int)(number - name), name, number_of(s->instance), number + 1);
	else
		buf_adds(out, name);
}

static bool is_sent(const struct mlflow *m, const struct push_series *s)
{
	const char *which = foreign_of(s) ? s->as->attribute : NULL;

	if (!foreign_of(s))
		return true;
	if (m->as == MLFLOW_AS_SYSTEM && m->foreign_system)
		return false;
	if (m->as == MLFLOW_AS_PROCESS && m->options->no_children && s->pid != m->first_pid)
		return false;
	if (which && !strncmp(which, "instance=", 9))
		return s->instance && !strcmp(s->instance, which + 9);
	return !which || strcmp(which, NUMBERED) != 0 ||
		(number_of(s->instance) && str_starts(s->instance, "nvidia"));
}

void mlflow_key(const struct mlflow *m, const struct push_series *s, char ret[static MLFLOW_KEY_MOST + 1])
{
	char memory[2 * MLFLOW_KEY_MOST];
	struct buf key;

	*ret = 0;
	if (!is_sent(m, s))
		return;
	buf_init_fixed(&key, memory, sizeof(memory));
	if (foreign_of(s)) {
		add_foreign(m, &key, s);
	} else {
		buf_adds(&key, m->prefix);
		if (m->nodes)
			buf_addf(&key, "node_%u/", s->node);
		else if (m->node)
			buf_adds(&key, m->node);
		buf_adds(&key, s->name);
		add_instance(&key, s);
	}
	mlflow_allowed((const char *)key.data, MLFLOW_KEY_MOST, ret);
}
