/* What the parts of hardware_describe() share: reading a small file, finding a value in it, passing on a
 * fact. */
#ifndef NODE_FACTS_H
#define NODE_FACTS_H

#include "node/hardware.h"

struct facts {
	struct env *env;
	describe_fn *fn;
	void *arg;
	uint64_t given;	      /* rows of hardware_fact[]: a fact is passed on once */
	bool is_x86;	      /* of cpuinfo, once hardware_cpu() has read it */
	char cpu_flags[4096]; /* separated by blanks */
};

/* Passes on a fact of hardware_fact[], unless the text is empty. The value is always one line of clean
 * text. */
void fact_text(struct facts *f, const char *name, const char *text);
void fact_number(struct facts *f, const char *name, int64_t value);

/* One read of a small file into NUL-terminated text without blanks and newlines at its end; negative errno,
 * and then the text is empty. */
ssize_t fact_read(struct facts *f, char *out, size_t size, const char *path, ...) _printf_(4, 5);
/* The number that opens the file. */
bool fact_read_number(struct facts *f, int64_t *ret, const char *path, ...) _printf_(3, 4);

/* The value of the first line "key<mark>value", blanks around both ignored; false when there is none. */
bool text_value(const char *text, const char *key, char mark, char *out, size_t size);
bool text_number(const char *text, const char *key, char mark, int64_t *ret);
/* Whether a word stands in a text of words separated by blanks. */
bool text_has_word(const char *text, const char *word);

#define NAMES_MAX 64
#define NAME_SIZE 64

/* The names of a folder in the order of people: "mlx5_2" before "mlx5_10". */
struct fact_names {
	char name[NAMES_MAX][NAME_SIZE];
	unsigned nr;
	unsigned more; /* names that had no room */
};
/* Takes those names that `wanted` approves (NULL: all). */
void names_list(struct facts *f, struct fact_names *ret, const char *path,
	bool (*wanted)(void *arg, const char *name), void *arg);

/* The parts. Each opens a bounded number of files. */
void hardware_cpu(struct facts *f);
void hardware_memory(struct facts *f);
void hardware_host(struct facts *f);
void hardware_devices(struct facts *f);
#endif
