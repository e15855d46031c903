/* What `tacho top` is made of, without a terminal: keys of bytes, differences of frames (drawn on a terminal
 * of our own), the order of processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "top/frame.h"
#include "top/keys.h"
#include "top/model.h"
#include "top/processes.h"
#include "top/tty.h"

#include <math.h>

/* ---- keys ---- */

/* All keys of the bytes; at their end nothing follows. */
static size_t keys_of(const char *bytes, size_t len, struct key_event *out, size_t most)
{
	struct keys k = {0};
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		struct key_event e;

		if (keys_byte(&k, (uint8_t)bytes[i], &e) && n < most)
			out[n++] = e;
	}
	if (keys_wait(&k) && n < most && keys_timeout(&k, &out[n]))
		n++;
	return n;
}

static void test_sequences_are_keys(void **state)
{
	static const struct {
		const char *bytes;
		enum key key;
		bool shift, alt, ctrl;
		uint32_t code;
	} row[] = {{"a", KEY_CHAR, .code = 'a'}, {"\xc3\xa4", KEY_CHAR, .code = 0xe4},
		{"\xe2\x82\xac", KEY_CHAR, .code = 0x20ac}, {"\xf0\x9f\x98\x80", KEY_CHAR, .code = 0x1f600},
		{"\033[A", KEY_UP}, {"\033OA", KEY_UP}, {"\033[B", KEY_DOWN}, {"\033[C", KEY_RIGHT},
		{"\033[D", KEY_LEFT}, {"\033[1;2D", KEY_LEFT, .shift = true},
		{"\033[d", KEY_LEFT, .shift = true}, {"\033[1;5C", KEY_RIGHT, .ctrl = true},
		{"\033[1;3A", KEY_UP, .alt = true}, {"\033[H", KEY_HOME}, {"\033[1~", KEY_HOME},
		{"\033[7~", KEY_HOME}, {"\033[F", KEY_END}, {"\033[4~", KEY_END}, {"\033[8~", KEY_END},
		{"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN}, {"\033[3~", KEY_DELETE},
		{"\033OP", KEY_F1}, {"\033[[A", KEY_F1}, {"\033[11~", KEY_F1}, {"\033[17~", KEY_F1 + 5},
		{"\033[21~", KEY_F1 + 9}, {"\033[24~", KEY_F12}, {"\r", KEY_ENTER}, {"\n", KEY_ENTER},
		{"\t", KEY_TAB}, {"\177", KEY_BACKSPACE}, {"\b", KEY_BACKSPACE}, {"\033", KEY_ESC},
		{"\003", KEY_CTRL, .ctrl = true, .code = 'c'}, {"\032", KEY_CTRL, .ctrl = true, .code = 'z'},
		{"\033x", KEY_CHAR, .alt = true, .code = 'x'}, {"\033[Z", KEY_TAB, .shift = true}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct key_event e[4];
		size_t n = keys_of(row[i].bytes, strlen(row[i].bytes), e, 4);

		if (n != 1 || e[0].key != row[i].key)
			fail_msg("row %zu: %zu keys, the first %d", i, n, n ? (int)e[0].key : -1);
		assert_int_equal(e[0].shift, row[i].shift);
		assert_int_equal(e[0].alt, row[i].alt);
		assert_int_equal(e[0].ctrl, row[i].ctrl);
		if (row[i].code)
			assert_int_equal(e[0].code, row[i].code);
	}
}

static void test_the_mouse(void **state)
{
	struct key_event e[4];

	(void)state;
	assert_int_equal(keys_of("\033[<0;11;6M\033[<0;11;6m\033[<65;300;200M\033[<32;1;1M", 44, e, 4), 4);
	assert_int_equal(e[0].key, KEY_MOUSE);
	assert_int_equal(e[0].mouse, MOUSE_PRESS);
	assert_int_equal(e[0].column, 10);
	assert_int_equal(e[0].row, 5);
	assert_int_equal(e[1].mouse, MOUSE_RELEASE);
	assert_int_equal(e[2].mouse, MOUSE_WHEEL_DOWN);
	assert_int_equal(e[2].column, 299);
	assert_int_equal(e[3].mouse, MOUSE_DRAG);
}

static void test_what_is_unknown_is_passed_over_as_a_whole(void **state)
{
	static const char *const text[] = {"\033[?1;2cq", "\033[99~q", "\033[200000;5uq",
		"\033[1;2;3;4;5;6;7Xq", "\xff\xfeq", "\033[>0;276;0cq"};
	char longest[400];
	struct key_event e[400];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		size_t n = keys_of(text[i], strlen(text[i]), e, 8);

		assert_true(n >= 1);
		assert_int_equal(e[n - 1].key, KEY_CHAR);
		assert_int_equal(e[n - 1].code, 'q');
		assert_int_equal(n, 1);
	}
	memset(longest, '1', sizeof(longest));
	memcpy(longest, "\033[", 2);
	memcpy(longest + sizeof(longest) - 3, "~qq", 3);
	assert_int_equal(keys_of(longest, sizeof(longest), e, 400), 2);
	assert_int_equal(e[1].code, 'q');
}

static void test_any_bytes_do_no_harm(void **state)
{
	uint32_t seed = 1;
	struct keys k = {0};

	(void)state;
	for (size_t i = 0; i < 300000; i++) {
		struct key_event e;

		seed = seed * 1664525 + 1013904223;
		if (keys_byte(&k,
			    seed >> 30 ? (uint8_t)(seed >> 16) : (uint8_t) "\033[<;0M1~"[seed >> 16 & 7], &e))
			assert_int_not_equal(e.key, KEY_NONE);
		assert_true(k.nr < KEYS_PENDING);
	}
}

/* ---- frames ---- */

#define COLUMNS 40
#define ROWS 12

struct shown { /* a terminal that knows what frames use */
	char letter[ROWS][COLUMNS][5];
	unsigned row, column;
};

static void shown_clear(struct shown *t)
{
	memset(t, 0, sizeof(*t));
	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < COLUMNS; c++)
			t->letter[r][c][0] = ' ';
}

