/* `tacho run -r N`: the same command several times, each recorded as by `tacho run`, and how much the runs
 * differ.
 *
 * Each run is a copy of this process: nothing of one reaches the next, and a signal from the terminal reaches
 * the recorder of the present run as it always does. A run that fails is the last one, and its status is
 * ours. */
#include "cmd/run_repeat.h"

#include "analysis/compare.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/operands.h"
#include "cmd/style.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define PATH_MOST 8192

static volatile sig_atomic_t present; /* the recorder of the present run */

static void pass_on(int number)
{
	int had = errno;

	if (present > 0)
		kill(present, number);
	errno = had;
}

/* Ctrl-C and Ctrl-\ reach the recorder by itself, which ends as the job does; what is sent to us alone is
 * passed on. */
static const int passed[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}, awaited[] = {SIGINT, SIGQUIT};

static void hold_signals(struct sigaction had[static ARRAY_SIZE(passed) + ARRAY_SIZE(awaited)])
{
	const struct sigaction pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART},
			       wait = {.sa_handler = SIG_IGN};

	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaction(passed[i], &pass, &had[i]);
	for (size_t i = 0; i < ARRAY_SIZE(awaited); i++)
		sigaction(awaited[i], &wait, &had[ARRAY_SIZE(passed) + i]);
}

