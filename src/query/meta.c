/* Metadata: a linear list. There are some thirty keys, written once and looked up a few times, so anything
 * cleverer would be longer than it is worth. */
#include "query/meta.h"

#include "base/owned.h"
#include "base/str.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

const char why_young[] =
	"the recording ends before its list of metrics: it has just begun, or the rest could not be written";
const char why_unread[] = "the job ended before it was read";

#define NOT_WRITTEN "could not be written: "
#define ELSEWHERE "record to another place with --output"

const struct write_error *write_error_of(const char *name)
{
	/* clang-format off */
	static const struct write_error known[] = {
		{"ENOSPC", "the disk was full", NOT_WRITTEN "the disk was full", "free space there, or " ELSEWHERE},
		{"EDQUOT", "the disk quota was used up", NOT_WRITTEN "the disk quota was used up", "free space there, or " ELSEWHERE},
		{"EFBIG", "the limit of file sizes was reached", NOT_WRITTEN "the limit of file sizes was reached", "raise the limit (ulimit -f)"},
		{"ENOMEM", "the recorder was short of memory", NOT_WRITTEN "the recorder was short of memory", "raise the limit of memory (ulimit -v, ulimit -d)"},
		{"EIO", "the disk reported an error", NOT_WRITTEN "the disk reported an error", ELSEWHERE},
	};
	static const struct write_error other = {"", "the file could not be written", NOT_WRITTEN "the file system refused it", ELSEWHERE};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i].name))
			return &known[i];
	return &other;
}

const struct write_error *gap_error_of(const struct pairs *gap)
{
	return write_error_of(pairs_find(gap, "error") ? "ENOMEM" : "ENOSPC");
}

char *write_loss(
	char out[static WRITE_LOSS_SIZE], const char *name, int64_t after_ns, uint64_t lost, uint64_t all)
{
	const char *what = write_error_of(name)->what;
	char after[UNITS_SIZE];

	if (lost >= all)
		snprintf(out, WRITE_LOSS_SIZE, "%s from the start: none of %llu ticks could be written", what,
			(unsigned long long)all);
	else
		snprintf(out, WRITE_LOSS_SIZE, "%s after %s: %llu of %llu ticks could not be written", what,
			format_duration(after, (double)after_ns * 1e-9), (unsigned long long)lost,
			(unsigned long long)all);
	return out;
}

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
		char *key = m->nr < META_MAX ? strdup(pair->key) : NULL;

		if (key)
			item = ARRAY_ADD(m->item, m->nr);
		if (!item) {
			free(key);
			free(value);
			return m->nr < META_MAX ? -ENOMEM : -E2BIG;
		}
		item->key = key;
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
