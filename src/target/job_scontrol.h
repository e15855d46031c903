/* `scontrol listpids ID`: SLURM's own answer to which processes of this node belong to a job. It asks the
 * job's slurmstepd through a local socket, and works for other users' jobs too. Without a shell, bounded in
 * time and size. */
#ifndef TARGET_JOB_SCONTROL_H
#define TARGET_JOB_SCONTROL_H

#include "base/base.h"

#include <sys/types.h>

struct scontrol;

/* -ENOENT: there is no such tool. */
int scontrol_start(struct scontrol **ret, const char *id);
/* Waits so long for its answer, borrowed until the next call: 1 when it is there (also an empty one), 0 not
 * yet. -ETIME: it took too long and was ended; -EFBIG, -EIO. Only the first answer may be waited for; after
 * it, or an error, scontrol_start() anew. */
int scontrol_answer(struct scontrol *s, int wait_ms, const char **ret_text, size_t *ret_len);
struct scontrol *scontrol_end(struct scontrol *s);
#endif
