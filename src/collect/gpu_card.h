/* GPUs that the kernel's DRM shows in sys/class/drm, one card each, and files of theirs that hold one number.
 *
 * A maker's part gives a table of files with the rows that they fill; of several files for one row the first
 * that is there is taken. A card keeps its number for ever: one that is pulled and comes back at the same PCI
 * address is the same card, and the others are not renamed. */
#ifndef COLLECT_GPU_CARD_H
#define COLLECT_GPU_CARD_H

#include "collect/gpu.h"

enum {
	GPU_FILES_MAX = 40, /* of a maker's table */
};

enum gpu_file_kind {
	FILE_NUMBER,
	FILE_LEVEL,  /* "1: 800Mhz *": the line with the star */
	FILE_LEVELS, /* the same file's last line: the highest there is */
	FILE_KEY,    /* the number behind the key */
};

enum {
	FILE_SLOW = 1,	   /* changes rarely or costs much: read when the round is medium */
	FILE_CONSTANT = 2, /* read once; stays true while the card sleeps */
};

struct gpu_file {
	enum gpu_row row;
	enum gpu_file_kind kind;
	const char *path;  /* below the card; "hwmon/power1_cap" is below its hwmon folder */
	const char *label; /* of the channel "#" in path: "hwmon/temp#_input"; or the key of FILE_KEY */
	int64_t mul, div;  /* value of the row = number x mul / div; div 0: as it is */
	unsigned flags;
};

struct gpu_card {
	char pci[32];
	char dir[32];	/* "sys/class/drm/card0" */
	char id[16];	/* "1002:740f" */
	char hwmon[96]; /* its folder; empty: none */
	int number;	/* of the card, which is the minor of its device file */
	bool present, opened;
	bool asleep; /* suspended: reading would wake it */
	bool seen;   /* in this search */
	int at;	     /* index in the present reading; -1: not there */
	int power;   /* handle of its runtime status */
	int handle[GPU_FILES_MAX];
	uint64_t has; /* rows that a file of ours fills */
	struct gpu_device device;
	void *own; /* the maker's */
};

struct gpu_cards {
	const char *maker, *vendor; /* "amd", "0x1002" */
	const struct gpu_file *file;
	unsigned nr_files;
	/* Called once for each new card, after its files: names it. */
	void (*describe)(struct gpu_card *card, struct env *env);
	unsigned nr;
	struct gpu_card card[GPU_DEVICES_MAX];
	struct gpu_why why[NR_GPU_ROWS];
};

/* Is there a card of this vendor? 0, or -ENOENT. */
int gpu_cards_probe(struct env *env, const char *vendor);
/* Finds those that came and forgets those that are gone. How many there are, or a negative errno. */
int gpu_cards_find(struct gpu_cards *c, struct env *env);
/* The files of all cards into the reading. */
void gpu_cards_read(
	struct gpu_cards *c, struct env *env, const struct gpu_request *request, struct gpu_reading *ret);
void gpu_cards_close(struct gpu_cards *c, struct env *env);

/* The card at this address; NULL: none of ours. */
struct gpu_card *gpu_card_at(struct gpu_cards *c, const char *pci);
/* A text file below the card, as value_get_text() does. */
int gpu_card_text(const struct gpu_card *card, struct env *env, const char *file, char *out, size_t size);
/* A value that no file of the table gave. */
void gpu_device_set(struct gpu_device *device, enum gpu_row row, int64_t value);
static inline bool gpu_device_has(const struct gpu_device *device, enum gpu_row row)
{
	return device->valid >> row & 1;
}
/* Why an error leaves a row without value. */
struct gpu_why gpu_why_of(int error, bool reading);
#endif
