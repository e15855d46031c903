/* What a terminal sends, as keys: bytes in, one key at a time out.
 *
 * Sequences may come in pieces. What is no sequence that is known is passed over as a whole, so that no part
 * of it is taken for a letter. An escape that nothing follows is the key Esc: the caller says when it has
 * waited long enough. */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

#include "base/base.h"

enum key {
	KEY_NONE,
	KEY_CHAR, /* `code` is the character */
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_HOME,
	KEY_END,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_INSERT,
	KEY_DELETE,
	KEY_ENTER,
	KEY_BACKSPACE,
	KEY_TAB,
	KEY_ESC,
	KEY_CTRL, /* `code` is the letter: 'c' */
	KEY_MOUSE,
	KEY_F1,
	KEY_F12 = KEY_F1 + 11,
};

enum mouse { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN };

struct key_event {
	enum key key;
	uint32_t code;
	bool shift, alt, ctrl;
	enum mouse mouse;
	unsigned column, row; /* of the mouse, from 0 */
};

#define KEYS_PENDING 64

struct keys {
	uint8_t pending[KEYS_PENDING]; /* of a sequence that is not whole */
	size_t nr;
	bool skips; /* the rest of a sequence that was too long */
};

/* One byte more: true and a key when there is one. */
bool keys_byte(struct keys *k, uint8_t byte, struct key_event *ret);
/* Nothing follows: what is pending is a key of its own, or nothing. */
bool keys_timeout(struct keys *k, struct key_event *ret);
static inline bool keys_wait(const struct keys *k)
{
	return k->nr > 0;
}
#endif
