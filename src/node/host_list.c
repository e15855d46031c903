/* Expands and collects names of nodes. See host_list.h. */
#include "node/host_list.h"

#include "base/owned.h"
#include "base/str.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void host_list_release(struct host_list *h)
{
	texts_free(h->name, h->nr);
	idmap_release(&h->by_hash);
	*h = (struct host_list){0};
}

bool host_name_valid(const char *name, size_t len)
{
	if (!len || len >= HOST_NAME_SIZE || name[0] == '-' || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '-' && c != '_')
			return false;
	}
	return true;
}

/* The key under which the name is, or would be put; *ret_at: its place, or IDMAP_NONE. */
static uint64_t find(const struct host_list *h, const char *name, size_t len, uint32_t *ret_at)
{
	uint64_t key = hash_bytes(name, len);

	while ((*ret_at = idmap_get(&h->by_hash, key)) != IDMAP_NONE &&
		(strlen(h->name[*ret_at]) != len || memcmp(h->name[*ret_at], name, len) != 0))
		key++;
	return key;
}

int host_list_add(struct host_list *h, const char *name, size_t len)
{
	uint32_t at;
	uint64_t key;
	int r;

	if (!host_name_valid(name, len))
		return -EINVAL;
	key = find(h, name, len, &at);
	if (at != IDMAP_NONE)
		return 0;
	if (h->nr == HOSTS_MOST)
		return -E2BIG;
	r = idmap_put(&h->by_hash, key, (uint32_t)h->nr);
	return r < 0 ? r : texts_take(&h->name, &h->nr, strndup(name, len));
}

ssize_t host_list_find(const struct host_list *h, const char *name)
{
	uint32_t at;

	find(h, name, strlen(name), &at);
	return at == IDMAP_NONE ? -1 : (ssize_t)at;
}

/* ---- the short form ---- */

static int add_expanded(struct host_list *h, char *made, size_t used, struct text rest);

/* One number or range of a bracket: "7", "01-16". Zeros in front are kept as they are. */
static int add_range(struct host_list *h, char *made, size_t used, struct text range, struct text rest)
{
	struct text first = text_cut(&range, '-');
	int64_t from, to;
	int r = 0;

	if (!first.len || first.len > 9 || !parse_i64n(first.p, first.len, &from) || from < 0)
		return -EINVAL;
	to = from;
	if (range.len && (range.len > 9 || !parse_i64n(range.p, range.len, &to) || to < from))
		return -EINVAL;
	for (int64_t i = from; r == 0 && i <= to; i++) {
		int n = snprintf(made + used, HOST_NAME_SIZE - used, "%0*lld", (int)first.len, (long long)i);

		if (n < 0 || used + (size_t)n >= HOST_NAME_SIZE)
			return -EINVAL;
		r = add_expanded(h, made, used + (size_t)n, rest);
	}
	return r;
}

/* `made` is the beginning of the name, and the rest may have brackets. */
static int add_expanded(struct host_list *h, char *made, size_t used, struct text rest)
{
	const char *open = rest.len ? memchr(rest.p, '[', rest.len) : NULL;
	const char *close = open ? memchr(open, ']', rest.len - (size_t)(open - rest.p)) : NULL;
	size_t plain = open ? (size_t)(open - rest.p) : rest.len;
	struct text ranges, after;
	int r = 0;

	if ((open && !close) || used + plain >= HOST_NAME_SIZE)
		return -EINVAL;
	memcpy(made + used, rest.p, plain);
	used += plain;
	if (!open)
		return host_list_add(h, made, used);
	ranges = (struct text){open + 1, (size_t)(close - open - 1)};
	after = text_from(rest, (size_t)(close - rest.p) + 1);
	if (!ranges.len)
		return -EINVAL;
	while (r == 0 && ranges.len)
		r = add_range(h, made, used, text_cut(&ranges, ','), after);
	return r;
}

/* The next name: commas in brackets do not end it. */
static struct text cut_name(struct text *rest)
{
	struct text name = {rest->p, 0};
	bool inside = false;

	while (name.len < rest->len && (inside || rest->p[name.len] != ',')) {
		inside = rest->p[name.len] == '[' || (inside && rest->p[name.len] != ']');
		name.len++;
	}
	*rest = text_from(*rest, name.len + 1);
	return name;
}

int host_list_add_list(struct host_list *h, const char *list)
{
	struct text rest = text_of(list);
	char made[HOST_NAME_SIZE];
	int r = 0;

	while (r == 0 && rest.len) {
		struct text name = text_strip(cut_name(&rest));

		if (name.len)
			r = add_expanded(h, made, 0, name);
	}
	return r;
}

int host_list_add_file(struct host_list *h, const char *text, size_t len)
{
	struct text rest = {text, len};
	int r = 0;

	while (r == 0 && rest.len) {
		struct text line = text_cut(&rest, '\n'), name = text_word(&line);

		/* mpirun's files may have "node1:4". */
		name = text_cut(&name, ':');
		if (name.len && *name.p != '#')
			r = host_list_add(h, name.p, name.len);
	}
	return r;
}
