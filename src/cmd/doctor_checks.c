/* What is no collector's: the kernel's help, which makes totals exact, permissions, and the place to write.
 */
#include "cmd/doctor.h"

#include "base/units.h"
#include "target/kernel.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define LITTLE_BYTES (16.0 * 1024 * 1024)

static struct permit *add(struct doctor *d, const char *source, const char *metric)
{
	struct finding *f = &d->finding[MIN(d->nr_findings, FINDINGS_MAX - 1)];

	d->nr_findings = MIN(d->nr_findings + 1, FINDINGS_MAX);
	*f = (struct finding){.permit = {.source = source, .metric = metric}};
	return &f->permit;
}

static void say(struct permit *p, enum availability state, const char *text, const char *remedy)
{
	if (state == AVAILABLE)
		permit_grant(p, text);
	else
		permit_refuse(p, state, text, remedy);
}

static bool is_forbidden(int error)
{
	return is_refused(error) || error == -EROFS;
}

/* A capability of the file alone: the job does not inherit it. */
static const char *setcap(char out[static 200])
{
	char path[128];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[MAX(n, 0)] = 0;
	snprintf(out, 200, "sudo setcap cap_net_admin+ep %s", n > 0 ? path : "\"$(command -v tacho)\"");
	return out;
}

static void check_netlink(struct doctor *d)
{
	struct connector *c = NULL;
	struct taskstats *t = NULL;
	struct permit *events = add(d, "events", "forks"), *records = add(d, "taskstats", "exits");
	char remedy[200];
	const char *why = NULL;
	int r = connector_open(&c, &why);

	if (r == 0)
		say(events, AVAILABLE, "the kernel tells of every fork, exec and exit", NULL);
	else
		say(events, is_forbidden(r) ? FORBIDDEN : ABSENT, why,
			is_forbidden(r) ? setcap(remedy) : NULL);
	connector_close(c);
	r = taskstats_open(&t, &why);
	if (r == 0)
		say(records, AVAILABLE, "every process that ends leaves its account", NULL);
	else
		say(records, is_forbidden(r) ? FORBIDDEN : ABSENT, why,
			is_forbidden(r) ? setcap(remedy) : NULL);
	taskstats_close(t);
}

static void check_group(struct doctor *d)
{
	struct permit *p = add(d, "delegation", "cgroup");
	char text[120];

	if (*d->here->group_kind) {
		snprintf(text, sizeof(text), "the job gets a control group (%s): its CPU time is exact",
			d->here->group_kind);
		say(p, AVAILABLE, text, NULL);
		return;
	}
	say(p, is_forbidden(d->here->group_error) ? FORBIDDEN : ABSENT,
		*d->here->group ? d->here->group : "none was tried",
		is_forbidden(d->here->group_error)
			? "systemd-run --user --scope -p Delegate=yes tacho run ..."
			: NULL);
}

static void check_folder(struct doctor *d)
{
	struct permit *p = add(d, "output", "folder");
	char text[120], bytes[UNITS_SIZE];
	struct statvfs fs;
	double left;

	if (access(".", W_OK | X_OK) < 0) {
		snprintf(text, sizeof(text), "no recording can be made in this folder: %s", strerror(errno));
		say(p, FORBIDDEN, text, "tacho run -o \"$HOME/{name}.tacho\" ...");
		return;
	}
	left = statvfs(".", &fs) < 0 ? INFINITY : (double)fs.f_bavail * (double)fs.f_frsize;
	if (left < LITTLE_BYTES) {
		snprintf(text, sizeof(text), "the disk under this folder is full: %s left",
			format_bytes(bytes, left));
		say(p, FAILED, text, "tacho run -o /some/other/disk/{name}.tacho ...");
		return;
	}
	snprintf(text, sizeof(text), "recordings can be made in this folder%s%s",
		isinf(left) ? "" : "; free: ", isinf(left) ? "" : format_bytes(bytes, left));
	say(p, AVAILABLE, text, NULL);
}

void doctor_check(struct doctor *d, struct env *env)
{
	struct permit permit[NR_PERMITS], counters[NR_COUNTER_FINDINGS];

	check_netlink(d);
	check_group(d);
	permits_read(env, permit);
	doctor_counters(env, counters);
	for (unsigned i = 0; i < PERMIT_NVIDIA; i++)
		*add(d, permit[i].source, permit[i].metric) = permit[i];
	for (unsigned i = 0; i < NR_COUNTER_FINDINGS; i++)
		*add(d, counters[i].source, counters[i].metric) = counters[i];
	for (unsigned i = PERMIT_NVIDIA; i < NR_PERMITS; i++) {
		doctor_gpu(d->here, &permit[i]);
		*add(d, permit[i].source, permit[i].metric) = permit[i];
	}
	check_folder(d);
}
