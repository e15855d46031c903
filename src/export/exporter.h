/* One format is one file and one line in exporters.c. An exporter sees tables, fields and values; it never
 * names a metric. It only appends to its outlet, which is a file under a temporary name or a stream; where a
 * library insists on a path it gets that of the temporary file.
 *
 * The driver calls open, add…, close; or drop at any time in place of what is left. All exporters of
 * one command are fed from the same pass over the recordings. When they fail they return an errno; a message
 * goes to `reterr` of open, and the driver adds the name of the file. */
#ifndef EXPORT_EXPORTER_H
#define EXPORT_EXPORTER_H

#include "base/buf.h"
#include "query/tables.h"

struct outlet;
int outlet_add(struct outlet *o, const void *data, size_t len); /* errors stick */
uint64_t outlet_at(const struct outlet *o);			/* bytes so far */

enum export_shape {
	EXPORT_FILE_EACH, /* a file for each table */
	EXPORT_ONE_FILE,  /* all tables in one */
	EXPORT_OWN_FILES, /* files of its own making in a directory */
};

enum export_layout { LAYOUT_DEFAULT, LAYOUT_LONG, LAYOUT_WIDE };

/* Must not move while the exporter is open: exporters keep the pointer. */
struct export_job {
	const struct run *run;
	const struct data_table *table; /* FILE_EACH: the one; else all */
	size_t first_table, nr_tables;	/* batch.table - first_table is the index in `table` */
	/* What the format takes folded (below), and maybe more; of batches as if they stood behind `table`.
	 */
	const struct data_table *folded;
	size_t nr_folded;
	struct outlet *out; /* unless by_path */
	const char *name;   /* that the file will have; "-": standard output; NULL: not known */
	const char *path;   /* of the temporary file, NULL for a stream; by_path: which is not there yet;
			       OWN_FILES: of a directory, which is there and empty */
	enum export_layout layout;
	bool safe_cells;	 /* texts that look like formulas get an apostrophe */
	const char *compression; /* "zstd", "zlib", "none"; NULL: the format's own choice */
	/* Known when it is closed: */
	const struct summary *summary;	      /* wants_summary: the run in numbers; NULL: it is not known */
	const char *summary_json;	      /* wants_summary: as `tacho show --json` */
	const struct tables_options *options; /* how the tables were chosen, for exporters that read the run
						 once more; NULL: all of it */
	/* The dictionary of a field, as far as given out. Called by export_texts(). */
	struct texts (*texts)(const void *arg, size_t table, size_t field);
	const void *texts_arg;
	struct buf *reterr; /* open to close: a message about a failure; may stay empty */
};

/* `table` as in batch.table. The texts stay valid until the next batch, their numbers to the end. */
static inline struct texts export_texts(const struct export_job *job, size_t table, size_t field)
{
	return job->texts(job->texts_arg, table, field);
}

static inline bool cell_valid(const struct field_cells *c, uint32_t row)
{
	return !c->valid || c->valid[row >> 3] >> (row & 7) & 1;
}

#define EXPORT_FOLDS_MOST 128

struct exporter {
	const char *name, *suffix, *help; /* suffix with the dot: ".parquet" */
	const char *also;		  /* other endings that mean it, with commas; NULL: none */
	const char *missing;	  /* the package whose library this build lacks: nothing else is set then */
	const char *compressions; /* those that it takes: "zstd,none"; NULL: only "none" */
	enum export_shape shape;
	bool by_path;
	bool streams;	    /* it can go to standard output */
	bool is_text;	    /* it can go to a terminal */
	bool is_cells;	    /* spreadsheets open it: safe_cells is used */
	bool layouts;	    /* LAYOUT_LONG and LAYOUT_WIDE are used */
	bool wants_summary; /* summary, summary_json */
	bool takes_same;    /* field_cells.same; else every row has its value */
	bool only_summary;  /* it needs no table */
	/* The only tables that it takes, NULL at the end: where none are chosen the others are not made. For
	 * formats that read the run by themselves, too: what is not asked for is not read. NULL: all. */
	const char *const *tables;
	/* NULL: none. Which metrics it takes folded to the node, of the same pass as the tables; at most
	 * EXPORT_FOLDS_MOST. Not for FILE_EACH. */
	size_t (*folds)(const struct tables_options *chosen, struct table_fold *ret);
	/* A failure leaves nothing behind; *ret is not touched. */
	int (*open)(const struct export_job *job, void **ret, struct buf *reterr);
	int (*add)(void *e, const struct data_table_batch *batch);
	int (*close)(void *e); /* writes what stands at the end; frees, also when it fails */
	void (*drop)(void *e); /* frees only */
};

extern const struct exporter *const exporters[]; /* NULL at the end */
const struct exporter *exporter_find(const char *name);
#endif
