/* A list of counters, searched from end to end: films have tens of them. */
#include "env/counters.h"

#include "base/str.h"
#include "base/text.h"
#include "env/script.h"

#include <linux/perf_event.h>
#include <string.h>

static const char *const mode_name[NR_COUNTER_MODES] = {
	[MODE_ANY] = "", [MODE_USER] = "u", [MODE_KERNEL] = "k", [MODE_BOTH] = "uk"};

void env_counters_release(struct env_counters *c)
{
	free(c->line);
	*c = (struct env_counters){0};
}

struct counter_key counter_key_of(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (struct counter_key){
		.mode = attr->exclude_kernel ? MODE_USER
			: attr->exclude_user ? MODE_KERNEL
					     : MODE_BOTH,
		.type = attr->type,
		.config = {attr->config, attr->config1, attr->config2},
		.pid = pid,
		.cpu = cpu,
	};
}

static bool keys_equal(const struct counter_key *a, const struct counter_key *b)
{
	return a->mode == b->mode && a->any_type == b->any_type && a->any_config == b->any_config &&
		a->any_pid == b->any_pid && a->any_cpu == b->any_cpu && a->type == b->type &&
		!memcmp(a->config, b->config, sizeof(a->config)) && a->pid == b->pid && a->cpu == b->cpu;
}

ssize_t env_counters_find(const struct env_counters *c, const struct counter_key *key)
{
	for (size_t i = 0; i < c->nr; i++)
		if (keys_equal(&c->line[i].key, key))
			return (ssize_t)i;
	return -ENOENT;
}

ssize_t env_counters_make(struct env_counters *c, const struct counter_key *key)
{
	ssize_t at = env_counters_find(c, key);
	void *more;

	if (at >= 0)
		return at;
	if (c->nr == c->cap) {
		more = reallocarray(c->line, c->cap ? c->cap * 2 : 16, sizeof(*c->line));
		if (!more)
			return -ENOMEM;
		c->line = more;
		c->cap = c->cap ? c->cap * 2 : 16;
	}
	c->line[c->nr] = (struct counter_line){.key = *key};
	return (ssize_t)c->nr++;
}

/* How exactly the line matches; -1: it does not. The mode counts most: a kernel that counts only user mode
 * refuses the others for all events. */
static int exactness(const struct counter_key *line, const struct counter_key *asked)
{
	if ((line->mode && line->mode != asked->mode) || (!line->any_type && line->type != asked->type) ||
		(!line->any_config && memcmp(line->config, asked->config, sizeof(line->config)) != 0) ||
		(!line->any_pid && line->pid != asked->pid) || (!line->any_cpu && line->cpu != asked->cpu))
		return -1;
	return (line->mode ? 16 : 0) + (line->any_config ? 0 : 8) + (line->any_type ? 0 : 4) +
		(line->any_pid ? 0 : 2) + (line->any_cpu ? 0 : 1);
}

ssize_t env_counters_match(const struct env_counters *c, const struct counter_key *asked)
{
	ssize_t best = -ENOENT;
	int most = -1;

	for (size_t i = 0; i < c->nr; i++) {
		int n = exactness(&c->line[i].key, asked);

		if (n > most) {
			most = n;
			best = (ssize_t)i;
		}
	}
	return best;
}

/* ---- the text ---- */

static bool parse_word(struct text t, uint64_t *ret)
{
	char copy[24], *end;

	if (!t.len || t.len >= sizeof(copy) || t.p[0] < '0' || t.p[0] > '9')
		return false;
	memcpy(copy, t.p, t.len);
	copy[t.len] = 0;
	if (!text_starts(t, "0x"))
		return parse_u64(copy, ret);
	errno = 0;
	*ret = strtoull(copy + 2, &end, 16);
	return t.len > 2 && copy[2] != '-' && copy[2] != '+' && !*end && !errno;
}

bool counter_parse_type(struct counter_key *key, const char *word)
{
	struct text mode = text_of(word), type = text_cut(&mode, ':');
	bool has_mode = type.len < strlen(word);
	uint64_t v = 0;

	key->any_type = text_is(type, "*");
	if (!key->any_type && (!parse_word(type, &v) || v > UINT32_MAX))
		return false;
	key->type = (uint32_t)v;
	for (int i = MODE_ANY + 1; has_mode && i < NR_COUNTER_MODES; i++)
		if (text_is(mode, mode_name[i]))
			key->mode = (enum counter_mode)i;
	return !has_mode || key->mode != MODE_ANY;
}

bool counter_parse_config(struct counter_key *key, const char *word)
{
	struct text rest = text_of(word);

	key->any_config = !strcmp(word, "*");
	if (key->any_config)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(key->config) && (rest.len || !i); i++)
		if (!parse_word(text_cut(&rest, ':'), &key->config[i]))
			return false;
	return !rest.len && word[strlen(word) - 1] != ':';
}

static bool parse_number(const char *word, bool *ret_any, int *ret)
{
	int64_t v = 0;

	*ret_any = !strcmp(word, "*");
	if (!*ret_any && (!parse_i64n(word, strlen(word), &v) || v < -1 || v > INT32_MAX))
		return false;
	*ret = (int)v;
	return true;
}

bool counter_parse_place(struct counter_key *key, const char *pid, const char *cpu)
{
	return parse_number(pid, &key->any_pid, &key->pid) && parse_number(cpu, &key->any_cpu, &key->cpu);
}

void counter_write(struct buf *out, const struct counter_line *line)
{
	const struct counter_key *k = &line->key;

	buf_addf(out, "%s %u", line->error ? "counter_error" : "counter", k->type);
	buf_addf(out, k->mode ? ":%s" : "%s", mode_name[k->mode]);
	buf_addf(out, " 0x%llx", (unsigned long long)k->config[0]);
	if (k->config[1] || k->config[2])
		buf_addf(out, ":0x%llx", (unsigned long long)k->config[1]);
	if (k->config[2])
		buf_addf(out, ":0x%llx", (unsigned long long)k->config[2]);
	buf_addf(out, " %d %d", k->pid, k->cpu);
	if (line->error)
		buf_addf(out, " %s\n", script_error_name(-line->error));
	else
		buf_addf(out, " %llu %llu %llu\n", (unsigned long long)line->count.value,
			(unsigned long long)line->count.enabled_ns,
			(unsigned long long)line->count.running_ns);
}
