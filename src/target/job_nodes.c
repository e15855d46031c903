/* Which hosts a job has, as its batch system names them.
 *
 * PBS, OAR, LSF and SGE keep a file with a line for each slot, hosts repeated; PBS's lies on the first node
 * alone, so users copy it to where all nodes can read it and set PBS_NODEFILE_LOCAL. SLURM gives a list in
 * short form
 * ("node[1-4]"), which the recording keeps as it is. */
#include "target/job.h"

#include "node/host_list.h"

#include <stdio.h>
#include <string.h>

#define FILE_MOST (16u << 20)

enum host_form { FORM_FILE, FORM_LIST, FORM_WORDS };

static const struct {
	enum scheduler kind;
	const char *variable;
	enum host_form form;
} place[] = {
	{SCHEDULER_PBS, "PBS_NODEFILE_LOCAL", FORM_FILE},
	{SCHEDULER_PBS, "PBS_NODEFILE", FORM_FILE},
	{SCHEDULER_OAR, "OAR_NODEFILE", FORM_FILE},
	{SCHEDULER_OAR, "OAR_NODE_FILE", FORM_FILE},
	{SCHEDULER_SLURM, "SLURM_JOB_NODELIST", FORM_LIST},
	{SCHEDULER_SLURM, "SLURM_NODELIST", FORM_LIST},
	{SCHEDULER_LSF, "LSB_DJOB_HOSTFILE", FORM_FILE},
	{SCHEDULER_LSF, "LSB_HOSTS", FORM_WORDS},
	{SCHEDULER_SGE, "PE_HOSTFILE", FORM_FILE},
};

/* A component of a heterogeneous job of SLURM has a list of its own. */
static int add_components(struct env *env, struct host_list *ret)
{
	int r = 0;

	for (unsigned i = 0; r == 0; i++) {
		char name[64];
		const char *list;

		snprintf(name, sizeof(name), "SLURM_JOB_NODELIST_HET_GROUP_%u", i);
		list = env_getenv(env, name);
		if (!list)
			break;
		r = host_list_add_list(ret, list);
	}
	return r;
}

static int add_words(struct host_list *ret, const char *words)
{
	int r = 0;

	for (const char *at = words + strspn(words, " "); r == 0 && *at; at += strspn(at, " ")) {
		r = host_list_add(ret, at, strcspn(at, " "));
		at += strcspn(at, " ");
	}
	return r;
}

int job_hosts_in_file(struct env *env, const char *path, struct host_list *ret)
{
	_cleanup_(freep) char *text = malloc(FILE_MOST);
	ssize_t n = text ? env_slurp(env, path + strspn(path, "/"), text, FILE_MOST) : -ENOMEM;

	return n < 0 ? (int)n : host_list_add_file(ret, text, (size_t)n);
}

int job_hosts(struct env *env, enum scheduler kind, struct host_list *ret)
{
	int r = kind == SCHEDULER_SLURM ? add_components(env, ret) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(place) && r == 0 && !ret->nr; i++) {
		const char *value = place[i].kind == kind ? env_getenv(env, place[i].variable) : NULL;

		if (!value || !*value)
			continue;
		if (place[i].form == FORM_FILE)
			r = job_hosts_in_file(env, value, ret);
		else
			r = place[i].form == FORM_LIST ? host_list_add_list(ret, value)
						       : add_words(ret, value);
		/* PBS names a file that only its first node has. */
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

/* What does not fit is left out whole. */
static void join(const struct host_list *hosts, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < hosts->nr; i++) {
		size_t n = strlen(hosts->name[i]);

		if (used + n + 2 > size)
			continue;
		if (used)
			out[used++] = ',';
		memcpy(out + used, hosts->name[i], n + 1);
		used += n;
	}
}

void job_nodes(struct env *env, enum scheduler kind, char *out, size_t size)
{
	struct host_list hosts = {0};

	out[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place) && !out[0]; i++) {
		const char *value = place[i].kind == kind ? env_getenv(env, place[i].variable) : NULL;

		if (value && place[i].form == FORM_LIST)
			snprintf(out, size, "%s", value);
	}
	if (!out[0] && job_hosts(env, kind, &hosts) == 0)
		join(&hosts, out, size);
	host_list_release(&hosts);
}
