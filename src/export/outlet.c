#include "export/outlet.h"

#include <string.h>

int outlet_open(struct outlet *o, int fd)
{
	*o = (struct outlet){.fd = fd, .buffer = malloc(OUTLET_BUFFER)};
	return o->buffer ? 0 : -ENOMEM;
}

static int write_all(struct outlet *o, const uint8_t *p, size_t n)
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
