/* `tacho metrics --events` on machines with and without counters. */
#include "cmd/metrics_events.h"
#include "film_text.h"

/* A server whose kernel counts user mode alone, and what of it the processor has. */
static const char counters[] = "file proc/sys/kernel/perf_event_paranoid\n|2\n"
			       "counter 0 * 0 -1 1 1 1\n"
			       "counter 1 * 0 -1 1 1 1\n"
			       "counter 4 * 0 -1 1 1 1\n"
			       "counter_error 0 7 0 -1 ENOENT\n"
			       "counter_error *:uk * * * EACCES\n"
			       "file sys/kernel/tracing/events/sched/sched_switch/id\n|316\n"
			       "file sys/kernel/tracing/events/sched/sched_wakeup/id\n|317\n";

static struct env *server(void)
{
	return machine_and("intel-2s", counters);
}

static char *list(struct env *env, struct events_ask ask, int want)
{
	static char text[1 << 17];
	struct buf out;

	buf_init(&out, 1 << 20);
	ask.width = ask.width ? ask.width : 80;
	assert_int_equal(events_list(env, &ask, &out), want);
	assert_true(out.len < sizeof(text));
	memcpy(text, out.data, out.len + 1);
	buf_release(&out);
	env_free(env);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static void has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' in:\n%s", part, text);
}

static void test_text(void **state)
{
	const char *text = list(server(), (struct events_ask){0}, 0);

	(void)state;
	has(text,
		"Events of this user's processes, in user mode only; none of whole packages or\n  the "
		"node.\n");
	has(text, "  kernel.perf_event_paranoid is 2.\n");
	has(text, "(cascadelake-x (built in))");
	has(text, "\n  FLOPS_DP  ");
	has(text, "\n  cycles                   yes      cycles of the core");
	has(text, "\n  stalled-cycles-frontend  absent   cycles in which");
	has(text, "\n  context-switches  refused  times that");
	has(text, "\n  cpu/mem-loads/");
	has(text, "\nuncore_imc: a PMU that counts for the whole node (not here: ");
	has(text, "\ntracepoint: places in the kernel's code, counted when they are passed (not here:");
	has(text, "\n  sched:sched_switch, sched:sched_wakeup\n"); /* all refused: names are enough */
	has(text, "`tacho run -e EVENT,… COMMAND`");
	has_not(text, "\033");
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		size_t columns = 0;

		for (const char *p = line; *p != '\n'; p++)
			columns += (*p & 0xc0) != 0x80;
		if (columns > 80 && !strstr(line, "=…"))
			fail_msg("wide: %.*s", (int)strcspn(line, "\n"), line);
	}
}

static void test_words(void **state)
{
	char *one[] = {"CS", "task-clock"}, *kind[] = {"tracepoint", "group"}, *about[] = {"predicted"},
	     *none[] = {"nosuch"};
	const char *text =
		list(server(), (struct events_ask){.nr_words = 2, .word = one, .verbose = true}, 0);

	(void)state;
	has(text, "\n  context-switches  refused");
	has(text, "\n  task-clock        yes");
	has(text, "\n      Not here: it happens in the kernel");
	has(text, "\n      Remedy: ");
	has_not(text, "What may be counted");
	has_not(text, "cycles");
	text = list(server(), (struct events_ask){.nr_words = 2, .word = kind}, 0);
	has(text, "\n  sched:sched_switch  refused\n");
	has(text, "FLOPS_SP");
	has_not(text, "task-clock");
	text = list(server(), (struct events_ask){.nr_words = 1, .word = about}, 0);
	has(text, "branch-misses");
	has_not(text, "instructions ");
	text = list(server(), (struct events_ask){.nr_words = 1, .word = none}, -ENOENT);
	assert_string_equal(text, "");
}

static void test_groups_in_full(void **state)
{
	char *word[] = {"FLOPS_DP"};
	const char *text =
		list(server(), (struct events_ask){.nr_words = 1, .word = word, .verbose = true}, 0);

	(void)state;
	has(text, " = cpu/event=0xc7,umask=0x");
	has(text, "\n      perf.flops_dp = ");
}

static void test_names(void **state)
{
	const char *text = list(server(), (struct events_ask){.names = true}, 0);

	(void)state;
	assert_memory_equal(text, "cycles\ninstructions\n", 20);
	has(text, "\nuncore_imc/cas_count_read/\n");
	has(text, "\nsched:sched_switch\n");
	has_not(text, "…");
}

static void test_json(void **state)
{
	const char *text = list(server(), (struct events_ask){.json = true}, 0);

	(void)state;
	has(text, "\"perf_event_paranoid\": 2,");
	has(text, "\"kernel\": false,");
	has(text, "\"event_file\": \"cascadelake-x (built in)\"");
	has(text, "\"name\": \"FLOPS_DP\"");
	has(text, "\"name\": \"perf.flops_dp\"");
	has(text, "\"name\": \"uncore_imc/cas_count_read/\"");
	has(text, "\"scope\": \"package\"");
	has(text, "\"available\": true");
	has(text, "\"remedy\": \"");
}

/* A machine of which nothing is known: everything has its reason. */
static void test_nothing(void **state)
{
	const char *text = list(film_text("file proc/loadavg\n|1\n"), (struct events_ask){.color = true}, 0);

	(void)state;
	has(text, "No events of this user's processes");
	has(text, "Not here: the kernel has no perf_event_open");
	has(text, "\033[1m");
	has(text, "(not here: libpfm4 is not");
	has(text, "Remedy: sudo mount -t tracefs");
	has_not(text, "yes  ");
	text = list(film_text("file proc/loadavg\n|1\n"), (struct events_ask){.json = true, .width = 10}, 0);
	has(text, "\"perf_event_paranoid\": null");
	has(text, "\"event_file\": null");
	list(film_text("file proc/loadavg\n|1\n"), (struct events_ask){.width = 10, .verbose = true}, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_groups_in_full),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
