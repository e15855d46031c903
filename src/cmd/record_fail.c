/* When recording fails: the job comes first.
 *
 * Our own failures (no memory, no descriptors, no file, no process) must not stop the job. Before it was
 * started we become it: exec in our place leaves nothing of us between the job and its parent, so that
 * signals, terminal and exit status are what they would be without us. Rejected: to start it as a child and
 * only wait for it, because there may be no room for a second process. After it was started we stay its
 * parent and write nothing more. One line says why; --strict asks for 125 instead, without the job.
 *
 * A request that cannot be fulfilled (a metric that does not exist, a file that exists already) is not such a
 * failure: that is wrong use, and the job is not started. */
#include "cmd/cmd.h"
#include "cmd/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *remedy(int error)
{
	switch (-error) {
	case ENOMEM:
		return "; a higher limit of memory may help (ulimit -v, ulimit -d)";
	case EMFILE:
		return "; a higher limit of open files would help (ulimit -n)";
	case EAGAIN:
		return "; a higher limit of processes may help (ulimit -u)";
	case EFBIG:
		return "; a higher limit of file sizes would help (ulimit -f)";
	case ENOSPC:
	case EDQUOT:
		return "; make room there, or choose another place with --output";
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
	case EEXIST:
	case EIO:
		return "; choose another place with --output";
	default:
		return "";
	}
}

void cannot_run(const char *name, int error)
{
	die(error == -ENOENT ? EXIT_NOTFOUND : EXIT_CANNOT, "cannot run '%s': %s", name,
		error == -ENOENT ? "there is no such command" : strerror(-error));
}

void record_fail(struct recording *r, int error, const char *fmt, ...)
{
	bool started = r->command.pid > 0;
	char what[4200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	record_discard(r);
	if (r->attach)
		die(EXIT_OWN, "%s: %s%s", what, strerror(-error), remedy(error));
	if (r->strict && !started)
		die(EXIT_OWN, "the job was not started (--strict), because it cannot be recorded: %s: %s%s",
			what, strerror(-error), remedy(error));
	warning("the job runs, but it is not recorded: %s: %s%s", what, strerror(-error), remedy(error));
	r->over = true;
	if (started)
		return;
	cannot_run(r->argv[0], command_become(&r->command, r->argv));
}
