/* `tacho push --status` and `--sinks`. */
#include "exec/push.h"

#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/operands.h"
#include "push/sink.h"
#include "push/state.h"
#include "query/sidecar.h"

#include <stdlib.h>
#include <time.h>

int push_list_sinks(void)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 16);
	for (size_t i = 0; push_sinks[i]; i++)
		buf_addf(&out, "%-12s %s\n%-12s %s\n", push_sinks[i]->name, push_sinks[i]->help, "",
			push_sinks[i]->url_help);
	status = print(&out);
	buf_release(&out);
	return status;
}

static double ago(int64_t wall_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)wall_ns / 1e9;
}

static const char *verdict(const struct push_state *s)
{
	return s->done ? "all sent" : s->why ? "waits" : s->sent_ns ? "not finished" : "nothing sent yet";
}

static void show_state(const struct push_state *s, struct buf *out)
{
	buf_addf(out, "  %s  %s  %s\n", s->sink, s->address, verdict(s));
	buf_addf(out, "    %s values in %s requests", format_count(SHOWN, (double)s->points),
		format_count(SHOWN, (double)s->requests));
	if (s->sent_ns)
		buf_addf(out, ", the last %s ago",
			format_duration(SHOWN, ago(s->sent_ns) > 0 ? ago(s->sent_ns) : 0));
	buf_addch(out, '\n');
	buf_addf(out, "    remembered in %s\n", s->path);
	if (s->where)
		buf_addf(out, "    %s\n", s->where);
	if (s->why)
		buf_addf(out, "    no success for %s: %s\n",
			format_duration(SHOWN, ago(s->why_ns) > 0 ? ago(s->why_ns) : 0), s->why);
	if (s->dropped)
		buf_addf(out, "    %s values were not taken: %s\n", format_count(SHOWN, (double)s->dropped),
			s->refused ? s->refused : "");
}

static void show_recording(const char *path, struct buf *out)
{
	struct push_state **state = NULL;
	struct meta meta = {0};
	size_t nr = 0;

	if (sidecar_meta(path, &meta, NULL) >= 0)
		push_states_of(path, &meta, &state, &nr);
	buf_addf(out, "%s%s\n", path, nr ? "" : "  was not pushed");
	for (size_t i = 0; i < nr; i++) {
		show_state(state[i], out);
		push_state_close(state[i]);
	}
	free(state);
	meta_release(&meta);
}

int push_show_status(int argc, char **argv)
{
	struct run *run = operands_run("showing", argc, argv);
	struct buf out;
	int status;

	buf_init(&out, 1 << 24);
	for (size_t i = 0; i < run->nr; i++)
		show_recording(run->path[i], &out);
	status = print_shown(&out);
	buf_release(&out);
	run_close(run);
	return status;
}
