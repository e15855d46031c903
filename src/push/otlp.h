/* Bodies of OTLP as JSON, and what the variables of OpenTelemetry say: apart from the sink, for its tests. */
#ifndef PUSH_OTLP_H
#define PUSH_OTLP_H

#include "push/sink.h"

struct otlp_pair {
	char *key, *value;
};

struct otlp_pairs {
	struct otlp_pair *pair;
	size_t nr;
};

/* "key=value,key=value" with %XX in values, as the variables have it. What is no pair is left out, and of two
 * with one key the later one counts. -ENOMEM. */
int otlp_pairs_read(struct otlp_pairs *p, const char *text);
/* Replaces; an empty value removes. */
int otlp_pairs_set(struct otlp_pairs *p, const char *key, const char *value);
const char *otlp_pairs_get(const struct otlp_pairs *p, const char *key); /* NULL */
void otlp_pairs_release(struct otlp_pairs *p);

struct otlp {
	struct push *push;
	struct otlp_pairs resource; /* of all nodes; host.name is each one's */
	bool own_host;		    /* it is not among these */
	int64_t start_ns;	    /* of what is counted since the job began; 0: it is not known */
	int64_t boot_ns;	    /* of what the kernel counts, of the first node; 0 */
	struct buf url, body, packed;
	bool compress;
	const struct push_point **order;
	size_t order_cap;
};

/* What all requests have in common, from the run, the options and the variables. */
int otlp_make(struct otlp *o, struct push *p, struct buf *reterr);
void otlp_release(struct otlp *o);
/* One ExportMetricsServiceRequest. */
int otlp_body(struct otlp *o, const struct push_point *point, size_t nr, struct buf *out);

/* With --semconv. */
extern const struct push_name otlp_semconv[];
#endif
