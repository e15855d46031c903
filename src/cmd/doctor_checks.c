/* What belongs to no collector: the kernel's help, which makes totals exact, permissions, and the place to
 * write. */
#include "cmd/external.h"
#include "cmd/doctor.h"

#include "base/rights.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/nvtx.h"
#include "node/cgroups.h"
#include "target/kernel.h"
#include "target/priority.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define LITTLE_BYTES (16.0 * 1024 * 1024)

static struct permit *add(struct doctor *d, const char *source, const char *metric)
{
	struct doctor_finding *f = &d->finding[MIN(d->nr_findings, FINDINGS_MAX - 1)];

	d->nr_findings = MIN(d->nr_findings + 1, FINDINGS_MAX);
	*f = (struct doctor_finding){.permit = {.source = source, .metric = metric}};
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

/* setcap replaces all capabilities of the file, so the command line has those it holds already and all that
 * would help. `p`: allowed to be used, not in use; tacho raises each for the call that needs it, and the job
 * gets none (base/rights.h). */
static void add_setcap(struct buf *out, uint64_t rights)
{
	static const struct {
		uint64_t right;
		const char *name;
	} known[] = {
		{RIGHT_NET_ADMIN, "cap_net_admin"},
		{RIGHT_PERFMON, "cap_perfmon"},
		{RIGHT_SYS_PTRACE, "cap_sys_ptrace"},
		{RIGHT_READ, "cap_dac_read_search"},
		{RIGHT_SYS_NICE, "cap_sys_nice"},
	};
	char path[PATH_MAX];
	const char *comma = "";

	buf_adds(out, "sudo setcap ");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if ((rights | rights_held()) & known[i].right) {
			buf_addf(out, "%s%s", comma, known[i].name);
			comma = ",";
		}
	buf_adds(out, "+p ");
	if (external_self(path, sizeof(path)))
		add_shell_word(out, path, strlen(path));
	else
		buf_adds(out, "\"$(command -v tacho)\"");
}

static void refuse_netlink(struct permit *p, int error, const char *why, uint64_t rights)
{
	struct buf remedy;

	if (!is_forbidden(error)) {
		say(p, ABSENT, why, NULL);
		return;
	}
	buf_init(&remedy, sizeof(p->remedy));
	add_setcap(&remedy, rights);
	say(p, FORBIDDEN, why, remedy.err ? NULL : (char *)remedy.data);
	buf_release(&remedy);
}

static void check_netlink(struct doctor *d, bool counters_forbidden)
{
	uint64_t rights = RIGHT_NET_ADMIN | (counters_forbidden ? RIGHT_PERFMON : 0);
	struct connector *c = NULL;
	struct taskstats *t = NULL;
	struct permit *events = add(d, "events", "forks"), *records = add(d, "taskstats", "exits");
	const char *why = NULL;
	int r = connector_open(&c, &why);

	if (r == 0)
		say(events, AVAILABLE, "the kernel reports every fork, exec and exit", NULL);
	else
		refuse_netlink(events, r, why, rights);
	connector_close(c);
	r = taskstats_open(&t, &why);
	if (r == 0)
		say(records, AVAILABLE, "the kernel gives the totals of every process that ends", NULL);
	else
		refuse_netlink(records, r, why, rights);
	taskstats_close(t);
}

static void check_group(struct doctor *d, struct env *env)
{
	struct permit *p = add(d, "delegation", "cgroup");
	char text[120];

	if (*d->self_test->group_kind) {
		snprintf(text, sizeof(text), "the job gets a control group (%s): its CPU time is exact",
			d->self_test->group_kind);
		say(p, AVAILABLE, text, NULL);
		return;
	}
	say(p, is_forbidden(d->self_test->group_error) ? FORBIDDEN : ABSENT,
		*d->self_test->group ? d->self_test->group : "none was tried",
		is_forbidden(d->self_test->group_error) && cgroups_by_systemd(env) ? CGROUP_OF_SYSTEMD
										   : NULL);
}

/* Tried as a recorder does it, then undone. */
static void check_priority(struct doctor *d)
{
	struct permit *p = add(d, "priority", "rhythm");
	bool two = *d->self_test->group_kind && d->self_test->share_error == 0;
	struct priority own;
	char text[240];

	priority_raise(&own);
	priority_lower();
	if (own.kind == PRIORITY_REALTIME || two)
		snprintf(text, sizeof(text),
			"the recorder gets %s, so that it samples in time on an overloaded machine; the "
			"priority of the job does not change",
			own.kind == PRIORITY_REALTIME ? own.text : "a CPU group beside the job's");
	else
		snprintf(text, sizeof(text),
			"on an overloaded machine %s ticks are missed: the recorder gets %s%s, and no CPU "
			"group beside the job's, because %s",
			own.kind == PRIORITY_NICE ? "some" : "many",
			own.kind == PRIORITY_NICE ? own.text : "no priority",
			own.kind == PRIORITY_NICE ? " but no real-time priority" : "",
			cgroup_share_why(d->self_test->share_error));
	if (own.kind == PRIORITY_NONE && !two)
		say(p, FORBIDDEN, text,
			"echo \"$USER - nice -20\" | sudo tee -a /etc/security/limits.d/tacho.conf # then "
			"log "
			"in again");
	else
		say(p, AVAILABLE, text, NULL);
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

static void check_nvtx(struct doctor *d)
{
	struct permit *p = add(d, "nvtx", "library");
	char path[PATH_MAX];

	if (nvtx_find(path, sizeof(path)))
		say(p, AVAILABLE, "NVTX ranges of jobs can be recorded: tacho run --nvtx", NULL);
	else
		say(p, ABSENT, "libtacho-nvtx.so is not installed with this tacho: run --nvtx does nothing",
			NULL);
}

/* A static build has no loader. */
static void check_libraries(struct doctor *d)
{
#ifdef __GLIBC__
	(void)d;
#else
	struct permit *p = add(d, "libraries", "loading");

	say(p, ABSENT,
		"this is the static build of tacho: it cannot load the libraries of NVIDIA and AMD, libpfm4 "
		"and NVTX",
		"use the tar file without -static in its name, where the system has glibc");
#endif
}

void doctor_check(struct doctor *d, struct env *env)
{
	struct permit permit[NR_PERMITS], counters[NR_COUNTER_FINDINGS];

	doctor_counters(env, counters);
	check_netlink(d,
		counters[COUNTERS_KERNEL].state == FORBIDDEN ||
			counters[COUNTERS_PACKAGES].state == FORBIDDEN);
	check_group(d, env);
	check_priority(d);
	permits_read(env, permit);
	for (unsigned i = 0; i < PERMIT_NVIDIA; i++)
		*add(d, permit[i].source, permit[i].metric) = permit[i];
	for (unsigned i = 0; i < NR_COUNTER_FINDINGS; i++)
		*add(d, counters[i].source, counters[i].metric) = counters[i];
	for (unsigned i = PERMIT_NVIDIA; i < NR_PERMITS; i++) {
		doctor_gpu(d->self_test, &permit[i]);
		*add(d, permit[i].source, permit[i].metric) = permit[i];
	}
	check_nvtx(d);
	check_libraries(d);
	check_folder(d);
}
