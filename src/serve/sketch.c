/* The small curves of the list: cores over time, a few points, kept for files that do not change. */
#include "serve/files.h"

#include <math.h>
#include <string.h>

#define WIDTH 160
#define HEIGHT 32
#define POINTS 80u
#define SKETCHES 2048u
#define LOOK_NS (2 * NSEC_PER_SEC)
#define OLD_NS (30 * NSEC_PER_SEC) /* of a run in progress */

struct sketch {
	char id[ID_DIGITS + 1];
	struct stamp stamp;
	struct shared *svg;
	int64_t made_ns, looked_ns;
	bool making;
	uint64_t used;
};

struct sketch_job {
	struct serve *serve;
	struct catalog_item *item;
};

static void add_curve(struct buf *out, const struct curves_node *node, const struct curves_line *line)
{
	double most = 0, from, length;
	size_t nr = node->nr_times;

	for (size_t i = 0; i < nr; i++)
		most = isfinite(line->high[i]) && (double)line->high[i] > most ? (double)line->high[i] : most;
	if (nr < 2 || !(most > 0))
		return;
	from = node->time_s[0];
	length = node->time_s[nr - 1] - from;
	if (!(length > 0))
		return;
	buf_addf(out, "<path fill=\"#4a8de7\" d=\"M0 %d", HEIGHT);
	for (size_t i = 0; i < nr; i++) {
		double y = isfinite(line->mean[i]) ? (double)line->mean[i] / most : 0;

		buf_addf(out, "L%.1f %.1f", (node->time_s[i] - from) / length * WIDTH,
			HEIGHT - y * (HEIGHT - 2));
	}
	buf_addf(out, "L%d %dZ\"/>", WIDTH, HEIGHT);
}

static int draw(struct serve *s, const struct catalog_item *item, struct buf *out)
{
	static const struct curves_query query = {.metric = "tree.cores"};
	const struct curves_options options = {.from_s = NAN, .to_s = NAN, .points = POINTS};
	const char *path = item->about.path;
	struct curves *curves = NULL;
	struct run *run = NULL;
	struct stat st;
	struct buf err;
	int r;

	buf_init(&err, 4096);
	r = run_open(&path, 1, &run, &err);
	for (size_t i = 0; r >= 0 && i < run->nr; i++)
		r = roots_has(&s->roots, run->path[i], &st) ? 0 : -EXDEV;
	if (r >= 0)
		r = curves_read(run, &query, 1, &options, &curves, &err);
	if (r >= 0 && run->nr > 1)
		(void)curves_combine(curves, 0, false);
	buf_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	if (r >= 0 && curves->nr_lines) {
		const struct curves_line *line = &curves->line[curves->nr_lines - 1];

		add_curve(out, &curves->node[line->node], line);
	}
	buf_adds(out, "</svg>\n");
	curves_free(curves);
	run_close(run);
	buf_release(&err);
	return out->err;
}

static struct sketch *find(struct serve *s, const char *id)
{
	struct sketch *oldest = NULL;

	if (!s->sketch)
		s->sketch = calloc(SKETCHES, sizeof(*s->sketch));
	for (size_t i = 0; s->sketch && i < SKETCHES; i++) {
		struct sketch *k = &s->sketch[i];

		if (!strcmp(k->id, id))
			return k;
		if (!k->making && (!oldest || k->used < oldest->used))
			oldest = k;
	}
	if (!oldest)
		return NULL;
	shared_unref(oldest->svg);
	*oldest = (struct sketch){0};
	memcpy(oldest->id, id, sizeof(oldest->id));
	return oldest;
}

static void sketch_work(void *arg)
{
	struct sketch_job *j = arg;
	struct serve *s = j->serve;
	struct shared *svg;
	struct stamp stamp = stamp_of(j->item->about.path);
	struct sketch *k;
	struct buf out;

	buf_init(&out, 1 << 20);
	draw(s, j->item, &out);
	svg = shared_take(&out);
	pthread_mutex_lock(&s->lock);
	k = find(s, j->item->id);
	if (k) {
		shared_unref(k->svg);
		k->svg = svg;
		k->stamp = stamp;
		k->made_ns = k->looked_ns = serve_now();
		k->making = false;
	}
	serve_wake(s);
	pthread_mutex_unlock(&s->lock);
	if (!k)
		shared_unref(svg);
	catalog_unref(j->item);
	free(j);
}

/* Files are looked at every two seconds at most, and of a run in progress it may be a little old. */
static bool is_good(struct sketch *k, const struct catalog_item *item)
{
	int64_t now = serve_now();
	struct stamp stamp;

	if (now - k->looked_ns < LOOK_NS)
		return true;
	stamp = stamp_of(item->about.path);
	k->looked_ns = now;
	return stamp_same(&stamp, &k->stamp) || (stamp.files == k->stamp.files && now - k->made_ns < OLD_NS);
}

struct shared *sketch_get(struct serve *s, struct catalog_item *item)
{
	struct sketch *k = find(s, item->id);
	struct sketch_job *j;

	if (!k)
		return NULL;
	k->used = ++s->sketches_used;
	if (k->svg && is_good(k, item))
		return shared_ref(k->svg);
	if (k->making || !(j = malloc(sizeof(*j))))
		return NULL;
	*j = (struct sketch_job){.serve = s, .item = catalog_ref(item)};
	k->making = work_add(s->sketchers, sketch_work, j);
	if (!k->making) {
		catalog_unref(j->item);
		free(j);
	}
	return NULL;
}

void sketches_free(struct serve *s)
{
	for (size_t i = 0; s->sketch && i < SKETCHES; i++)
		shared_unref(s->sketch[i].svg);
	free(s->sketch);
}
