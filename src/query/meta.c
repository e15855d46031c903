/* Metadata: a linear list. There are some thirty keys, written once and looked up a few times, so anything
 * cleverer would be longer than it is worth. */
#include "query/meta.h"

#include "base/str.h"

#include <string.h>

const char why_young[] = "the recording has just begun, or was cut off: it does not say yet what it holds";
const char why_unread[] = "the job ended before it was read";

static struct meta_item *meta_slot(struct meta *m, const char *key)
{
	for (uint32_t i = 0; i < m->nr; i++)
		if (!strcmp(m->item[i].key, key))
			return &m->item[i];
	return NULL;
}

static int meta_put(struct meta *m, const struct pair *pair)
{
	struct meta_item *item = meta_slot(m, pair->key);
	char *value = malloc(pair->len + 1);

	if (!value)
		return -ENOMEM;
	if (pair->len)
		memcpy(value, pair->value, pair->len);
	value[pair->len] = 0;
	if (!item) {
		char *key = strdup(pair->key);

		if (m->nr == m->cap) {
			uint32_t cap = m->cap ? m->cap * 2 : 32;

			item = m->nr < META_MAX ? reallocarray(m->item, cap, sizeof(*item)) : NULL;
			if (item) {
				m->item = item;
				m->cap = cap;
			}
		}
		if (!key || m->nr == m->cap) {
			free(key);
			free(value);
			return m->nr < META_MAX ? -ENOMEM : -E2BIG;
		}
		item = &m->item[m->nr++];
		*item = (struct meta_item){.key = key};
	}
	free(item->value);
	item->value = value;
	item->len = pair->len;
	return 0;
}

int meta_merge(struct meta *m, const struct pairs *pairs)
{
	for (uint32_t i = 0; i < pairs->nr; i++) {
		int r = meta_put(m, &pairs->pair[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

void meta_release(struct meta *m)
{
	for (uint32_t i = 0; i < m->nr; i++) {
		free(m->item[i].key);
		free(m->item[i].value);
	}
	free(m->item);
	*m = (struct meta){0};
}

const struct meta_item *meta_find(const struct meta *m, const char *key)
{
	return meta_slot((struct meta *)m, key);
}

const char *meta_text(const struct meta *m, const char *key)
{
	const struct meta_item *item = meta_find(m, key);

	return item ? item->value : "";
}

bool meta_num(const struct meta *m, const char *key, int64_t *ret)
{
	const struct meta_item *item = meta_find(m, key);

	return item && parse_i64n(item->value, item->len, ret);
}

const struct meta_item *meta_user(const struct meta *m, int64_t uid)
{
	static char key[] = "user", name[] = "root";
	static const struct meta_item root = {.key = key, .value = name, .len = sizeof(name) - 1};
	const struct meta_item *user;
	int64_t own;

	if (uid == 0)
		return &root;
	if (!meta_num(m, "uid", &own) || own != uid)
		return NULL;
	user = meta_find(m, "user");
	return user && user->len ? user : NULL;
}
