/* What the job tells of itself while it is recorded: phases and marks become events of the recording. */
#include "cmd/record.h"

#include "base/owned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sender's clock may be that of another time namespace. What it says is taken when it is before now, and
 * not by more than a message can wait. */
#define WAITS_MOST_NS (10 * NSEC_PER_SEC)

/* Trouble of ours is no reason to spoil the job: then it finds no socket. */
void record_listen(struct recording *r)
{
	job_socket_open(&r->socket, NULL);
}

/* Empty where we have no socket: that of an outer recorder is not ours. */
void record_variables(const struct recording *r, char *ret[static 3])
{
	_cleanup_(freep) char *path = realpath((char *)r->path.data, NULL);
	unsigned nr = 0;

	ret[0] = ret[1] = ret[2] = NULL;
	if (path && asprintf(&ret[nr], "TACHO_RECORDING=%s", path) >= 0)
		nr++;
	if (asprintf(&ret[nr], "TACHO_SOCKET=%s", r->socket.fd < 0 ? "" : r->socket.address.sun_path) < 0)
		ret[nr] = NULL;
}

static bool is_member(void *arg, pid_t pid)
{
	const struct recording *r = arg;

	return engine_is_member(r->engine, pid);
}

static void take(void *arg, const struct job_message *m, pid_t pid)
{
	struct recording *r = arg;
	int64_t elapsed = engine_elapsed(r->engine),
		age = m->time_ns < 0 ? -1 : env_now(r->env, ENV_MONOTONIC) - m->time_ns;
	struct pair memory[4];
	char numbers[64];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_add(&p, "name", m->text, m->text_len);
	if (m->data_len)
		pairs_add(&p, "data", m->data, m->data_len);
	pairs_num(&p, "pid", pid);
	if (age >= 0 && age <= WAITS_MOST_NS && age <= elapsed)
		pairs_num(&p, "sent_ns", elapsed - age);
	engine_tell(r->engine, m->kind, &p);
}

void record_hear(struct recording *r)
{
	job_socket_read(&r->socket, env_now(r->env, ENV_MONOTONIC), is_member, take, r);
}

static void tell_number(struct recording *r, const char *kind, uint64_t number)
{
	struct pair memory[1];
	char text[32];
	struct pairs p;

	if (!number)
		return;
	pairs_init(&p, memory, ARRAY_SIZE(memory), text, sizeof(text));
	pairs_num(&p, "number", (int64_t)MIN(number, (uint64_t)INT64_MAX));
	engine_tell(r->engine, kind, &p);
}

void record_listen_end(struct recording *r)
{
	if (r->socket.fd < 0)
		return;
	record_hear(r);
	tell_number(r, "marks.dropped", r->socket.dropped);
	tell_number(r, "marks.refused", r->socket.refused);
	job_socket_close(&r->socket);
}
