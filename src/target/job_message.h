/* What the job tells its recorder: one datagram, lines of text (docs/marks.md).
 *
 *	mark TEXT | begin NAME | end NAME | count
 *	@time=NANOSECONDS        the sender's monotonic clock
 *	@lost=NUMBER             messages before this one that could not be sent
 *	@within=NUMBER           ranges within others that are not told
 *	@thread=NUMBER           which thread of the sender
 *	@parent=NUMBER           for which process the sender speaks, such as a shell
 *	KEY=VALUE                data, any number of lines
 *
 * In a line \n stands for a newline and \\ for a backslash. Nothing in it is trusted: texts may be any bytes.
 */
#ifndef TARGET_JOB_MESSAGE_H
#define TARGET_JOB_MESSAGE_H

#include "base/base.h"

#define JOB_MESSAGE_MOST 4096 /* bytes; longer ones are refused */

struct job_message {
	/* Of the event in the recording: "mark", "phase.begin", "phase.end". "": it has only numbers to
	 * count. */
	const char *kind;
	const char *text; /* not terminated */
	size_t text_len;
	const char *data; /* KEY=VALUE, each ended by NUL but the last */
	size_t data_len;
	int64_t time_ns; /* -1: not told */
	int64_t lost, within;
	int64_t thread, parent; /* by the sender's word; 0: not told */
};

/* Takes the message apart in its own memory. -EBADMSG: it is none. */
int job_message_parse(char *bytes, size_t len, struct job_message *ret);
#endif
