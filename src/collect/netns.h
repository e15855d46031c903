/* The job's network namespace: where to read the files of proc/net so that they are the job's. */
#ifndef COLLECT_NETNS_H
#define COLLECT_NETNS_H

#include "collect/collector.h"
#include "read/textfile.h"

struct netns {
	pid_t root;		/* the process whose namespace it is; 0: ours */
	bool foreign;		/* not ours, so that sys/class/net does not describe it */
	char own[32], link[32]; /* our link and its: "net:[4026531840]" */
	unsigned asked;
};

/* For open(): where the job is. */
void netns_find(struct netns *ns, struct collect_context *ctx);
/* For sample(): true when the job has entered another namespace since; files are then to be opened again. */
bool netns_moved(struct netns *ns, struct collect_context *ctx);
/* Opens a file of proc/net as the job sees it. One that is open is closed then, and stays open on failure. */
int netns_open(
	struct netns *ns, struct collect_context *ctx, struct textfile *file, const char *name, bool in_one);
/* The path of a file below its proc/net. */
void netns_path(const struct netns *ns, const char *name, char *out, size_t size);
#endif