static const uint8_t *take_escape(struct shown *t, const uint8_t *p)
{
	unsigned value[20] = {0}, nr = 0;
	bool private = *p == '?';

	for (p += private; (*p >= '0' && *p <= '9') || *p == ';'; p++) {
		if (*p == ';')
			nr++;
		else
			value[nr] = value[nr] * 10 + (*p - '0');
		assert_true(nr < 20);
	}
	switch (*p) {
	case 'H':
		t->row = value[0] - 1;
		t->column = value[1] - 1;
		break;
	case 'C':
		t->column += value[0];
		break;
	case 'K':
		for (unsigned c = t->column; c < COLUMNS; c++)
			memcpy(t->letter[t->row][c], " ", 2);
		break;
	case 'J':
		shown_clear(t);
		break;
	case 'm':
	case 'h':
	case 'l':
		break;
	default:
		fail_msg("a frame has the sequence ESC [ ... %c", *p);
	}
	return p + 1;
}

static void shown_take(struct shown *t, const struct buf *out)
{
	const uint8_t *p = out->data, *end = p + out->len;

	while (p < end) {
		size_t len;

		if (*p == 0x1b) {
			assert_int_equal(p[1], '[');
			p = take_escape(t, p + 2);
			continue;
		}
		len = utf8_length(p, end);
		assert_true(len && *p >= 0x20);
		assert_true(t->row < ROWS && t->column < COLUMNS);
		memset(t->letter[t->row][t->column], 0, 5);
		memcpy(t->letter[t->row][t->column], p, len);
		p += len;
		t->column++;
		if (len == 3 && p[-3] == 0xe4) { /* a wide one of our test */
			assert_true(t->column < COLUMNS);
			memset(t->letter[t->row][t->column++], 0, 5);
		}
	}
}

