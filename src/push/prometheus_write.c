/* Remote write 1.0 as bytes: see prometheus_write.h. */
#include "push/prometheus_write.h"

#include "export/protobuf.h"

#include <string.h>

/* Numbers of fields of prompb: WriteRequest, TimeSeries, Label, Sample. */
enum {
	REQUEST_SERIES = 1,
	SERIES_LABEL = 1,
	SERIES_SAMPLE = 2,
	LABEL_NAME = 1,
	LABEL_VALUE = 2,
	SAMPLE_VALUE = 1,
	SAMPLE_MS = 2
};

static int by_series(const void *a, const void *b)
{
	const struct prometheus_sample *x = a, *y = b;

	if (x->series != y->series)
		return x->series->number < y->series->number ? -1 : 1;
	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

size_t prometheus_sort(struct prometheus_sample *sample, size_t nr)
{
	size_t to = 0;

	qsort(sample, nr, sizeof(*sample), by_series);
	for (size_t i = 0; i < nr; i++)
		if (i + 1 == nr || sample[i].series != sample[i + 1].series ||
			sample[i].ms != sample[i + 1].ms)
			sample[to++] = sample[i];
	return to;
}

static void put_label(struct buf *series, struct buf *label, const char *name, const char *value)
{
	protobuf_text(label, LABEL_NAME, name);
	protobuf_text(label, LABEL_VALUE, value);
	protobuf_message(series, SERIES_LABEL, label);
}

/* "__name__" stands where it is sorted to: behind capitals, before small letters. */
static void put_labels(struct buf *series, struct buf *label, const struct prometheus_all *a,
	const struct prometheus_series *s)
{
	static const char name[] = "__name__";
	bool named = false;

	for (size_t i = 0; i < s->nr_labels; i++) {
		if (!named && strcmp(name, s->label[i].name) < 0) {
			put_label(series, label, name, a->family[s->family].sample);
			named = true;
		}
		put_label(series, label, s->label[i].name, s->label[i].value);
	}
	if (!named)
		put_label(series, label, name, a->family[s->family].sample);
}

void prometheus_encode(
	struct buf *out, const struct prometheus_all *a, const struct prometheus_sample *sample, size_t nr)
{
	struct buf series, part;

	buf_init(&series, SIZE_MAX / 2);
	buf_init(&part, SIZE_MAX / 2);
	for (size_t i = 0; i < nr; i++) {
		if (!i || sample[i].series != sample[i - 1].series)
			put_labels(&series, &part, a, sample[i].series);
		protobuf_double(&part, SAMPLE_VALUE, sample[i].value);
		protobuf_uint(&part, SAMPLE_MS, (uint64_t)sample[i].ms);
		protobuf_message(&series, SERIES_SAMPLE, &part);
		if (i + 1 == nr || sample[i + 1].series != sample[i].series)
			protobuf_message(out, REQUEST_SERIES, &series);
	}
	buf_release(&series);
	buf_release(&part);
}

static bool says(const char *words, const char *const *any)
{
	for (; *any; any++)
		if (strcasestr(words, *any))
			return true;
	return false;
}

/* The words of Prometheus, Thanos, Cortex and Mimir. Prometheus 2 says 500 to what is older than its window
 * for samples out of order. */
enum prometheus_refusal prometheus_refusal(long status, const char *words)
{
	static const char *const old[] = {"out of bounds", "too old", "too-old", "too far in the past", NULL};
	static const char *const order[] = {"out of order", "out-of-order", "duplicate sample",
		"duplicate-timestamp", "duplicate timestamp", "more recent timestamp", NULL};

	if (status == 500 && strcasestr(words, "too old sample"))
		return PROMETHEUS_TOO_OLD;
	if (status != 400 && status != 409 && status != 422)
		return PROMETHEUS_OTHER;
	return says(words, old)	     ? PROMETHEUS_TOO_OLD
		: says(words, order) ? PROMETHEUS_OUT_OF_ORDER
				     : PROMETHEUS_OTHER;
}

double prometheus_stale(void)
{
	uint64_t bits = UINT64_C(0x7ff0000000000002);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}
