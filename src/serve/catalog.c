/* The recordings that are served: found as `tacho ls -r` finds them, without what lies outside of the
 * directories and what the user may not read. Read anew when the list is asked for, at most every two
 * seconds. */
#include "serve/internal.h"

#include "query/run_directory.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>

#define OLD_NS (2 * NSEC_PER_SEC)
#define COSTS 10 /* and not more often than so many times what it costs */

struct catalog_item *catalog_ref(struct catalog_item *item)
{
	__atomic_add_fetch(&item->refs, 1, __ATOMIC_RELAXED);
	return item;
}

struct catalog_item *catalog_unref(struct catalog_item *item)
{
	if (item && !__atomic_sub_fetch(&item->refs, 1, __ATOMIC_ACQ_REL)) {
		meta_release(&item->about.meta);
		meta_release(&item->about.ending);
		free(item->about.path);
		free(item);
	}
	return NULL;
}

static bool is_running(const struct catalog_item *item)
{
	return item->about.state == LISTED_WRITING;
}

static int by_age(const void *a, const void *b)
{
	const struct catalog_item *x = *(struct catalog_item *const *)a,
				  *y = *(struct catalog_item *const *)b;

	if (is_running(x) != is_running(y))
		return is_running(x) ? -1 : 1;
	if (x->about.start_ns != y->about.start_ns)
		return x->about.start_ns > y->about.start_ns ? -1 : 1;
	return strcmp(x->about.path, y->about.path);
}

/* Takes what the list says of it. */
static int take_item(struct serve_catalog *c, const struct serve_root *root, struct listed *l)
{
	size_t above = strlen(root->path);
	struct catalog_item *item = calloc(1, sizeof(*item)),
			    **more = item ? ARRAY_ADD(c->item, c->nr) : NULL;

	if (!more) {
		free(item);
		return -ENOMEM;
	}
	*item = (struct catalog_item){.about = *l, .refs = 1};
	*l = (struct listed){0};
	item->name = item->about.path;
	if (!strncmp(item->name, root->path, above) && item->name[above] == '/' && item->name[above + 1])
		item->name += above + 1;
	serve_id(item->about.path, item->id);
	c->nr_running += is_running(item);
	*more = item;
	return 0;
}

static int take_listing(
	struct serve *s, const struct serve_root *root, struct listing *l, struct serve_catalog *c)
{
	int r = 0;

	for (size_t i = 0; i < l->nr && r >= 0; i++) {
		struct stat st;

		if (l->item[i].state != LISTED_UNREADABLE && roots_has(&s->roots, l->item[i].path, &st))
			r = take_item(c, root, &l->item[i]);
	}
	if (c->nr)
		qsort(c->item, c->nr, sizeof(*c->item), by_age);
	return r;
}

static int read_root(struct serve *s, const struct serve_root *root, struct serve_catalog *c)
{
	const struct listing_query q = {.recursive = true, .glance = true, .whole = true};
	_cleanup_(freep) char *path = NULL;
	struct listing *l = NULL;
	struct buf err;
	const char *word;
	int r;

	if (asprintf(&path, "%s%s%s", root->path, root->only ? "/" : "", root->only ? root->only : "") < 0)
		return -ENOMEM;
	buf_init(&err, 8192);
	word = path;
	r = listing_read(&word, 1, &q, &l, &err);
	buf_release(&err);
	if (r >= 0)
		r = take_listing(s, root, l, c);
	listing_free(l);
	return r == -ENOMEM ? r : 0; /* a directory that went away has nothing */
}

/* The same path may lie below two of them. */
static void drop_doubles(struct serve_catalog *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->nr; i++) {
		if (nr && !strcmp(c->item[nr - 1]->about.path, c->item[i]->about.path)) {
			c->nr_running -= is_running(c->item[i]);
			catalog_unref(c->item[i]);
		} else {
			c->item[nr++] = c->item[i];
		}
	}
	c->nr = nr;
}

void catalog_free(struct serve_catalog *c)
{
	for (size_t i = 0; i < c->nr; i++)
		catalog_unref(c->item[i]);
	free(c->item);
	*c = (struct serve_catalog){0};
}

static void catalog_read(void *arg)
{
	struct serve *s = arg;
	struct serve_catalog c = {0}, old;
	int64_t begin = serve_now();
	int r = 0;

	for (size_t i = 0; i < s->roots.nr && r >= 0; i++)
		r = read_root(s, &s->roots.item[i], &c);
	if (c.nr)
		qsort(c.item, c.nr, sizeof(*c.item), by_age);
	drop_doubles(&c);
	pthread_mutex_lock(&s->lock);
	c.made_ns = serve_now();
	c.cost_ns = c.made_ns - begin;
	old = s->catalog;
	s->catalog = c;
	serve_wake(s);
	pthread_mutex_unlock(&s->lock);
	catalog_free(&old);
}

bool catalog_fresh(struct serve *s)
{
	struct serve_catalog *c = &s->catalog;
	int64_t now = serve_now();

	if (c->made_ns && now - c->made_ns < MAX(OLD_NS, COSTS * c->cost_ns))
		return true;
	if (!c->making)
		c->making = work_add(s->work, catalog_read, s);
	return false;
}

struct catalog_item *catalog_find(struct serve *s, const char *id)
{
	for (size_t i = 0; i < s->catalog.nr; i++)
		if (!strcmp(s->catalog.item[i]->id, id))
			return s->catalog.item[i];
	return NULL;
}
