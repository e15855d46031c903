/* What processes do on GPUs, by the keys that DRM drivers write into proc/PID/fdinfo (amdgpu, i915, xe).
 *
 * A client is one opened device file, however many processes have a descriptor of it: children share it, and
 * processes that it was passed to. So it is counted once, for the process that was seen with it first. Its
 * times only grow; what a closed client used stays with its process. */
#ifndef COLLECT_GPU_DRM_H
#define COLLECT_GPU_DRM_H

#include "collect/gpu_card.h"

enum drm_use { DRM_BUSY, DRM_COPY, DRM_VIDEO, NR_DRM_USES };
enum { DRM_CLIENTS_MAX = 256, DRM_CLASSES = 5, DRM_ENDED_MAX = 64 };

/* One file of fdinfo. */
struct drm_info {
	char driver[16], pdev[32]; /* empty: not known */
	bool has_client, has_memory, has_time, has_cycles;
	uint64_t client;
	int64_t memory; /* bytes on the device */
	int64_t time_ns[NR_DRM_USES];
	/* Of drivers that count cycles: those of the client, and all that passed. */
	uint64_t cycles[DRM_CLASSES], total[DRM_CLASSES];
};

/* False: the file is of no DRM client. */
bool drm_parse(const char *text, size_t len, struct drm_info *ret);

struct drm_client {
	pid_t pid;
	int fd, handle; /* of fdinfo; -1: this record is free */
	struct gpu_card *card;
	struct drm_info info;	      /* the last reading */
	int64_t time_ns[NR_DRM_USES]; /* so far, and the part that other processes used */
	int64_t before_ns[NR_DRM_USES];
	int64_t read_ns;
};

struct drm_process {
	pid_t pid; /* 0: free */
	struct gpu_card *card;
	int64_t gone_ns[NR_DRM_USES]; /* by clients that are closed */
};

struct drm_seen {
	pid_t pid;
	uint8_t looks;	  /* looks left that a new process gets */
	uint8_t rest;	  /* rounds until it is looked at anyway */
	int64_t nr_files; /* when it was last looked at; -1: never */
};

struct drm_clients {
	struct gpu_cards *cards;
	const char *const *driver; /* those that count; NULL at the end */
	struct drm_client client[DRM_CLIENTS_MAX];
	unsigned nr_clients; /* records ever used */
	struct drm_process process[GPU_PROCESSES_MAX];
	/* Clients that ended lately: another process may go on with one. */
	struct {
		struct gpu_card *card;
		uint64_t id;
		int64_t time_ns[NR_DRM_USES];
	} ended[DRM_ENDED_MAX];
	unsigned nr_ended;
	struct drm_seen seen[2][GPU_MEMBERS_MAX];
	unsigned nr_seen, turn;
	bool look_again; /* at all processes: a client that others may share has ended */
	bool looked;	 /* this round has looked for new clients */
	bool shared, hidden, full;
};

/* Reads all clients of the job's processes and adds them to the reading, whose devices are there already. */
void drm_clients_read(
	struct drm_clients *d, struct env *env, const struct gpu_request *request, struct gpu_reading *ret);
void drm_clients_close(struct drm_clients *d, struct env *env);

/* The process's entry for the card in the reading; NULL: there is no room. */
struct gpu_process *gpu_process_of(struct gpu_reading *ret, const struct gpu_card *card, int64_t pid);
static inline void gpu_process_set(struct gpu_process *p, enum gpu_process_row row, int64_t value)
{
	p->valid |= UINT64_C(1) << row;
	p->value[row] = value;
}
#endif
