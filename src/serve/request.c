/* Addresses, hosts, cookies and secrets of requests: see request.h. Everything here may be written by an
 * enemy. */
#include "serve/request.h"

#include "base/str.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

/* ---- addresses ---- */

static bool is_id(struct text t)
{
	if (t.len != ID_DIGITS)
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (!strchr("0123456789abcdef", t.p[i]) || !t.p[i])
			return false;
	return true;
}

static bool is_format(struct text t)
{
	if (!t.len || t.len > FORMAT_NAME_MOST)
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", t.p[i]) || !t.p[i])
			return false;
	return true;
}

static enum serve_place place_of_run(struct text rest, char *format)
{
	static const struct {
		const char *name;
		enum serve_place place;
	} row[] = {
		{"", PLACE_PAGE},
		{"events", PLACE_EVENTS},
		{"recording", PLACE_RECORDING},
		{"report.html", PLACE_REPORT_HTML},
		{"report.pdf", PLACE_REPORT_PDF},
		{"curve.svg", PLACE_CURVE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (text_is(rest, row[i].name))
			return row[i].place;
	if (!text_starts(rest, "export/"))
		return PLACE_NONE;
	rest = text_from(rest, strlen("export/"));
	if (!is_format(rest))
		return PLACE_NONE;
	memcpy(format, rest.p, rest.len);
	format[rest.len] = 0;
	return PLACE_EXPORT;
}

struct serve_address serve_address(const char *path)
{
	struct serve_address a = {0};
	struct text rest = text_of(path), id;

	if (!text_starts(rest, "/"))
		return a;
	rest = text_from(rest, 1);
	for (size_t i = 0; i < rest.len; i++)
		a.depth += rest.p[i] == '/';
	if (!rest.len)
		a.place = PLACE_INDEX;
	else if (text_is(rest, "login"))
		a.place = PLACE_LOGIN;
	if (!text_starts(rest, "run/"))
		return a;
	rest = text_from(rest, strlen("run/"));
	if (!memchr(rest.p, '/', rest.len)) {
		a.place = is_id(rest) ? PLACE_BARE_RUN : PLACE_NONE;
		if (a.place)
			memcpy(a.id, rest.p, ID_DIGITS);
		return a;
	}
	id = text_cut(&rest, '/');
	if (!is_id(id))
		return a;
	memcpy(a.id, id.p, ID_DIGITS);
	a.place = place_of_run(rest, a.format);
	return a;
}

void serve_id(const char *path, char out[static ID_DIGITS + 1])
{
	uint64_t hash = hash_bytes(path, strlen(path));

	/* Neighbours differ in their last letters: all digits shall. */
	hash ^= hash >> 33;
	hash *= UINT64_C(0xff51afd7ed558ccd);
	hash ^= hash >> 33;
	hash *= UINT64_C(0xc4ceb9fe1a85ec53);
	hash ^= hash >> 33;
	snprintf(out, ID_DIGITS + 1, "%016llx", (unsigned long long)hash);
}

/* ---- hosts ---- */

static char small_letter(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_port(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n && n <= 5 && !text[n];
}

bool serve_host_name(const char *header, char *out, size_t size)
{
	size_t n = *header == '[' ? strcspn(header, "]") + 1 : strcspn(header, ":");

	if (n < 1 || n >= size || n > strlen(header))
		return false;
	if (header[n] && (header[n] != ':' || !is_port(header + n + 1)))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (header[i] <= ' ' || header[i] > '~' || strchr("/@,;\"\\", header[i]))
			return false;
		out[i] = small_letter(header[i]);
	}
	out[n] = 0;
	return true;
}

bool serve_host_allowed(const char *header, const char *const *name, size_t nr)
{
	static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
	char host[256];

	if (!header || !serve_host_name(header, host, sizeof(host)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(loopback); i++)
		if (!strcmp(host, loopback[i]))
			return true;
	for (size_t i = 0; i < nr; i++)
		if (!strcasecmp(host, name[i]))
			return true;
	return false;
}

bool serve_origin_is(const char *origin, const char *host)
{
	const char *rest;

	if (!origin)
		return true;
	if (!host || !(rest = strstr(origin, "://")))
		return false;
	return !strcasecmp(rest + 3, host);
}

/* ---- secrets ---- */

bool serve_cookie(const char *header, const char *name, const char **ret, size_t *ret_len)
{
	size_t n = strlen(name);

	while (header && *header) {
		header += strspn(header, " \t;");
		if (!strncmp(header, name, n) && header[n] == '=') {
			*ret = header + n + 1;
			*ret_len = strcspn(*ret, "; \t");
			return true;
		}
		header += strcspn(header, ";");
	}
	return false;
}

bool serve_same_secret(const char *given, size_t len, const char *secret)
{
	size_t n = strlen(secret);
	unsigned differs = len != n;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(len ? given[i % len] : 0) ^ (unsigned char)secret[i];
	return n && !differs;
}

const char *serve_bearer(const char *header)
{
	return header && !strncasecmp(header, "Bearer ", 7) ? header + 7 : NULL;
}

bool serve_moment(const char *text, int64_t *ret)
{
	size_t n = text ? strlen(text) : 0;

	return n && n < 20 && strspn(text, "0123456789") == n && parse_i64n(text, n, ret);
}

void serve_disposition(struct buf *out, const char *name)
{
	bool plain = true;

	buf_adds(out, "attachment; filename=\"");
	for (const char *c = name; *c; c++) {
		bool good = *c >= ' ' && *c <= '~' && !strchr("\"\\%/", *c);

		buf_addch(out, good ? *c : '_');
		plain &= good;
	}
	buf_addch(out, '"');
	if (plain)
		return;
	buf_adds(out, "; filename*=UTF-8''");
	for (const char *c = name; *c; c++)
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			strchr("-._", *c))
			buf_addch(out, *c);
		else
			buf_addf(out, "%%%02X", (unsigned char)*c);
}
