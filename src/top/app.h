/* `tacho top` between the terminal and the model: what is on the screen, and what keys do to it. It neither
 * reads keys nor writes; what needs another program is handed to the caller as an act. */
#ifndef TOP_APP_H
#define TOP_APP_H

#include "top/frame.h"
#include "top/keys.h"
#include "top/model.h"
#include "top/processes.h"

enum app_act {
	ACT_NONE,
	ACT_QUIT,
	ACT_STOP, /* Ctrl-Z */
	ACT_MARK, /* app.text at model_now() */
	ACT_REPORT,
	ACT_KEEP, /* app.text: the name; empty: one of our choice */
	ACT_EXPLAIN,
	ACT_KILL, /* signal `app.kill_signal` to app.kill_pid */
};

enum app_prompt {
	PROMPT_NONE,
	PROMPT_SEARCH,
	PROMPT_FILTER,
	PROMPT_USER,
	PROMPT_TIME,
	PROMPT_MARK,
	PROMPT_KEEP,
	PROMPT_KILL,
};

enum app_page { PAGE_MAIN, PAGE_HELP, PAGE_TEXT, PAGE_SORT };

enum play { PLAY_LIVE, PLAY_PAUSED, PLAY_ON };

struct part_row { /* a node, or a group of its processes */
	size_t node;
	int group; /* negative: the node */
	bool is_rank;
	double mean; /* cores, over the time of the curves */
};

struct top_app {
	struct model m;
	struct top_table p;
	enum play play;
	bool utf8, can_keep, can_kill, follows; /* follows: the cursor stays on its process */
	bool ended;				/* those that ended are shown */
	double ended_share;			/* so much of the recording was read for them */
	bool ended_by_itself; /* at the end of a finished run alone: the user did not ask for them */
	char *title;	      /* of what we started; NULL: nothing */
	/* The cursor. */
	uint32_t row, top, id; /* place in the list, the first that is shown, the process */
	size_t node_row;       /* in the list of nodes and groups */
	struct part_row *part;
	size_t nr_parts, cap_parts;
	int parts_fold; /* 1: groups are shown, -1: not, 0: the user did not say */
	enum app_page page;
	unsigned page_top, sort_row;
	char *page_text;
	enum app_prompt prompt;
	char text[200];
	size_t text_len;
	char message[300]; /* until the next key */
	char searched[80];
	int64_t kill_pid;
	int kill_signal;
	enum app_act after; /* of a prompt */
	/* Where things are, for the mouse: set while drawing. */
	unsigned columns, rows;
	unsigned bar_row, bar_column, bar_columns; /* bar_columns 0: there is none */
	unsigned list_row, list_rows, head_row;
	struct {
		unsigned column, columns;
		enum process_order_by by;
	} head[NR_BY];
	unsigned nr_heads;
};

/* What it shows of a moment; drawn on the screen. -ENOMEM. */
int app_draw(struct top_app *a, struct screen *s);
enum app_act app_key(struct top_app *a, const struct key_event *e);
/* A tick of playing: true when the moment has moved. */
bool app_play(struct top_app *a);
void app_say(struct top_app *a, const char *fmt, ...) _printf_(2, 3);
/* A page of text over the screen; takes the text. */
void app_show_text(struct top_app *a, char *text);
void app_close(struct top_app *a);
bool app_shows_ended(const struct top_app *a);
bool app_shows_nodes(const struct top_app *a);
bool app_shows_threads(const struct top_app *a);
/* What must not be overlooked at this moment; false: nothing. */
bool app_alarm(struct top_app *a, struct buf *out);
/* "5m", "-30s", "+10s", "50%", "phase 3", "phase load": false and a message when it is none. */
bool app_parse_time(struct top_app *a, const char *text, int64_t *ret_ns);

/* ---- pieces of the drawing ---- */

extern const char *const top_help[]; /* lines, NULL at the end */
extern const char *const process_column_title[NR_BY];

/* The rows that they take. */
unsigned draw_head(struct top_app *a, struct screen *s);
unsigned draw_panels(struct top_app *a, struct screen *s, unsigned row, unsigned rows);
void draw_processes(struct top_app *a, struct screen *s, unsigned row, unsigned rows);
int draw_nodes(struct top_app *a, struct screen *s, unsigned row, unsigned rows);
void draw_time_bar(struct top_app *a, struct screen *s, unsigned row);
/* The phase of the node that was told last before this moment and goes on; NULL: none. */
const struct run_event *phase_at(const struct run_events *e, double time_s);
/* The last mark of the job in this time, both inclusive; NULL: there is none. */
const struct run_event *mark_in(const struct run_events *e, double from_s, double to_s);
/* Where marks are, over so many columns of which each stands for that much time after the first. */
void draw_mark_signs(struct screen *s, const struct run_events *e, unsigned column, unsigned row,
	unsigned columns, double from_s, double step_s);
/* Paper of the band at that moment; INK_PLAIN: no phase. */
int phase_paper(const struct run_events *e, double time_s);
/* `group`: of one of the reading's groups; negative: of all.
 * Values for the halves of so many columns, of the window up to the moment; peaks are kept. */
void curve_values(const struct top_reading *r, enum top_value which, int group, int64_t time_ns,
	int64_t window_ns, unsigned halves, float *out);
/* What a window column stands for: the end of its time, in seconds of the node. */
double column_time(int64_t time_ns, int64_t window_ns, unsigned half, unsigned halves);
char *format_clock(char out[static UNITS_SIZE], double seconds);
#endif
