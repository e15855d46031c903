/* The pieces of src/serve: not for others.
 *
 * One lock guards all that is shared; nothing is read or computed under it. Three kinds of threads: one that
 * answers (libmicrohttpd's), those that read recordings (work.h), and one that looks at the clock (clock.c),
 * which sleeps for ever while there is no viewer. */
#ifndef SERVE_INTERNAL_H
#define SERVE_INTERNAL_H

#include "analysis/analysis.h"
#include "query/listing.h"
#include "serve/request.h"
#include "serve/roots.h"
#include "serve/serve.h"
#include "serve/shared.h"
#include "serve/stamp.h"
#include "serve/ticks.h"
#include "serve/work.h"

#include <microhttpd.h>
#include <pthread.h>
#include <sys/stat.h>

#define PAGE_MOST ((size_t)1 << 30)
#define NEWS_KEPT 64

/* ---- the list ---- */

struct catalog_item {
	char id[ID_DIGITS + 1];
	struct listed about;
	const char *name; /* its path below the directory that is served */
	unsigned refs;
};

struct serve_catalog {
	struct catalog_item **item; /* in progress first, then the newest first */
	size_t nr, nr_running;
	int64_t made_ns; /* when it was read; 0: never */
	int64_t cost_ns;
	bool making;
};

struct catalog_item *catalog_ref(struct catalog_item *item);
struct catalog_item *catalog_unref(struct catalog_item *item);
/* Under the lock. NULL: there is none. */
struct catalog_item *catalog_find(struct serve *s, const char *id);
/* Reads it anew if it is old; false: it is not ready yet. Under the lock. */
bool catalog_fresh(struct serve *s);
void catalog_free(struct serve_catalog *c);

/* ---- one run ---- */

/* What a page was made of, for what comes after it. */
struct base {
	struct run *run;
	struct analysis *analysis;
	unsigned refs;
};

struct news { /* an event, whole, with its lines */
	int64_t from_ns, to_ns;
	struct shared *bytes;
};

struct shown {
	struct shown *next;
	struct serve *serve;
	struct catalog_item *item;
	unsigned refs; /* of requests and jobs */
	unsigned viewers;
	struct shared *page;
	char *trouble; /* why there is none, for people */
	struct base *base;
	int64_t after_ns; /* of the page */
	uint64_t generation;
	bool ended; /* the page is that of a finished run */
	bool lost;  /* no tick comes */
	double silent_s;
	struct stamp stamp; /* of the files of the page, when it was made */
	uint64_t era;	    /* with other files it is another run: what was told is of the one before */
	int64_t made_ns, made_cost_ns, read_ns, read_cost_ns, used_ns;
	double progress;
	size_t nr_nodes;
	bool making, reading;
	/* By the job that reads alone: */
	struct ticks *ticks;
	struct ticks_now now;
	struct analysis_live *live;  /* has read up to head_ns */
	struct base *live_base;	     /* what it was opened with */
	struct news news[NEWS_KEPT]; /* the last ones, at nr_news % NEWS_KEPT */
	size_t nr_news;
	int64_t head_ns;   /* told so far; -1: nothing */
	int64_t wanted_ns; /* a viewer stands there, and there is no news from there: -1: none */
};

struct shown *shown_get(
	struct serve *s, const char *id); /* with a reference; NULL: there is none, or no memory */
void shown_put(struct shown *h);
/* There is a page that may be sent now; else it is being made. Under the lock. */
bool shown_ready(struct shown *h);
/* What comes behind that time; NULL: it is to be made. Under the lock. */
const struct news *shown_news(struct shown *h, int64_t from_ns);
/* Looks whether there is something to do for its viewers; returns when to look again. Under the lock. */
int64_t shown_tend(struct shown *h, int64_t now);
void shown_free_all(struct serve *s);

/* ---- requests ---- */

struct serve_request {
	struct serve_request *next, **link;
	struct serve *serve;
	struct MHD_Connection *connection;
	int fd;
	int64_t began_ns, until_ns; /* it waits until then at most */
	bool suspended, gone, only_head;
	bool cut_off; /* it would have to wait, and the server ends */
	struct serve_address address;
	struct shown *shown;
	struct made *made;
	/* A viewer's: */
	bool streams;
	int64_t at_ns; /* told so far */
	uint64_t generation, era;
	bool told_end, told_lost;
	int64_t spoke_ns;
	struct shared *out;
	size_t out_at;
};

struct peer { /* a connection */
	struct peer *next, **link;
	int fd;
	int64_t opened_ns;
	bool asked; /* its head has come */
};

struct serve {
	struct serve_options o;
	pthread_mutex_t lock;
	pthread_cond_t change;
	pthread_t clock;
	bool has_clock, ends;
	struct roots roots;
	struct serve_catalog catalog;
	struct shown *shown;
	struct work *work, *makers, *sketchers;
	struct sketch *sketch; /* sketch.c */
	uint64_t sketches_used;
	struct MHD_Daemon *daemon;
	struct serve_request *request;
	struct peer *peer;
	size_t nr_peers;
	uint64_t wrong_tokens;
	int64_t wrong_until_ns;
	int listener;
	struct stat socket_stat;
	char *socket, *directory, *url, *token, *cookie; /* cookie: its name */
	const char **host;
	size_t nr_hosts;
	char *address_host;
	bool had_viewers;
	int64_t idle_since_ns;
};

int64_t serve_now(void);
/* Everything that waits looks again. Under the lock. */
void serve_wake(struct serve *s);

/* clock.c */
int clock_start(struct serve *s);

/* answer.c: MHD's callbacks */
enum MHD_Result serve_answer(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size, void **con_cls);
void serve_completed(
	void *cls, struct MHD_Connection *c, void **con_cls, enum MHD_RequestTerminationCode code);
void serve_connection(
	void *cls, struct MHD_Connection *c, void **socket_context, enum MHD_ConnectionNotificationCode code);

/* index.c: the list from that place on */
int index_page(struct serve *s, size_t from, struct buf *out);
/* signin.c */
void signin_page(unsigned depth, struct buf *out);
const char *signin_hash(void);
/* waiting.c */
void waiting_page(const char *title, const char *text, unsigned seconds, struct buf *out);

/* listener.c */
int listener_open(struct serve *s, struct buf *reterr);
void listener_remove(struct serve *s); /* the file of the socket; before it is closed */
void listener_close(struct serve *s);
#endif
