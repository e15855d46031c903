/* The terminal: raw while we draw, and as it was after every kind of end.
 *
 * What ends the program (a signal, a crash) or stops it for a while puts the terminal back first. */
#ifndef TOP_TTY_H
#define TOP_TTY_H

#include "top/frame.h"
#include "top/keys.h"

struct tty {
	int in, out; /* in: keys; the same terminal */
	enum color_depth depth;
	bool utf8, mouse;
	struct screen shown;	/* what it shows; no cells: not known */
	uint64_t bytes, writes; /* so far */
	struct keys keys;
};

enum tty_news {
	TTY_TIMEOUT = 0,
	TTY_KEY = 1,
	TTY_RESIZED = 2, /* or it may show anything: everything is to be drawn again */
	TTY_ENDED = 3,	 /* it is gone, or a signal asked us to end: tty_signal() */
};

/* What a terminal shows, by TERM, COLORTERM and NO_COLOR. */
enum color_depth color_depth_of(const char *term, const char *colorterm, const char *no_color);
/* It can be drawn on: standard output is a terminal that knows more than lines. */
bool tty_can_draw(int out, const char *term);
/* Of this program there is one. 0 or a negative errno. */
int tty_open(struct tty *t, int out, bool utf8, bool mouse);
/* As it was; may be called again. */
void tty_close(struct tty *t);
void tty_size(const struct tty *t, unsigned *ret_columns, unsigned *ret_rows);
/* Draws what is other than before, in one write; the screen is taken. Returns the bytes, or a negative
 * errno. */
long tty_draw(struct tty *t, struct screen *next);
/* Waits for a key, at most so long (negative: for ever). */
enum tty_news tty_wait(struct tty *t, int64_t timeout_ns, struct key_event *ret);
/* The user wants us stopped: as Ctrl-Z does. */
void tty_stop(struct tty *t);
/* Signal that asked us to end; 0: none. */
int tty_signal(void);
/* For a while the terminal belongs to another program. */
void tty_lend(struct tty *t);
void tty_take_back(struct tty *t);
#endif
