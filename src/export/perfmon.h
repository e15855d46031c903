/* Inside of perfmon-json. That tool has a list of values for each metric of each host, all as long as the
 * host's list of time stamps; its lists are rows of one table (perfmon_json.c), bound to fields of our
 * tables.
 *
 * Values wait in series: the rows of one table for one host, or for one instance there, tick by tick. When
 * all is read, lists are written on the ticks of the host's longest series: a series that has no row at a
 * tick has no value there, whichever table came first. */
#ifndef EXPORT_PERFMON_H
#define EXPORT_PERFMON_H

#include "export/legacy_csv.h"
#include "export/outlet.h"
#include "export/spool.h"

enum perfmon_file { PERFMON_CPU, PERFMON_PERF, PERFMON_GPU, PERFMON_NONE };

enum perfmon_look {
	PERFMON_LEVEL,
	PERFMON_WHOLE,	/* rounded to an integer */
	PERFMON_GROWTH, /* since the tick before */
};

struct perfmon_list {
	enum perfmon_file file;
	const char *group, *name; /* group NULL: at the top; name NULL: that of the instance */
	const char *table, *field;
	const char *table2, *field2; /* added; NULL: nothing is */
	double factor;		     /* our unit x factor = theirs */
	enum perfmon_look look;
	const char
		*instances; /* beginnings of names, separated by blanks, before a digit; NULL: all folded */
};

struct perfmon_cells {
	struct spool spool; /* 8 bytes a tick */
	bool known;	    /* some value is */
	bool has_before;
	int64_t before; /* of growth */
};

struct perfmon_series {
	size_t host;
	char *instance; /* NULL: all */
	uint64_t nr;
	uint32_t lap; /* how often time went back, as it may in a damaged recording */
	double elapsed;
	struct spool tick;
	struct perfmon_cells *cells; /* a column each */
};

struct perfmon_column {
	size_t list;	    /* its number */
	bool second;	    /* it is what is added */
	size_t field, rate; /* rate: of a counter; NO_FIELD: there is none */
	bool exact;	    /* integers as they are */
	double factor;
};

/* Which hosts have instances in a table: the sum over no instances would be 0, though the host has none. */
struct perfmon_witness {
	size_t at, field;
	const char *table;
	bool *host;
	size_t nr_hosts;
};

struct perfmon_origin { /* a table that is read */
	const struct data_table *table;
	size_t at; /* number of the table; the folded ones stand behind the others */
	bool each; /* by instance, of those that `instances` of its lists say */
	const char *instances;
	size_t time, elapsed, host, instance;
	struct perfmon_column *column;
	size_t nr_columns;
	const struct perfmon_witness *witness; /* NULL: for all hosts */
	struct perfmon_series **series;
	size_t nr_series;
};

struct perfmon_host { /* of a recording: two of the same host are two here */
	uint32_t recording;
	char *name, *key;		/* key: as it stands in the files; NULL until all hosts are known */
	struct spool parents, children; /* JSON: the processes */
};

struct perfmon {
	const struct export_job *job;
	struct spool_file file;
	struct perfmon_list *list;
	size_t nr_lists;
	struct perfmon_origin *origin;
	size_t nr_origins;
	struct perfmon_witness *witness;
	size_t nr_witnesses;
	struct perfmon_host *host;
	size_t nr_hosts;
	uint64_t *pids, *parents; /* of the host whose processes are being written: sets of the ones seen */
	size_t pids_host;
	struct buf text;
	double interval; /* NAN: not known */
};

/* Its metrics are among the tables that are exported. */
bool perfmon_is_exported(const struct perfmon *p, const struct perfmon_list *l);

/* perfmon_host_series.c */

/* Columns for the lists that the tables have: `each`, those by instance, else those that are folded. */
int perfmon_bind(struct perfmon *p, bool each);
/* Of a table that has instances; its rows are then given to perfmon_see(). */
int perfmon_witness(struct perfmon *p, size_t table);
int perfmon_see(struct perfmon *p, const struct data_table_batch *b);
/* That of the recording; it is added when it is not there yet. */
int perfmon_host_find(struct perfmon *p, uint32_t recording, const char *name, size_t *ret);
static inline uint32_t perfmon_recording(const struct data_table_batch *b, uint32_t row)
{
	return b->recording ? b->recording[row] : 0;
}
/* Gives each host its key, in the order of the recordings; when all are there. */
int perfmon_name_hosts(struct perfmon *p);
/* Rows of a table that was bound. */
int perfmon_take(struct perfmon *p, struct perfmon_origin *o, const struct data_table_batch *b);
/* When all rows are there: what is folded of hosts without instances goes. */
void perfmon_drop_unseen(struct perfmon *p);
void perfmon_host_series_release(struct perfmon *p);

/* perfmon_write.c */

struct perfmon_tick {
	double elapsed;
	int64_t time; /* ns since 1970; where that is not known since the start */
	uint32_t lap, unused;
};

/* `always`: groups that are there with nothing in them as well, NULL at the end. Without hosts the file has
 * an empty list of hosts, or is not written. */
int perfmon_write(struct perfmon *p, enum perfmon_file file, const char *name, const char *const *always,
	bool without_hosts);

/* .perf_event_list.json: which events each of the groups has in perf_metrics.json. That tool's reader takes
 * its columns from there. */
int perfmon_write_events(struct perfmon *p, const char *const *groups);

/* perfmon_about.c: processes and hardware */

int perfmon_processes(struct perfmon *p, const struct data_table *table, const struct data_table_batch *b);
void perfmon_hosts_release(struct perfmon *p);
struct summary;
int perfmon_metadata(struct perfmon *p, const struct summary *s);
#endif
