/* `tacho doctor`: what can be measured here, and if not, why not and what would change it.
 *
 * Nothing is looked up that can be tried: the sources by a recording of a moment (self_test.c), the kernel's
 * help by asking for it, timers by sleeping, cost by sampling this very machine. */
#include "cmd/doctor.h"

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/style.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

struct doctor_args {
	bool json, verbose, cost;
};

extern const struct cmd cmd_doctor;

/* ---- for programs ---- */

static const char *const state_name[NR_AVAILABILITY] = {
	[AVAILABLE] = "ok", [ABSENT] = "absent", [FORBIDDEN] = "denied", [FAILED] = "failed"};

static void open_entry(struct json *j, const char *source, const char *metric, enum availability state,
	const char *reason, const char *remedy)
{
	json_object(j, NULL);
	json_str(j, "source", source);
	json_str(j, "metric", metric);
	json_str(j, "state", state_name[state]);
	json_str(j, "reason", reason && *reason ? reason : NULL);
	json_str(j, "remedy", remedy && *remedy ? remedy : NULL);
	json_str(j, "risk", remedy_risk(remedy));
}

static void json_figure(struct json *j, const char *source, const char *metric, double value,
	const char *unit, const char *detail)
{
	open_entry(j, source, metric, AVAILABLE, NULL, NULL);
	json_num(j, "value", value);
	json_str(j, "unit", unit);
	if (detail)
		json_str(j, "detail", detail);
	json_end_object(j);
}

static void json_sources(const struct doctor *d, struct json *j)
{
	for (size_t i = 0; i < d->self_test->nr; i++) {
		const struct self_test_source *s = &d->self_test->source[i];

		for (size_t m = 0; m < s->collector->nr_metrics; m++) {
			open_entry(j, s->collector->name, s->collector->metric[m].name, s->metric[m].state,
				s->metric[m].reason, s->metric[m].remedy);
			json_end_object(j);
		}
	}
}

static void json_findings(const struct doctor *d, struct json *j)
{
	for (size_t i = 0; i < d->nr_findings; i++) {
		const struct permit *p = &d->finding[i].permit;

		open_entry(j, p->source, p->metric, p->state, p->reason, p->remedy);
		if (*p->detail)
			json_str(j, "detail", p->detail);
		json_end_object(j);
	}
}

static void json_costs(const struct doctor *d, struct json *j)
{
	char name[64];

	for (const struct cost *c = d->cost; c < d->cost + NR_COSTS; c++) {
		if (!c->ticks)
			continue;
		snprintf(name, sizeof(name), "%uhz.tick", c->hz);
		json_figure(j, "cost", name, c->tick_s, "seconds", NULL);
		snprintf(name, sizeof(name), "%uhz.share", c->hz);
		json_figure(j, "cost", name, c->share, "ratio",
			c->share <= DEFAULT_BUDGET ? "within the budget" : "over the budget");
		snprintf(name, sizeof(name), "%uhz.processes", c->hz);
		json_figure(j, "cost", name, c->processes, "count", NULL);
		for (size_t i = 0; i < d->self_test->nr; i++) {
			snprintf(name, sizeof(name), "%uhz.%s", c->hz,
				d->self_test->source[i].collector->name);
			json_figure(j, "cost", name, c->by[i], "seconds", NULL);
		}
	}
	if (!d->cost[0].ticks)
		return;
	json_figure(j, "cost", "budget", DEFAULT_BUDGET, "ratio", NULL);
	json_figure(j, "cost", "budget.interval", budget_stretch(d->cost[0].share, DEFAULT_BUDGET), "seconds",
		d->cost[0].share <= DEFAULT_BUDGET ? "fits" : "backs off");
}

