/* Writes through a buffer to a descriptor: see outlet.h. */
#include "export/outlet.h"

#include "base/str.h"

#include <string.h>

int outlet_open(struct outlet *o, int fd)
{
	*o = (struct outlet){.fd = fd, .buffer = malloc(OUTLET_BUFFER), .terminal = isatty(fd)};
	return o->buffer ? 0 : -ENOMEM;
}

static int write_bytes(struct outlet *o, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t done = write(o->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return o->err = done ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* How many bytes at the end may belong to what comes next: part of a character, CR before LF. */
static size_t unfinished(const uint8_t *p, size_t n)
{
	if (n && p[n - 1] == '\r')
		return 1;
	for (size_t back = 1; back <= MIN(n, (size_t)3); back++) {
		uint8_t c = p[n - back];

		if (c >= 0xc0)
			return (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2) > back ? back : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static int write_shown(struct outlet *o, const uint8_t *p, size_t n)
{
	struct buf raw, shown;
	size_t later;

	buf_init(&raw, SIZE_MAX / 2);
	buf_init(&shown, SIZE_MAX / 2);
	buf_add(&raw, o->rest, o->nr_rest);
	buf_add(&raw, p, n);
	later = raw.err ? 0 : unfinished(raw.data, raw.len);
	show_bytes(&shown, raw.data, raw.len - later, "\n\t");
	memcpy(o->rest, raw.data + raw.len - later, later);
	o->nr_rest = later;
	if (raw.err || shown.err)
		o->err = -ENOMEM;
	else
		write_bytes(o, shown.data, shown.len);
	buf_release(&raw);
	buf_release(&shown);
	return o->err;
}

static int write_all(struct outlet *o, const uint8_t *p, size_t n)
{
	return o->terminal ? write_shown(o, p, n) : write_bytes(o, p, n);
}

int outlet_flush(struct outlet *o)
{
	if (!o->err && o->held)
		write_all(o, o->buffer, o->held);
	o->held = 0;
	return o->err;
}

int outlet_add(struct outlet *o, const void *data, size_t len)
{
	o->at += len;
	if (len > OUTLET_BUFFER - o->held && outlet_flush(o) < 0)
		return o->err;
	if (len >= OUTLET_BUFFER)
		return o->err ? o->err : write_all(o, data, len);
	if (len)
		memcpy(o->buffer + o->held, data, len);
	o->held += len;
	return o->err;
}

uint64_t outlet_at(const struct outlet *o)
{
	return o->at;
}

void outlet_release(struct outlet *o)
{
	free(o->buffer);
	o->buffer = NULL;
}
