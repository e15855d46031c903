/* Files of keys and values as collectors. */
#include "collect/keyed.h"

void collect_explain(struct collect_context *ctx, const struct collector *c, int source, uint32_t row)
{
	for (size_t i = 0; i < c->nr_metrics; i++) {
		int col = ctx->map.col[i];

		if (col < 0 || c->metric[i].at.source != source)
			continue;
		if (!(ctx->table->valid[row] >> col & 1))
			ctx->why(ctx, i, ABSENT, "this kernel does not report it", NULL);
	}
}

void collect_tell(struct collect_context *ctx, const struct collector *c, enum availability availability,
	const char *reason, const char *remedy)
{
	for (size_t i = 0; i < c->nr_metrics; i++)
		if (ctx->map.col[i] >= 0)
			ctx->why(ctx, i, availability, reason, remedy);
}

void collect_lost(struct collect_context *ctx, uint32_t row)
{
	table_touch(ctx->table, row);
	ctx->table->valid[row] = 0;
}

int keyed_open(struct keyed *k, struct collect_context *ctx, const struct collector *c, const char *path,
	bool in_one)
{
	int row, r = textfile_open(&k->file, ctx->env, path, in_one);

	if (r < 0)
		return r;
	row = ctx->join(ctx, "node");
	if (row < 0)
		return row;
	k->row = (uint32_t)row;
	kv_init(&k->reader, c->metric, c->nr_metrics, 0, &ctx->map);
	kv_read(&k->reader, k->file.text, strlen(k->file.text), ctx->table, k->row);
	collect_explain(ctx, c, 0, k->row);
	return 0;
}

ssize_t keyed_sample(struct keyed *k, struct collect_context *ctx)
{
	ssize_t n = textfile_read(&k->file, ctx->env);

	if (n < 0) {
		collect_lost(ctx, k->row);
		return n;
	}
	table_touch(ctx->table, k->row);
	kv_read(&k->reader, k->file.text, (size_t)n, ctx->table, k->row);
	return n;
}

void keyed_close(struct keyed *k, struct collect_context *ctx)
{
	textfile_close(&k->file, ctx->env);
}
