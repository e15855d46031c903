/* What is written about a member when it appears and when it has become another program: its identity, and
 * the groups it is in. */
#include "engine/internal.h"

#include "base/redact.h"

#include <string.h>

void announce_groups(struct engine *e, const char *key, uint64_t groups)
{
	size_t from = e->groups_len, at = from;

	for_each_group(groups, g)
	{
		size_t n = strlen(e->feed.group[g].name);

		if (at + n + 1 > sizeof(e->groups))
			break;
		memcpy(e->groups + at, e->feed.group[g].name, n);
		at += n;
		e->groups[at++] = 0;
	}
	e->groups_len = at;
	pairs_add(&e->pairs, key, e->groups + from, at > from ? at - from - 1 : 0);
}

void announce_begin(struct engine *e)
{
	pairs_reset(&e->pairs);
	e->groups_len = 0;
}

/* After an exec the former value is wrong: where the new one is not known, an empty one replaces it. */
static void add_program(
	struct pairs *p, const struct member *m, const char *key, const void *value, ssize_t n)
{
	if (n > 0)
		pairs_add(p, key, value, (size_t)n);
	else if (m->replaced)
		pairs_add(p, key, "", 0);
}

static void add_image(struct engine *e, const struct member *m)
{
	struct pairs *p = &e->pairs;
	bool cut = false;
	uint32_t uid;

	if (!m->departing && (m->bound || !m->ended)) { /* it can still be read */
		ssize_t n = process_cmdline(e->env, m->pid, e->cmdline, sizeof(e->cmdline), &cut);

		if (n > 0 && e->opt.redact)
			n = (ssize_t)redact_line(e->opt.redact, e->cmdline, (size_t)n, sizeof(e->cmdline));
		add_program(p, m, "cmdline", e->cmdline, n);
		if (cut)
			pairs_num(p, "cmdline_cut", 1);
		add_program(p, m, "exe", e->exe, process_exe(e->env, m->pid, e->exe, sizeof(e->exe)));
		if (process_uid(e->processes, (uint32_t)(m - e->tree.member), m->pid, &uid) == 0)
			pairs_num(p, "uid", uid);
	} else {
		add_program(p, m, "cmdline", NULL, 0);
		add_program(p, m, "exe", NULL, 0);
		if (m->record.nr)
			pairs_num(p, "uid", m->record.uid);
	}
}

static void identity(struct engine *e, const struct member *m)
{
	struct pairs *p = &e->pairs;

	announce_begin(e);
	pairs_num(p, "pid", m->pid);
	pairs_num(p, "ppid", m->ppid);
	pairs_num(p, "start_ns", engine_time(e, m->born_ns));
	if (m->late)
		pairs_num(p, "late", 1);
	if (!m->brief)
		add_image(e, m);
	pairs_str(p, "name", m->name);
	if (m->execs)
		pairs_num(p, "execs", m->execs);
	if (m->peak_least)
		pairs_num(p, "execs_least", m->peak_least);
	if (e->scopes && m->groups)
		announce_groups(e, "groups", m->groups);
}

void member_announce(struct engine *e, uint32_t slot)
{
	struct member *m = &e->tree.member[slot];

	identity(e, m);
	if (!m->announced && m->pid == e->root)
		e->as_started = !strcmp(m->name, e->program);
	m->announced = true;
	m->announced_ns = env_now(e->env, ENV_MONOTONIC);
	m->identity_stale = m->brief;
	m->replaced = m->regrouped = false;
	e->sink.instance(e->sink.arg, e->process_set, m->bound ? slot : UINT32_MAX, m->id,
		engine_time(e, m->born_ns), &e->pairs);
}
