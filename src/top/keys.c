/* The bytes of a terminal as keys: see keys.h. xterm's sequences, with those of the Linux console, rxvt and
 * screen where they differ; the mouse as SGR reports it. */
#include "top/keys.h"

#include "base/str.h"

#include <string.h>

#define ESC 0x1b
#define PARAMETERS 4

static bool give(struct keys *k, struct key_event *ret, struct key_event event)
{
	k->nr = 0;
	*ret = event;
	return event.key != KEY_NONE;
}

/* ---- sequences ---- */

struct sequence {  /* ESC [ 1 ; 5 A */
	char mark; /* '<', '?'...: a private one; 0: none */
	unsigned value[PARAMETERS], nr;
	char final;
};

static struct sequence parse_sequence(const uint8_t *p, size_t len)
{
	struct sequence s = {.final = (char)p[len - 1]};
	size_t i = 0;

	if (len > 1 && p[0] >= '<' && p[0] <= '?') {
		s.mark = (char)p[0];
		i = 1;
	}
	for (bool in = false; i + 1 < len; i++) {
		if (p[i] >= '0' && p[i] <= '9') {
			if (!in && s.nr < PARAMETERS)
				s.nr++;
			in = true;
			s.value[s.nr - 1] = MIN(s.value[s.nr - 1] * 10 + (p[i] - '0'), 100000u);
		} else {
			if (!in && s.nr < PARAMETERS)
				s.nr++; /* left out: 0 */
			in = false;
		}
	}
	return s;
}

static enum key key_of_letter(char final)
{
	static const struct {
		char letter;
		enum key key;
	} row[] = {{'A', KEY_UP}, {'B', KEY_DOWN}, {'C', KEY_RIGHT}, {'D', KEY_LEFT}, {'H', KEY_HOME},
		{'F', KEY_END}, {'P', KEY_F1}, {'Q', KEY_F1 + 1}, {'R', KEY_F1 + 2}, {'S', KEY_F1 + 3},
		{'M', KEY_ENTER}, {'Z', KEY_TAB}};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (row[i].letter == final)
			return row[i].key;
	return KEY_NONE;
}

/* ESC [ NUMBER ~ */
static enum key key_of_number(unsigned n)
{
	static const uint8_t key[] = {[1] = KEY_HOME,
		[2] = KEY_INSERT,
		[3] = KEY_DELETE,
		[4] = KEY_END,
		[5] = KEY_PAGE_UP,
		[6] = KEY_PAGE_DOWN,
		[7] = KEY_HOME,
		[8] = KEY_END,
		[11] = KEY_F1,
		[12] = KEY_F1 + 1,
		[13] = KEY_F1 + 2,
		[14] = KEY_F1 + 3,
		[15] = KEY_F1 + 4,
		[17] = KEY_F1 + 5,
		[18] = KEY_F1 + 6,
		[19] = KEY_F1 + 7,
		[20] = KEY_F1 + 8,
		[21] = KEY_F1 + 9,
		[23] = KEY_F1 + 10,
		[24] = KEY_F12};

	return n < ARRAY_SIZE(key) ? (enum key)key[n] : KEY_NONE;
}

static struct key_event mouse_event(const struct sequence *s)
{
	unsigned button = s->value[0];
	struct key_event e = {.key = KEY_MOUSE,
		.shift = button & 4,
		.alt = button & 8,
		.ctrl = button & 16,
		.column = s->value[1] - (s->value[1] > 0),
		.row = s->value[2] - (s->value[2] > 0)};

	if (s->nr < 3 || (s->final != 'M' && s->final != 'm'))
		return (struct key_event){0};
	if (button & 64)
		e.mouse = button & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP;
	else if (s->final == 'm')
		e.mouse = MOUSE_RELEASE;
	else
		e.mouse = button & 32 ? MOUSE_DRAG : MOUSE_PRESS;
	return e;
}

static struct key_event sequence_event(const struct sequence *s)
{
	unsigned modifiers = s->nr > 1 && s->value[1] ? s->value[1] - 1 : 0;
	struct key_event e = {.shift = modifiers & 1, .alt = modifiers >> 1 & 1, .ctrl = modifiers >> 2 & 1};

