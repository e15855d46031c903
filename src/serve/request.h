/* What a request asks for and whether it may: pure text, so that it can be tested byte by byte. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "base/buf.h"

#define ID_DIGITS 16
#define FORMAT_NAME_MOST 32

enum serve_place {
	PLACE_NONE, /* there is nothing: 404 */
	PLACE_INDEX,
	PLACE_LOGIN,
	PLACE_PAGE,
	PLACE_EVENTS,
	PLACE_RECORDING,
	PLACE_REPORT_HTML,
	PLACE_REPORT_PDF,
	PLACE_EXPORT,
	PLACE_CURVE,
	PLACE_BARE_RUN, /* run/ID without the slash behind it, from which relative addresses would be wrong */
};

struct serve_address {
	enum serve_place place;
	char id[ID_DIGITS + 1];
	char format[FORMAT_NAME_MOST + 1];
	unsigned depth; /* slashes behind the first: how far the root is above */
};

/* Of the path of a request as it was sent: nothing is unescaped, since none of our addresses needs that. */
struct serve_address serve_address(const char *path);
/* What a path is called in addresses: the same for every server. */
void serve_id(const char *path, char out[static ID_DIGITS + 1]);

/* The host of a header: without the port, small letters; of "[::1]:80" "[::1]". false: it is none. */
bool serve_host_name(const char *header, char *out, size_t size);
/* One of the names, or one of loopback. */
bool serve_host_allowed(const char *header, const char *const *name, size_t nr);
/* The page that asks is one of ours: of the same host and port. `origin` NULL, when it was not said: yes. */
bool serve_origin_is(const char *origin, const char *host);
/* The value of a cookie; false: there is none of that name. */
bool serve_cookie(const char *header, const char *name, const char **ret, size_t *ret_len);
/* In a time that does not tell how much of it is right. */
bool serve_same_secret(const char *given, size_t len, const char *secret);
/* What follows "Bearer "; NULL: something else. */
const char *serve_bearer(const char *header);
/* A time of the run as it stands in addresses and events. */
bool serve_moment(const char *text, int64_t *ret);
/* A name in a header: filename="…" and, where it has other letters, filename*= (RFC 6266). */
void serve_disposition(struct buf *out, const char *name);
#endif
