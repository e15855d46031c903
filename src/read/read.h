/* Text of /proc and /sys to table cells, driven by metric rows: the three shapes that cover nearly all of it.
 *
 * None allocates or logs after init; all take hostile text: too short, too long, unknown words, numbers past
 * 64 bits (they wrap, as the kernel's own do). */
#ifndef READ_READ_H
#define READ_READ_H

#include "base/base.h"
#include "metric/metric.h"
#include "metric/table.h"

/* Maps a collector's rows to the columns of its table: -1 for rows that are not recorded. */
struct columns_map {
	int8_t col[CHOICES_MAX];
};

/* `Key: value` or `key value` per line (meminfo, vmstat, status, io, memory.stat). The order of lines is
 * learned in the first reading; later ones find each key where it was, and search only when it moved. A key
 * counts when it is followed by ':' or a blank; of a key that occurs twice one is taken. */
struct kv_reader {
	uint16_t nr_keys;
	uint16_t nr_known; /* those with a known line come first, in the order of lines */
	uint64_t mask;	   /* columns of all keys */
	struct kv_key {
		const char *key;
		uint64_t head, head_mask; /* its first eight characters */
		uint16_t key_len;
		int16_t col;   /* where the value goes */
		uint16_t line; /* where the key stood last time */
		uint8_t base;  /* 10, or 16 for signal masks */
		bool fraction; /* "12.34" is read as 1234 */
	} key[METRICS_MAX];
};

/* Takes those rows whose at.source is `source` and that are recorded. */
void kv_init(struct kv_reader *r, const struct metric *metric, size_t nr, int source,
	const struct columns_map *map);
/* Cells whose key is missing become invalid. Returns how many keys were found. */
unsigned kv_read(struct kv_reader *r, const char *text, size_t len, struct table *out, uint32_t row);

/* Numbers separated by blanks, in the order of the kernel's manual (stat, statm, schedstat, diskstats). Rows
 * name their column with at.col from 1. Words that are not numbers count as columns and give no value, except
 * a single letter (the state of a process), which gives its character code. */
struct columns_reader {
	uint16_t nr;
	uint64_t mask; /* columns of the table that are filled */
	struct {
		int16_t from, to;
	} pick[METRICS_MAX];
};

void columns_init(struct columns_reader *r, const struct metric *metric, size_t nr, int source,
	const struct columns_map *map);
/* `first` is the number of the first column in text (stat is parsed after its "(name)"). */
void columns_read(const struct columns_reader *r, const char *text, size_t len, unsigned first,
	struct table *out, uint32_t row);

/* Decimal number at *p, which moves behind it; false if there is none. A leading '-' is understood. */
bool read_number(const char **p, const char *end, int64_t *ret);
/* "12.34" as 1234. */
bool read_centi(const char **p, const char *end, int64_t *ret);
/* The number of the line that opens with this key and ':' or a blank, for callers that want one or two
 * numbers of a text. */
bool read_key(const char *text, const char *end, const char *key, int64_t *ret);

enum psi_word { PSI_AVG10, PSI_TOTAL };

/* One value of a file of pressure stall information; kind is "some" or "full". Averages are read as
 * read_centi() does. */
bool read_pressure(const char *text, const char *end, const char *kind, enum psi_word which, int64_t *ret);
#endif