static void give_signals_back(const struct sigaction had[static ARRAY_SIZE(passed) + ARRAY_SIZE(awaited)])
{
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		sigaction(passed[i], &had[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(awaited); i++)
		sigaction(awaited[i], &had[ARRAY_SIZE(passed) + i], NULL);
}

/* base.tacho of the third run is base-3.tacho; names with placeholders and directories number themselves. */
static char *output_of(const char *output, size_t i)
{
	size_t stem = strlen(output), suffix = strlen(RECORDING_SUFFIX);
	char *name = NULL;

	if (strchr(output, '{') || stem <= suffix || strcmp(output + stem - suffix, RECORDING_SUFFIX) != 0)
		return strdup(output);
	return asprintf(&name, "%.*s-%zu%s", (int)(stem - suffix), output, i + 1, RECORDING_SUFFIX) < 0
		? NULL
		: name;
}

void repeat_told(const struct repeat *r, const char *path)
{
	size_t len = strlen(path);

	if (r->tell_fd >= 0 && len < PATH_MOST && write(r->tell_fd, path, len) < 0)
		warning("the path of the recording could not be told: %s", strerror(errno));
}

static void read_path(int fd, char out[static PATH_MOST])
{
	size_t len = 0;
	ssize_t n;

	while (len < PATH_MOST - 1 &&
		((n = read(fd, out + len, PATH_MOST - 1 - len)) > 0 || (n < 0 && errno == EINTR)))
		len += (size_t)MAX(n, 0);
	out[len] = 0;
}

/* The status of the run as wait(2) gives it. */
static int run_one(struct repeat *r, size_t i, char path[static PATH_MOST])
{
	struct sigaction had[ARRAY_SIZE(passed) + ARRAY_SIZE(awaited)];
	int ends[2], status = 0;
	sigset_t set, before;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die(EXIT_OWN, "cannot repeat the command: %s", strerror(errno));
	/* What comes before the recorder is known waits until it is. */
	sigemptyset(&set);
	for (size_t k = 0; k < ARRAY_SIZE(passed); k++)
		sigaddset(&set, passed[k]);
	sigprocmask(SIG_BLOCK, &set, &before);
	hold_signals(had);
	pid = fork();
	if (pid < 0)
		die(EXIT_OWN, "cannot repeat the command: %s", strerror(errno));
	if (!pid) {
		give_signals_back(had);
		sigprocmask(SIG_SETMASK, &before, NULL);
		close(ends[0]);
		r->tell_fd = ends[1];
		r->output = output_of(r->output, i);
		if (!r->output)
			die(EXIT_OWN, "no memory");
		exit(r->run(r));
	}
	present = pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	read_path(ends[0], path);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	present = 0;
	give_signals_back(had);
	return status;
}

/* ---- what they have in common ---- */

static void add_figure(const struct compare_figure *f, struct buf *out)
{
	const struct compare_values *v = &f->of[0];
	char mean[64], deviation[64], least[64], most[64];

	buf_addf(out, "%s", compare_format(mean, &f->unit, v->mean, false));
	if (v->nr < 2)
		return;
	buf_addf(out, " ± %s", compare_format(deviation, &f->unit, v->deviation, false));
	if (v->mean > 0)
		buf_addf(out, " (%.1f %%)", 100 * v->deviation / v->mean);
	buf_addf(out, "   from %s to %s", compare_format(least, &f->unit, v->least, false),
		compare_format(most, &f->unit, v->most, false));
}

static void print_spread(const struct repeat *r, const struct comparison *c, char **path, size_t nr)
{
	static const char *const shown[][2] = {
		{"wall", "wall_s"}, {"cpu", "cpu.total_s"}, {"memory", "memory.peak_bytes"}};
	struct summary_style style = style_for(STDERR_FILENO);
	struct buf out;

	buf_init(&out, 1 << 20);
	buf_adds(&out, "tacho  ");
	add_command(&out, r->command, r->command_len, style.utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
	clip(&out, 0, style.width > 40 ? style.width - 20 : 20, style.utf8);
	buf_addf(&out, "   %zu run%s\n", nr, nr == 1 ? "" : "s");
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		for (size_t k = 0; k < c->nr_figures; k++) {
			struct buf text, plain;

			if (strcmp(c->figure[k].name, shown[i][1]) != 0 || !c->figure[k].of[0].nr)
				continue;
			buf_init(&text, 4096);
			buf_init(&plain, 8192);
			add_figure(&c->figure[k], &text);
			add_letters(&plain, (char *)text.data, style.utf8);
			add_paragraph(&out, 2, shown[i][0], style.color ? "36" : NULL, 11, (char *)plain.data,
				style.width);
			buf_release(&plain);
			buf_release(&text);
		}
	for (size_t i = 0; i < nr; i++)
		add_paragraph(&out, 2, i ? "" : "kept in", style.color && !i ? "36" : NULL, 11, path[i],
			style.width);
	if (nr > 1)
		add_paragraph(&out, 2, "", NULL, 11, "(tacho compare THESE… -- OTHERS…)", style.width);
	fwrite(out.data, 1, out.len, stderr);
	buf_release(&out);
}

static void tell_spread(const struct repeat *r, char **path, size_t nr)
{
	struct compare_operand *operand = calloc(nr, sizeof(*operand));
	struct comparison *c = NULL;
	struct buf err;
	size_t opened = 0;

	buf_init(&err, 1 << 16);
	while (operand && opened < nr) {
		struct run *run = NULL;

		if (run_open((const char *const *)&path[opened], 1, &run, &err) < 0)
			break;
		operand[opened] = (struct compare_operand){.name = path[opened], .run = run};
		opened++;
	}
	if (opened < nr || compare_read(operand, nr, NULL, &c, &err) < 0)
		warning("cannot read the recordings back: %s", (char *)err.data);
	else
		print_spread(r, c, path, nr);
	compare_free(c);
	for (size_t i = 0; i < opened; i++)
		run_close((struct run *)operand[i].run);
	free(operand);
	buf_release(&err);
}

/* As a shell has it; of a signal we end by the same. */
static int end_as(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int repeat_run(struct repeat *r, size_t times)
{
	char **path = calloc(times, sizeof(*path)), text[PATH_MOST];
	size_t nr = 0;
	int status = 0;

	if (!path)
		die(EXIT_OWN, "no memory");
	for (size_t i = 0; i < times && !status; i++) {
		status = run_one(r, i, text);
		if (status && times > 1 && !r->quiet && !WIFSIGNALED(status))
			warning("run %zu of %zu ended with %d: the others are left out", i + 1, times,
				WEXITSTATUS(status));
		if (!*text)
			continue;
		path[nr] = strdup(text);
		if (!path[nr])
			die(EXIT_OWN, "no memory");
		nr++;
	}
	if (nr && !r->quiet)
		tell_spread(r, path, nr);
	texts_free(path, nr);
	return end_as(status);
}