/* For programs: a list. */
static void doctor_json(const struct doctor *d, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_array(&j, NULL);
	json_sources(d, &j);
	json_findings(d, &j);
	open_entry(&j, "clock", "source", *d->clock.source ? AVAILABLE : ABSENT,
		*d->clock.source ? NULL : "the kernel does not say which clock it uses", NULL);
	json_str(&j, "detail", d->clock.source);
	json_end_object(&j);
	json_figure(&j, "clock", "step", d->clock.step_s, "seconds", NULL);
	json_figure(&j, "clock", "read", d->clock.read_s, "seconds", NULL);
	json_figure(&j, "timer", "late.median", d->clock.late_median_s, "seconds", NULL);
	json_figure(&j, "timer", "late.worst", d->clock.late_worst_s, "seconds", NULL);
	json_costs(d, &j);
	json_end_array(&j);
	buf_addch(out, '\n');
}

/* ---- the command ---- */

static void show_progress(double left_s)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%*s\r", 50, "");
	if (left_s > 0)
		fprintf(stderr, "measuring what a sample costs: %.0f s left", left_s + 0.5);
	fflush(stderr);
}

static void name_machine(struct doctor *d)
{
	struct utsname uts;

	uname(&uts);
	snprintf(d->host, sizeof(d->host), "%s", uts.nodename);
	snprintf(d->system, sizeof(d->system), "%.20s %.50s", uts.sysname, uts.release);
	d->cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

static int doctor(const void *args, int argc, char **argv)
{
	const struct doctor_args *a = args;
	struct summary_style style = style_for(STDOUT_FILENO);
	static struct doctor d;
	struct env *env = env_live(NULL);
	struct buf out;
	int status;

	if (argc)
		usage(&cmd_doctor, "'%s' is too much: doctor takes options only", argv[0]);
	if (!env || self_test_look(env, &d.self_test) < 0)
		die(EXIT_TROUBLE, "out of memory");
	name_machine(&d);
	doctor_check(&d, env);
	doctor_clock(env, &d.clock);
	if (a->cost && d.self_test->works)
		doctor_cost(env, d.cost, show_progress);
	buf_init(&out, 4 << 20);
	if (a->json)
		doctor_json(&d, &out);
	else
		doctor_text(&d, &style, a->verbose, &out);
	status = print(&out);
	if (!d.self_test->works)
		status = EXIT_TROUBLE;
	buf_release(&out);
	self_test_free(d.self_test);
	env_free(env);
	return status;
}

/* clang-format off */
#define INTO(member) offsetof(struct doctor_args, member)

static const struct opt doctor_opts[] = {
	{'v', "verbose", NULL, OPT_FLAG, INTO(verbose),
		.help = "list every metric"},
	{0, "json", NULL, OPT_FLAG, INTO(json),
		.help = "for programs: a list of findings"},
	{0, "cost", NULL, OPT_FLAG, INTO(cost), .preset = "yes", .not_from_env = true,
		.help = "do not measure what a sample costs (3 s)"},
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.synopsis = "[OPTION…]",
	.help = "tell what can be measured here, what cannot, and how to enable it",
	.detail = "Records a test process for a moment with all metrics and lists, source by source, what "
		"had values (ok), what this machine does not have (absent), what is not permitted "
		"(denied) and what went wrong (failed), each with its reason. At the end are the commands "
		"or settings that would add something, with their risks; none is applied.\n\nIt also "
		"shows kernel features that make totals exact, permissions, the quality of clock and "
		"timers, and what a sample of all processes costs at 1, 10 and 100 Hz. The cost is "
		"measured now, over a few samples, without metrics that are read only every few seconds "
		"and without PSS and USS, which use the rest of the budget (1 % of a core unless `tacho "
		"run --budget` says otherwise).\n\nWith --json: a list of objects with source, metric, "
		"state (ok, absent, denied, failed), reason, remedy and risk (of the remedy); figures "
		"also have value and unit.\n\nExit status: 0 when recordings can be made, 1 when not.",
	.examples =
		"$ tacho doctor\n"
		"    why is there no energy in my recordings?\n"
		"$ tacho doctor --json --no-cost | jq '.[] | select(.state == \"denied\")'\n"
		"    what an administrator could allow",
	.opt = doctor_opts,
	.nr_opts = ARRAY_SIZE(doctor_opts),
	.args_size = sizeof(struct doctor_args),
	.measures = true,
	.run = doctor,
};
/* clang-format on */
