/* `tacho debug play` records a film as if it were this machine; `tacho debug capture` makes a film of this
 * machine while it records some processes. Together they turn what a user saw into a test. */
#include "cmd/cmd.h"
#include "cmd/debug.h"
#include "cmd/sink.h"

#include "base/str.h"
#include "engine/engine.h"
#include "node/hardware.h"

#include <string.h>

extern const struct cmd cmd_debug;

static void write_meta(struct store_writer *w, struct env *env, int64_t interval_ns)
{
	struct pair memory[16];
	char numbers[256];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "version", tacho_version);
	pairs_str(&p, "mode", "attach");
	pairs_num(&p, "interval_ns", interval_ns);
	pairs_num(&p, "page_size", env->page_size);
	pairs_num(&p, "clock_tick", env->clock_tick);
	pairs_num(&p, "start_monotonic_ns", env_now(env, ENV_MONOTONIC));
	pairs_num(&p, "start_wall_ns", env_now(env, ENV_REALTIME));
	pairs_num(&p, "start_boottime_ns", env_now(env, ENV_BOOTTIME));
	store_meta(w, &p);
}

/* One record for each: the text of a fact is only valid until the next one. */
static void write_fact(void *arg, const char *key, const char *value)
{
	struct pair memory[1];
	char numbers[8];
	struct pairs p;

	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, key, value);
	store_meta(arg, &p);
}

static void write_end(struct store_writer *w, const struct engine *e, const struct tally *tally)
{
	struct engine_counts counts;
	struct pair memory[12];
	char numbers[256];
	struct pairs p;
	int r;

	engine_counts(e, &counts);
	pairs_init(&p, memory, ARRAY_SIZE(memory), numbers, sizeof(numbers));
	pairs_str(&p, "ended", "attach-end");
	pairs_num(&p, "end_ns", engine_elapsed(e));
	pairs_num(&p, "ticks", (int64_t)counts.ticks);
	pairs_num(&p, "missed", (int64_t)counts.missed);
	pairs_num(&p, "unfinished", engine_live(e));
	tally_describe(tally, false, counts.seen, &p);
	r = store_finish(w, &p);
	if (r < 0)
		die(EXIT_TROUBLE, "cannot finish the recording: %s", strerror(-r));
}

static void add_roots(struct engine *e, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		uint64_t pid;

		if (!parse_u64(argv[i], &pid) || engine_add_root(e, (pid_t)pid, false, 1) < 0)
			die(EXIT_USAGE, "there is no process %s", argv[i]);
	}
	engine_scan(e);
}

/* Words before the PIDs: "+METRIC,…" as of -m, "event:EVENT" as one of -e. */
static void take_wishes(struct engine_options *o, int *argc, char ***argv)
{
	static const char *word[64], *event[64];

	for (; *argc > 0 && o->nr_metrics < 64 && o->nr_events < 64; ++*argv, --*argc) {
		if (***argv == '+')
			word[o->nr_metrics++] = **argv;
		else if (str_starts(**argv, "event:"))
			event[o->nr_events++] = **argv + strlen("event:");
		else
			break;
	}
	o->metrics = word;
	o->events = event;
}

/* Records the processes as this env shows them. INT64_MAX: to the end. */
static int record(
	struct env *env, const char *path, int64_t interval_ns, int64_t until_ns, int argc, char **argv)
{
	struct engine_options o = {
		.interval_ns = interval_ns,
		.interval_is_order = true,
		.flush_ns = NSEC_PER_SEC,
		.budget = 1,
		.children = true,
		.max_members = 65536,
		.max_files = 1 << 16,
	};
	struct store_sink sink = {0};
	struct sink to_store = sink_to_store(&sink);
	struct engine *e;
	char err[512];
	int r;

	take_wishes(&o, &argc, &argv);
	if (engine_new(env, &o, &e, err, sizeof(err)) < 0)
		die(EXIT_TROUBLE, "%s", err);
	r = store_create(path, true, &sink.store);
	if (r == 0)
		r = store_schema(sink.store, engine_schema(e));
	if (r == 0)
		r = engine_open(e, &to_store);
	if (r < 0)
		die(EXIT_TROUBLE, "cannot record to %s: %s", path, strerror(-r));
	sink.tally = tally_new(engine_schema(e), o.max_members, true);
	write_meta(sink.store, env, interval_ns);
	hardware_describe(env, write_fact, sink.store);
	environment_describe(env, write_fact, sink.store);
	store_wishes(sink.store, e);
	add_roots(e, argc, argv);
	r = engine_play(e, until_ns);
	write_end(sink.store, e, sink.tally);
	tally_free(sink.tally);
	engine_free(e);
	return r < 0 ? EXIT_TROUBLE : EXIT_OK;
}

static int64_t interval_of(const char *text)
{
	int64_t ns;

	if (parse_interval(text, &ns) < 0 || ns <= 0)
		die(EXIT_USAGE, "'%s' is not a time", text);
	return ns;
}

int debug_play(int argc, char **argv)
{
	struct env *env;
	unsigned line = 0;
	int r;

	if (argc < 4)
		usage(&cmd_debug, "play FILM RECORDING INTERVAL [+METRIC,…] [event:EVENT] PID…");
	r = env_film(argv[0], &env, &line);
	if (r < 0)
		die(EXIT_USAGE, "%s:%u: %s", argv[0], line, strerror(-r));
	r = record(env, argv[1], interval_of(argv[2]), INT64_MAX, argc - 3, argv + 3);
	env_free(env);
	return r;
}

int debug_capture(int argc, char **argv)
{
	struct env *env;
	int r;

	if (argc < 5)
		usage(&cmd_debug, "capture FILM RECORDING INTERVAL DURATION [+METRIC,…] [event:EVENT] PID…");
	env = env_capture(env_live(NULL), argv[0]);
	if (!env)
		die(EXIT_TROUBLE, "cannot write %s: %s", argv[0],
			errno == ELOOP ? "it is a symbolic link, which is not followed" : strerror(errno));
	r = record(env, argv[1], interval_of(argv[2]), interval_of(argv[3]), argc - 4, argv + 4);
	env_free(env);
	return r;
}