	if (s->mark == '<')
		return mouse_event(s);
	if (s->mark)
		return (struct key_event){0};
	if (s->final == '~' || s->final == '$' || s->final == '^')
		e.key = key_of_number(s->value[0]);
	else if (s->final >= 'a' && s->final <= 'd') { /* rxvt, with Shift */
		e.key = key_of_letter((char)(s->final - 'a' + 'A'));
		e.shift = true;
	} else
		e.key = key_of_letter(s->final);
	e.shift |= s->final == '$' || s->final == 'Z';
	e.ctrl |= s->final == '^';
	return e;
}

/* The Linux console: ESC [ [ A is F1. */
static bool is_console(const struct keys *k)
{
	return k->nr >= 3 && k->pending[2] == '[';
}

/* After ESC and '[' or 'O'. */
static bool take_sequence(struct keys *k, struct key_event *ret)
{
	uint8_t last = k->pending[k->nr - 1];
	struct sequence s;

	if (k->nr < 3 || (k->nr == 3 && is_console(k)))
		return false;
	if (is_console(k))
		return give(k, ret,
			(struct key_event){.key = last >= 'A' && last <= 'E' ? (enum key)(KEY_F1 + last - 'A')
									     : KEY_NONE});
	if (last < 0x40 && last >= 0x20 && last != '$')
		return false; /* not the end */
	s = parse_sequence(k->pending + 2, k->nr - 2);
	return give(k, ret, sequence_event(&s));
}

/* ---- characters ---- */

static struct key_event control_event(uint8_t byte)
{
	struct key_event e = {0};

	if (byte == '\r' || byte == '\n')
		e.key = KEY_ENTER;
	else if (byte == '\t')
		e.key = KEY_TAB;
	else if (byte == 0x7f || byte == 0x08)
		e.key = KEY_BACKSPACE;
	else if (byte && byte < 0x20) {
		e.key = KEY_CTRL;
		e.code = byte < 0x1b ? byte - 1u + 'a' : byte + 0x40u;
		e.ctrl = true;
	}
	return e;
}

static size_t character_length(uint8_t first)
{
	return first < 0x80	? 1
		: first >= 0xf8 ? 0
		: first >= 0xf0 ? 4
		: first >= 0xe0 ? 3
		: first >= 0xc0 ? 2
				: 0;
}

/* A character, perhaps of several bytes, that begins at `from`. */
static bool take_character(struct keys *k, size_t from, bool alt, struct key_event *ret)
{
	const uint8_t *p = k->pending + from;
	size_t want = character_length(*p), have = k->nr - from;
	struct key_event e;

	if (*p < 0x20 || *p == 0x7f) {
		e = control_event(*p);
	} else {
		if (want > have)
			return false;
		e = (struct key_event){.key = KEY_NONE};
		if (want && utf8_length(p, p + have) == want)
			e = (struct key_event){.key = KEY_CHAR, .code = utf8_code(p, want)};
	}
	e.alt = alt;
	return give(k, ret, e);
}

static bool take(struct keys *k, struct key_event *ret)
{
	if (k->pending[0] != ESC)
		return take_character(k, 0, false, ret);
	if (k->nr < 2)
		return false;
	if (k->pending[1] == '[' || k->pending[1] == 'O')
		return take_sequence(k, ret);
	return take_character(k, 1, true, ret);
}

bool keys_byte(struct keys *k, uint8_t byte, struct key_event *ret)
{
	if (byte == ESC && k->nr) { /* a new one begins; of two in a row the first is the key */
		bool alone = k->nr == 1 && k->pending[0] == ESC;

		k->skips = false;
		k->nr = 0;
		k->pending[k->nr++] = byte;
		*ret = (struct key_event){.key = KEY_ESC};
		return alone;
	}
	if (k->skips) {
		k->skips = byte < 0x40;
		k->nr = 0;
		return false;
	}
	if (k->nr && k->pending[0] >= 0x80 && (byte & 0xc0) != 0x80)
		k->nr = 0; /* a character that was cut */
	k->pending[k->nr++] = byte;
	if (take(k, ret))
		return true;
	if (k->nr == KEYS_PENDING) {
		k->nr = 0;
		k->skips = true;
	}
	return false;
}

bool keys_timeout(struct keys *k, struct key_event *ret)
{
	bool alone = k->nr == 1 && k->pending[0] == ESC;
	bool alt = k->nr == 2 && k->pending[0] == ESC && k->pending[1] < 0x80;

	*ret = alone ? (struct key_event){.key = KEY_ESC}
		     : (struct key_event){.key = KEY_CHAR, .code = k->pending[1], .alt = true};
	k->nr = 0;
	k->skips = false;
	return alone || alt;
}