static void random_frame(struct screen *s, uint32_t *seed)
{
	for (unsigned i = 0; i < 12; i++) {
		uint32_t x = *seed = *seed * 1664525 + 1013904223;
		unsigned column = x >> 8 & 63, row = x >> 16 & 15;

		switch (x >> 28) {
		case 0:
			frame_clear(s);
			break;
		case 1:
			frame_words(s, column, row, "\xe4\xb8\xad\xe6", 3, INK_CPU);
			frame_text(s, column, row,
				"\xe4\xb8\xad"
				"a\xe4\xb8\xad",
				7, 20, INK_CPU);
			break;
		case 2:
			frame_paper(s, column, row, 9, (int)(x >> 4 & 3));
			break;
		case 3:
			frame_text(s, column, row, "\033[2J\n\xff", 6, 30, INK_PLAIN);
			break;
		case 4:
			frame_words(s, column, row, "          ", 10, INK_PLAIN);
			break;
		default:
			frame_printf(s, column, row, 20, (int)(x >> 4 & 7), "%u %x", x >> 20, x);
		}
	}
}

static void copy_frame(struct screen *to, const struct screen *from)
{
	assert_int_equal(frame_open(to, from->columns, from->rows, from->utf8), 0);
	memcpy(to->cell, from->cell, sizeof(*to->cell) * from->columns * from->rows);
}

static void assert_shows(const struct shown *t, const struct screen *s)
{
	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < COLUMNS; c++) {
			const struct cell *cell = screen_cell(s, c, r);
			const char *letter = cell->letter[0] == FRAME_REST[0] ? ""
				: cell->letter[0]			      ? cell->letter
									      : " ";

			if (strcmp(letter, t->letter[r][c]))
				fail_msg("row %u column %u: '%s', not '%s'", r, c, t->letter[r][c], letter);
		}
}

static void test_a_difference_makes_the_next_frame(void **state)
{
	struct screen was = {0}, now;
	struct shown t;
	uint32_t seed = 7;

	(void)state;
	shown_clear(&t);
	assert_int_equal(frame_open(&now, COLUMNS, ROWS, true), 0);
	for (unsigned i = 0; i < 3000; i++) {
		struct buf out;

		random_frame(&now, &seed);
		/* What covers half of a wide character takes the other half, too, in what frames draw. */
		for (unsigned r = 0; r < ROWS; r++)
			for (unsigned c = 0; c < COLUMNS; c++) {
				struct cell *cell = screen_cell(&now, c, r),
					    *next = screen_cell(&now, c + 1, r);
				bool wide = (uint8_t)cell->letter[0] == 0xe4;
				bool rest = cell->letter[0] == FRAME_REST[0];

				if (wide && (c + 1 == COLUMNS || next->letter[0] != FRAME_REST[0]))
					memcpy(cell->letter, "?", 2);
				if (rest && (!c || (uint8_t)screen_cell(&now, c - 1, r)->letter[0] != 0xe4))
					memcpy(cell->letter, "?", 2);
			}
		buf_init(&out, 1 << 20);
		frame_diff(was.cell ? &was : NULL, &now, (enum color_depth)(i % 4), &out);
		assert_int_equal(out.err, 0);
		shown_take(&t, &out);
		assert_shows(&t, &now);
		buf_reset(&out);
		if (was.cell)
			screen_close(&was);
		copy_frame(&was, &now);
		frame_diff(&was, &now, COLORS_256, &out);
		assert_int_equal(out.len, 0); /* the same: nothing */
		buf_release(&out);
	}
	screen_close(&was);
	screen_close(&now);
}

static void test_one_number_is_a_few_bytes(void **state)
{
	struct screen was, now;
	struct buf out;

	(void)state;
	assert_int_equal(frame_open(&now, 200, 50, true), 0);
	for (unsigned r = 0; r < 50; r++)
		frame_printf(&now, 0, r, 200, INK_PLAIN, "a line of the table, number %u, with 12.3 %%", r);
	copy_frame(&was, &now);
	frame_words(&now, 36, 20, "99.9", 4, INK_PLAIN);
	buf_init(&out, 1 << 20);
	frame_diff(&was, &now, COLORS_256, &out);
	assert_in_range(out.len, 1, 60);
	assert_true(str_starts((char *)out.data, "\033[?2026h"));
	assert_non_null(strstr((char *)out.data, "\033[?2026l"));
	buf_release(&out);
	screen_close(&was);
	screen_close(&now);
}

