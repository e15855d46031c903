/* Writes recordings that are hard to export, for tests/e2e/exported.py:
 *
 *	export_recording hostile FILE     names of any bytes, counters beyond 2^53, values that come and go
 *	export_recording one_tick FILE
 *	export_recording no_tick FILE
 *	export_recording unfinished FILE
 *	export_recording crowd FILE N     N processes in all, a hundred at a time */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "query_maker.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define BIG ((INT64_C(1) << 60) + 1)
#define TICKS 7

/* As /proc may have them: 15 bytes, of any value but NUL. */
static const char *const name[] = {"plain", "a,b\"c\"", "two\nlines", "\xff\xfe not utf8", "\\xff",
	"back\\slash\\", "<b>&amp;</b>", "=cmd|' /C'!A0", "\xc3\xbcn\xc3\xaf\xe6\x97\xa5", "';DROP TABLE x",
	"\x01\x1b[31mred", "{\"a\":1}", " spaces ", "NULL", "\xe2\x82", "\\", "\\\xff"};

static void join_all(struct maker *m)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(name); i++)
		maker_join_as(m, i, i + 1, 1000 + i, name[i], strlen(name[i]), name[i], strlen(name[i]) + 1);
}

static void values(struct maker *m, int64_t tick)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(name); i++) {
		maker_set(m, i, "proc.cpu.time", tick * 7 * MILLI * i);
		set_memory(m, i, 1000 + tick + i, 10);
		if ((tick + i) % 4)
			maker_set(m, i, "proc.io.read_chars", BIG + tick * 3 * (i + 1));
		else
			maker_unset(m, i, "proc.io.read_chars");
		maker_set(m, i, "proc.io.write_chars", INT64_MAX - 100 + tick);
	}
}

static void write_ticks(struct maker *m, int64_t nr)
{
	join_all(m);
	for (int64_t i = 0; i < nr; i++) {
		values(m, i);
		if (i == 3)
			maker_gone(m, 0, 1, i * SECOND, "exited");
		maker_tick(m, i * SECOND + i);
	}
}

static void write_crowd(struct maker *m, uint64_t nr)
{
	uint32_t id = 0;

	for (int64_t tick = 0; id < nr; tick++) {
		for (uint32_t row = 0; row < 100 && id < nr; row++) {
			char text[16];

			if (tick)
				maker_gone(m, row, id - 99, tick * SECOND, "exited");
			id++;
			snprintf(text, sizeof(text), "p%u", id);
			maker_join_as(
				m, row, id, 1000 + id % 30000, text, strlen(text), text, strlen(text) + 1);
			maker_set(m, row, "proc.cpu.time", id * MILLI);
			set_memory(m, row, id, 1);
		}
		maker_tick(m, tick * SECOND);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	uint64_t nr = 0;
	struct maker m;

	if (argc < 3)
		return 2;
	maker_open(&m, argv[2],
		&(struct maker_options){.host = strcmp(what, "hostile") ? "n1" : "h\xffst \"1\",\n2"});
	if (!strcmp(what, "crowd") && argc > 3 && parse_u64(argv[3], &nr))
		write_crowd(&m, nr);
	else
		write_ticks(&m, !strcmp(what, "no_tick") ? 0 : !strcmp(what, "one_tick") ? 1 : TICKS);
	if (!strcmp(what, "unfinished"))
		maker_abandon(&m);
	else
		maker_finish(&m, "exit_status", INT64_C(0), NULL);
	return 0;
}
