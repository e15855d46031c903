/* The list of collectors, in the order in which they are sampled. A new one is its file and a line here.
 * Those about the job itself come first: they are there from its first moment on, the node's follow. */
#include "collect/collector.h"

#include <string.h>

extern const struct collector collector_process, collector_tree, collector_group, collector_limits,
	collector_cpu, collector_kernel, collector_memory, collector_paging, collector_load,
	collector_pressure, collector_cgroup, collector_net, collector_tcp, collector_ib, collector_disk,
	collector_filesystem, collector_nfs, collector_lustre, collector_self, collector_cost;
extern const struct collector collector_frequency, collector_energy, collector_sensor, collector_throttle,
	collector_gpu, collector_gpu_process, collector_membw, collector_perf, collector_app;

const struct collector *const collectors[] = {
	&collector_process,
	&collector_tree,
	&collector_limits,
	&collector_perf,
	/* up to here: collectors_of_job */
	&collector_app,
	&collector_group,
	&collector_cpu,
	&collector_frequency,
	&collector_kernel,
	&collector_memory,
	&collector_paging,
	&collector_load,
	&collector_pressure,
	&collector_cgroup,
	&collector_net,
	&collector_tcp,
	&collector_ib,
	&collector_disk,
	&collector_filesystem,
	&collector_nfs,
	&collector_lustre,
	&collector_energy,
	&collector_sensor,
	&collector_throttle,
	&collector_gpu,
	&collector_gpu_process,
	&collector_membw,
	&collector_self,
	&collector_cost,
	NULL,
};

const size_t collectors_of_job = 4;

const struct collector *collector_find(const char *name)
{
	for (size_t i = 0; collectors[i]; i++)
		if (!strcmp(collectors[i]->name, name))
			return collectors[i];
	return NULL;
}

int probe_file(struct env *env, const char *path, struct trouble absent, struct trouble *reterr_why)
{
	char text[2];
	ssize_t n = env_peek(env, path, text, sizeof(text));

	if (n >= 0)
		return 0;
	*reterr_why = absent;
	return is_refused(n) ? -EACCES : -ENOENT;
}

static int any_entry(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return 1;
}

int probe_folder(struct env *env, const char *path, struct trouble absent, struct trouble *reterr_why)
{
	int r = env_list(env, path, any_entry, NULL);

	if (r > 0)
		return 0;
	*reterr_why = absent;
	return is_refused(r) ? -EACCES : -ENOENT;
}
