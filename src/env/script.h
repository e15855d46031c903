/* A machine file or film as it stands in the file: its settings and, frame by frame, what to do to the tree.
 * The format is described in tests/machines/README.md. */
#ifndef ENV_SCRIPT_H
#define ENV_SCRIPT_H

#include "env/counters.h"
#include "env/files.h"

enum op_kind {
	OP_FILE,
	OP_LINK,
	OP_DIR,
	OP_ERROR,
	OP_CPU,
	OP_SPACE,
	OP_REMOVE,
	OP_CLOCK,
	OP_VARIABLE,
	OP_COUNTER,
};

struct op {
	enum op_kind kind;
	unsigned line;
	char *path;    /* or the name of a variable */
	char *data;    /* content, target of a link, value of a variable */
	size_t len;    /* of data */
	int64_t value; /* size, CPU time, time of a clock */
	struct env_space space;
	int which; /* call that fails, clock that is set */
	int error; /* negative errno */
	struct counter_key key;
	struct env_count count;
};

struct frame {
	int64_t at_ns; /* since the start */
	size_t first;  /* op; its ops end where the next frame's begin */
};

struct script {
	long page_size, clock_tick;
	int64_t start_ns[NR_ENV_CLOCKS];
	struct op *op;
	size_t nr_ops;
	struct frame *frame; /* the first is the machine itself, at 0 */
	size_t nr_frames;
	char *text; /* that all strings point into */
};

/* Takes a malloc'ed text of len bytes, followed by a NUL. -EINVAL and the line on anything that is not
 * understood. */
int script_parse(struct script *s, char *text, size_t len, unsigned *reterr_line);
void script_release(struct script *s);

/* Writes text so that script_parse() reads the same bytes: what an editor or terminal could spoil becomes
 * \xNN. */
struct buf;
void script_escape(struct buf *out, const char *bytes, size_t len, bool blanks);
const char *script_error_name(int error); /* "EACCES"; "EIO" for what has no name here */
extern const char *const script_call_name[NR_NODE_CALLS];
extern const char *const script_clock_name[NR_ENV_CLOCKS];
#endif