static void test_curves_are_peaks_that_do_not_get_lost(void **state)
{
	const float value[8] = {0, 0.5f, 1, NAN, NAN, NAN, 0.25f, 0.25f};
	struct screen s;
	struct buf out;

	(void)state;
	assert_int_equal(frame_open(&s, 4, 2, true), 0);
	frame_curve(&s, 0, 0, 4, 2, value, true, INK_CPU);
	buf_init(&out, 1024);
	frame_plain(&s, &out);
	/* 7 steps: 0, 4, 7, 2. */
	assert_string_equal((char *)out.data, "⢀⡇\n⣸⡇ ⣶\n");
	buf_release(&out);
	screen_close(&s);
	assert_int_equal(frame_open(&s, 4, 2, false), 0);
	frame_curve(&s, 0, 0, 4, 2, value, true, INK_CPU);
	buf_init(&out, 1024);
	frame_plain(&s, &out);
	assert_string_equal((char *)out.data, " #\n_# :\n");
	buf_release(&out);
	screen_close(&s);
}

static void test_what_a_terminal_can_show(void **state)
{
	(void)state;
	assert_int_equal(color_depth_of("xterm-256color", NULL, NULL), COLORS_256);
	assert_int_equal(color_depth_of("xterm-256color", "truecolor", ""), COLORS_TRUE);
	assert_int_equal(color_depth_of("xterm-256color", "truecolor", "1"), COLORS_NONE);
	assert_int_equal(color_depth_of("linux", NULL, NULL), COLORS_8);
	assert_int_equal(color_depth_of("never-heard-of", NULL, NULL), COLORS_8);
	assert_int_equal(color_depth_of("dumb", NULL, NULL), COLORS_NONE);
	assert_int_equal(color_depth_of("vt220", NULL, NULL), COLORS_NONE);
	assert_int_equal(color_depth_of(NULL, NULL, NULL), COLORS_NONE);
}

/* ---- processes ---- */

static struct who person[8];
static struct top_process table[8];

/* 1 has the children 2 and 5, 2 has 3, 3 has 4; 6 and 7 have each other as parents. */
static struct snapshot a_snapshot(void)
{
	static const int64_t parent[] = {0, 0, 1, 2, 3, 1, 7, 6};
	static const char *const name[] = {"", "root", "left", "deep", "leaf", "right", "circle", "circle"};

	for (uint32_t i = 1; i < 8; i++) {
		person[i] = (struct who){.id = i,
			.pid = i,
			.ppid = parent[i],
			.uid = 1000 + i % 2,
			.name = (char *)(uintptr_t)name[i],
			.name_len = strlen(name[i]),
			.start_s = 0.1 * i};
		table[i - 1].who = &person[i];
		for (unsigned v = 0; v < NR_OF_PROCESS; v++)
			table[i - 1].value[v] = NAN;
		table[i - 1].value[OF_PROCESS_CORES] = 0.1 * i;
	}
	return (struct snapshot){.time_ns = NSEC_PER_SEC, .process = table, .nr = 7};
}

static void assert_order(const struct top_table *p, const char *pids)
{
	char text[100] = "";

	for (uint32_t i = 0; i < p->nr_shown; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%lld",
			(long long)p->line[p->shown[i]].pid);
	assert_string_equal(text, pids);
}

static void arrange(struct top_table *p, double time_s)
{
	struct snapshot s = a_snapshot();

	assert_int_equal(processes_set(p, &s, time_s, 0, NULL), 0);
	assert_int_equal(processes_arrange(p, time_s), 0);
}

