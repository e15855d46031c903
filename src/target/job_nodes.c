/* Which hosts a job has, as its batch system names them.
 *
 * PBS and OAR keep a file with a line for each slot, hosts repeated; PBS's lies on the first node alone, so
 * users copy it to where all nodes can read it and set PBS_NODEFILE_LOCAL. SLURM gives a list as text, which
 * is kept as it is ("node[1-4]"). */
#include "target/job.h"

#include <stdio.h>
#include <string.h>

static const struct {
	enum scheduler kind;
	const char *variable;
	bool is_file;
} place[] = {
	{SCHEDULER_PBS, "PBS_NODEFILE_LOCAL", true},
	{SCHEDULER_PBS, "PBS_NODEFILE", true},
	{SCHEDULER_OAR, "OAR_NODEFILE", true},
	{SCHEDULER_OAR, "OAR_NODE_FILE", true},
	{SCHEDULER_SLURM, "SLURM_JOB_NODELIST", false},
	{SCHEDULER_SLURM, "SLURM_NODELIST", false},
};

static bool listed(const char *list, const char *host, size_t len)
{
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && !memcmp(at, host, len))
			return true;
	return false;
}

/* Each host once, in the order of the file. What does not fit is left out whole. */
static void unite(const char *text, char *out, size_t size)
{
	size_t used = 0;

	for (const char *at = text; *at;) {
		size_t n = strcspn(at, " \t\r\n");

		if (n && used + n + 2 <= size && !memchr(at, ',', n) && !listed(out, at, n)) {
			if (used)
				out[used++] = ',';
			memcpy(out + used, at, n);
			used += n;
			out[used] = 0;
		}
		at += n;
		at += strspn(at, " \t\r\n");
	}
}

void job_nodes(struct env *env, enum scheduler kind, char *out, size_t size)
{
	char text[16384];

	out[0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(place) && !out[0]; i++) {
		const char *value = place[i].kind == kind ? env_getenv(env, place[i].variable) : NULL;
		ssize_t n;
		int handle;

		if (!value || !*value)
			continue;
		if (!place[i].is_file) {
			snprintf(out, size, "%s", value);
			continue;
		}
		handle = env_open(env, value + strspn(value, "/"));
		n = handle < 0 ? handle : env_read(env, handle, text, sizeof(text) - 1);
		env_close(env, handle);
		text[MAX(n, 0)] = 0;
		unite(text, out, size);
	}
}