static void test_trees_lists_and_filters(void **state)
{
	struct top_table p;

	(void)state;
	processes_init(&p);
	arrange(&p, 1);
	assert_order(&p, "12345");
	assert_int_equal(p.line[p.shown[3]].depth, 3);
	assert_true(p.line[p.shown[4]].last_child);
	snprintf(p.filter, sizeof(p.filter), "LEAF");
	arrange(&p, 1);
	assert_order(&p, "1234"); /* with its ancestors */
	assert_true(p.line[p.shown[0]].kin && !p.line[p.shown[3]].kin);
	*p.filter = 0;
	processes_fold(&p, 2, true);
	arrange(&p, 1);
	assert_order(&p, "125");
	processes_fold(&p, 2, false);
	p.tree = false;
	p.sort_now = true;
	arrange(&p, 1);
	assert_order(&p, "7654321"); /* by CPU */
	p.inverted = p.sort_now = true;
	arrange(&p, 1);
	assert_order(&p, "1234567");
	snprintf(p.user, sizeof(p.user), "1001");
	arrange(&p, 1);
	assert_order(&p, "1357");
	assert_int_equal(processes_search(&p, "circle", 0), 3);
	assert_int_equal(processes_search(&p, "nothing", 0), p.nr_shown);
	processes_tag(&p, 3);
	assert_true(processes_is_tagged(&p, 3));
	processes_tag(&p, 3);
	assert_false(processes_is_tagged(&p, 3));
	processes_release(&p);
}

static void test_an_order_lasts_for_a_while(void **state)
{
	struct snapshot s = a_snapshot();
	struct top_table p;

	(void)state;
	processes_init(&p);
	p.tree = false;
	arrange(&p, 10);
	assert_order(&p, "7654321");
	table[0].value[OF_PROCESS_CORES] = 5; /* the first is the busiest now */
	assert_int_equal(processes_set(&p, &s, 11, 0, NULL), 0);
	assert_int_equal(processes_arrange(&p, 11), 0);
	assert_order(&p, "7654321");
	assert_int_equal(processes_set(&p, &s, 14, 0, NULL), 0);
	assert_int_equal(processes_arrange(&p, 14), 0);
	assert_order(&p, "1765432");
	processes_release(&p);
}

/* ---- how memory grows ---- */

static double slope_of(struct top_point *point, size_t nr)
{
	struct top_reading r = {.point = point, .nr_points = nr, .cap_points = nr, .most_points = nr};

	return memory_slope(&r, point[nr - 1].time_ns);
}

static void test_memory_grows_steadily_or_nothing_is_said(void **state)
{
	struct top_point point[41];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(point); i++) {
		point[i].time_ns = (int64_t)i * NSEC_PER_SEC;
		for (unsigned v = 0; v < NR_TOP_VALUES; v++)
			point[i].value[v] = NAN;
		point[i].value[TOP_PSS] = 1e8 + 1e6 * (double)i;
	}
	assert_float_equal(slope_of(point, 40), 1e6, 1);
	point[40].value[TOP_PSS] = 3e5; /* the job is over, what is left is little */
	assert_true(isnan(slope_of(point, 41)));
	assert_float_equal(slope_of(point, 40), 1e6, 1);
}

static void test_when_the_limit_is_reached(void **state)
{
	(void)state;
	assert_float_equal(memory_reach(1e8, 2e10, 4e6), 4975, 0.5); /* far below it, and hours away */
	assert_float_equal(memory_reach(1.9e10, 2e10, 1e7), 100, 0.5);
	assert_float_equal(memory_reach(2e10, 2e10, 1e7), 0, 0);
	assert_true(isnan(memory_reach(1e8, 2e10, 2e5)));  /* more than a day */
	assert_true(isnan(memory_reach(1e8, 2e10, 9000))); /* no growth to speak of */
	assert_true(isnan(memory_reach(1e8, 2e10, -1e7)));
	assert_true(isnan(memory_reach(1e8, NAN, 1e7)));
	assert_true(isnan(memory_reach(1e8, 2e10, NAN)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences_are_keys),
		cmocka_unit_test(test_the_mouse),
		cmocka_unit_test(test_what_is_unknown_is_passed_over_as_a_whole),
		cmocka_unit_test(test_any_bytes_do_no_harm),
		cmocka_unit_test(test_a_difference_makes_the_next_frame),
		cmocka_unit_test(test_one_number_is_a_few_bytes),
		cmocka_unit_test(test_curves_are_peaks_that_do_not_get_lost),
		cmocka_unit_test(test_what_a_terminal_can_show),
		cmocka_unit_test(test_trees_lists_and_filters),
		cmocka_unit_test(test_an_order_lasts_for_a_while),
		cmocka_unit_test(test_memory_grows_steadily_or_nothing_is_said),
		cmocka_unit_test(test_when_the_limit_is_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
