/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 *
 * A SPANK plugin for SLURM: `--tacho[=WORDS]` of srun, sbatch and salloc records the job on each of its nodes
 * with `tacho attach job:ID`. It is compiled against SLURM's spank.h and loaded into SLURM's programs, which
 * are under the GNU General Public License, version 2 or later: so this file, and this one only, may be used
 * under either.
 *
 * It runs inside of slurmstepd, as root, on the way of every job. So:
 *
 * - Every callback returns 0, whatever happens: anything else would fail the job, or drain the node.
 * - Nothing is done as root. Files are opened in user_init(), where slurmstepd acts as the user; what runs
 *   later does so in a child that has given up all three user and group ids first. Variables of the job are
 *   handed on to the recorder, and looked at for nothing else than where the job was submitted.
 * - slurmstepd waits for two forks and nothing else: not for a file system, not for the recorder. Between
 * fork and exec only calls are made that a copy of a program with threads may make; all texts are made
 * before.
 *
 * One recorder a node and job. The first step there makes the lock file, and starts it; every step holds a
 * shared lock on that file while it has tasks, and the one that is last ends the recorder with SIGTERM, so
 * that it writes its end. A later step begins another recording. The lock is of this machine (in /tmp), the
 * recordings are where the job was submitted: DIR/JOBID/nodes/HOST.tacho. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* what spank.h declares is for SLURM to find */
#include <slurm/spank.h>

SPANK_PLUGIN(tacho, 1)
#pragma GCC visibility pop

#define WORDS_MAX 16
#define GROUPS_MAX 1024
#define NAMES_MAX 99 /* recordings of one job on one node */

static struct {
	int wanted;
	char words[1024];	/* of the user, cut where spaces were */
	char program[PATH_MAX]; /* of plugstack.conf */
	char preset_dir[PATH_MAX];
	uid_t uid;
	gid_t gid, group[GROUPS_MAX];
	size_t nr_groups;
	uint32_t job, tasks, ended;
	int lock; /* -1: this step holds none */
	char lock_path[256];
	char path[3][PATH_MAX]; /* the directory, the job's in it, and the nodes' in that */
	char host[256], recording[PATH_MAX + 300];
	const char *argv[WORDS_MAX + 8];
	size_t nr_options;
	char **env;
} own = {.program = "/usr/bin/tacho", .preset_dir = "tacho", .lock = -1};

/* ---- options ---- */

/* What a user may say, and what the recorder is told. All of them have a value. */
static const struct {
	const char *brief, *full;
	const char *given; /* NULL: the directory, which is ours */
} allowed[] = {{"-d", "--save-dir", NULL}, {"-i", "--interval", "--interval"},
	{"-m", "--metrics", "--metrics"}, {"-c", "--flush", "--flush"}};

static int take_option(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	own.wanted = 1;
	snprintf(own.words, sizeof(own.words), "%s", text ? text : "");
	return 0;
}

static size_t which_option(const char *word)
{
	size_t i = 0;

	while (i < sizeof(allowed) / sizeof(allowed[0]) && strcmp(word, allowed[i].brief) != 0 &&
		strcmp(word, allowed[i].full) != 0)
		i++;
	return i;
}

/* Words are parted by spaces; there are no quotes, and no shell sees them. What is not allowed is passed
 * over. */
static void take_words(const char **ret_dir)
{
	char *rest = own.words, *word, *value;

	while ((word = strsep(&rest, " ")) && own.nr_options + 2 <= WORDS_MAX) {
		size_t i = which_option(word);

		if (!*word)
			continue;
		if (i == sizeof(allowed) / sizeof(allowed[0])) {
			slurm_info("tacho: '%.100s' is not an option of --tacho: left out", word);
			continue;
		}
		while ((value = strsep(&rest, " ")) && !*value)
			;
		if (!value)
			return;
		if (!allowed[i].given) {
			*ret_dir = value;
			continue;
		}
		own.argv[own.nr_options++] = allowed[i].given;
		own.argv[own.nr_options++] = value;
	}
}

/* ---- as the user: only calls that are safe between fork and exec ---- */

static int become_user(void)
{
	/* In user_init() only the effective ids are the user's. */
	if (syscall(SYS_setresuid, -1, 0, -1) != 0 && geteuid() != own.uid)
		return -1;
	if (geteuid() == 0 && syscall(SYS_setgroups, own.nr_groups, own.group) != 0)
		return -1;
	if (syscall(SYS_setresgid, own.gid, own.gid, own.gid) != 0 ||
		syscall(SYS_setresuid, own.uid, own.uid, own.uid) != 0)
		return -1;
	/* There is no way back. */
	return own.uid && syscall(SYS_setresuid, -1, 0, -1) == 0 ? -1 : 0;
}

/* The 22nd field of /proc/PID/stat: with it a number is one process for ever. 0: there is none. */
static unsigned long long start_time(const char *stat_path)
{
	char text[1024], *at;
	int fd = open(stat_path, O_RDONLY | O_CLOEXEC), field = 2;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	unsigned long long value = 0;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')'); /* the name may hold anything */
	while (at && *at && field < 22)
		field += *at++ == ' ';
	while (at && *at >= '0' && *at <= '9')
		value = value * 10 + (unsigned long long)(*at++ - '0');
	return value;
}

struct note { /* in the lock file */
	int64_t pid;
	uint64_t start;
};

static void leave_slurm_behind(void)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
		for (int fd = 3; fd < 4096; fd++)
			close(fd);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &plain, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static char *add_text(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	*at = 0;
	return at;
}

static char *add_number(char *at, unsigned n)
{
	if (n > 9)
		at = add_number(at, n / 10);
	*at++ = (char)('0' + n % 10);
	*at = 0;
	return at;
}

/* HOST.tacho, or the next that is not there: HOST-2.tacho. */
static int name_recording(void)
{
	for (unsigned i = 1; i <= NAMES_MAX; i++) {
		char *at = own.recording + strlen(own.path[2]) + 1 + strlen(own.host);

		add_text(i > 1 ? add_number(add_text(at, "-"), i) : at, ".tacho");
		if (access(own.recording, F_OK) != 0)
			return 0;
	}
	return -1;
}

static void become_recorder(void)
{
	struct note note = {.pid = getpid(), .start = start_time("/proc/self/stat")};

	if (pwrite(own.lock, &note, sizeof(note), 0) != sizeof(note))
		_exit(0);
	leave_slurm_behind();
	for (size_t i = 0; i < 3; i++)
		mkdir(own.path[i], 0777);
	if (name_recording() < 0 || chdir("/") != 0)
		_exit(0);
	execve(own.program, (char *const *)own.argv, own.env);
	_exit(0);
}

static void end_recorder(void)
{
	struct note note;
	char path[64];

	if (pread(own.lock, &note, sizeof(note), 0) != sizeof(note) || note.pid <= 1 || note.pid > INT_MAX)
		return;
	add_text(add_number(add_text(path, "/proc/"), (unsigned)note.pid), "/stat");
	if (note.start && start_time(path) == note.start)
		kill((pid_t)note.pid, SIGTERM);
}

/* What runs in a child process, as the user; and in a grandchild where SLURM must not wait for it. */
static void do_as_user(void (*what)(void), int alone)
{
	pid_t child = fork();

	if (child > 0)
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	if (child != 0)
		return;
	if (become_user() == 0) {
		if (alone)
			setsid();
		if (!alone || fork() == 0)
			what();
	}
	_exit(0);
}

/* ---- the lock ---- */

/* 1: we made it; 0: we share it; -1: there is none to be had. */
static int take_lock(void)
{
	snprintf(own.lock_path, sizeof(own.lock_path), "/tmp/.tacho-%.200s-%u-%u", own.host,
		(unsigned)own.uid, own.job);
	for (int i = 0; i < 10; i++) {
		struct stat st;
		int made = 1;

		own.lock = open(own.lock_path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (own.lock < 0 && errno == EEXIST) {
			made = 0;
			own.lock = open(own.lock_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		}
		if (own.lock < 0)
			continue;
		/* One that the last step is about to remove is none. */
		if (fstat(own.lock, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == own.uid &&
			flock(own.lock, LOCK_SH | LOCK_NB) == 0 && fstat(own.lock, &st) == 0 && st.st_nlink)
			return made;
		close(own.lock);
		own.lock = -1;
		usleep(1000);
	}
	return -1;
}

static void remove_lock(void)
{
	end_recorder();
	unlink(own.lock_path);
}

/* Only the last step on the node gets it for itself. */
static void leave_lock(void)
{
	if (own.lock < 0)
		return;
	if (flock(own.lock, LOCK_EX | LOCK_NB) == 0)
		do_as_user(remove_lock, 0);
	close(own.lock);
	own.lock = -1;
}

/* ---- what the recorder gets ---- */

static int take_job(spank_t sp)
{
	gid_t *group = NULL;
	int nr = 0;

	if (spank_get_item(sp, S_JOB_UID, &own.uid) || spank_get_item(sp, S_JOB_GID, &own.gid) ||
		spank_get_item(sp, S_JOB_ID, &own.job) ||
		spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &own.tasks) ||
		spank_get_item(sp, S_JOB_ENV, &own.env))
		return -1;
	if (!spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &group, &nr) && group && nr > 0) {
		own.nr_groups = nr < GROUPS_MAX ? (size_t)nr : GROUPS_MAX;
		memcpy(own.group, group, own.nr_groups * sizeof(*group));
	}
	return 0;
}

/* What the job preloads is not for the recorder. */
static int copy_environment(void)
{
	size_t nr = 0, kept = 0;
	char **copy;

	while (own.env && own.env[nr])
		nr++;
	copy = calloc(nr + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < nr; i++)
		if (strncmp(own.env[i], "LD_", 3) != 0)
			copy[kept++] = strdup(own.env[i]);
	own.env = copy;
	return copy ? 0 : -1;
}

static int make_paths(spank_t sp, const char *dir)
{
	char from[PATH_MAX] = "";
	int n;

	if (*dir != '/' && (spank_getenv(sp, "SLURM_SUBMIT_DIR", from, sizeof(from)) || *from != '/'))
		return -1;
	n = snprintf(own.path[0], PATH_MAX, "%s%s%s", *dir == '/' ? "" : from, *dir == '/' ? "" : "/", dir);
	if (n >= PATH_MAX || snprintf(own.path[1], PATH_MAX, "%s/%u", own.path[0], own.job) >= PATH_MAX ||
		snprintf(own.path[2], PATH_MAX, "%s/nodes", own.path[1]) >= PATH_MAX)
		return -1;
	if (gethostname(own.host, sizeof(own.host) - 1) != 0)
		return -1;
	own.host[strcspn(own.host, "./")] = 0;
	snprintf(own.recording, sizeof(own.recording), "%s/%s", own.path[2], own.host);
	return *own.host && strlen(own.recording) + 16 < sizeof(own.recording) ? 0 : -1;
}

static void make_words(const char *job)
{
	const char *option[WORDS_MAX];
	size_t nr = 0, nr_options = own.nr_options;

	memcpy(option, own.argv, nr_options * sizeof(*option));
	own.argv[nr++] = "tacho";
	own.argv[nr++] = "attach";
	own.argv[nr++] = "-q";
	own.argv[nr++] = "-o";
	own.argv[nr++] = own.recording;
	for (size_t i = 0; i < nr_options; i++)
		own.argv[nr++] = option[i];
	own.argv[nr++] = job;
	own.argv[nr] = NULL;
}

/* ---- SLURM's callbacks ---- */

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
	static struct spank_option option = {.name = "tacho",
		.arginfo = "[WORDS]",
		.usage = "record the job on its nodes with tacho (WORDS: -d DIR -i INTERVAL …)",
		.has_arg = 2,
		.cb = take_option};

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "tacho=", 6))
			snprintf(own.program, sizeof(own.program), "%s", argv[i] + 6);
		if (!strncmp(argv[i], "dir=", 4))
			snprintf(own.preset_dir, sizeof(own.preset_dir), "%s", argv[i] + 4);
	}
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE:
		spank_option_register(sp, &option);
		break;
	default:
		break;
	}
	return 0;
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
	static char job[32];
	const char *dir = own.preset_dir;

	(void)argc;
	(void)argv;
	if (!own.wanted || spank_context() != S_CTX_REMOTE || take_job(sp) < 0)
		return 0;
	take_words(&dir);
	if (make_paths(sp, dir) < 0 || copy_environment() < 0)
		return 0;
	snprintf(job, sizeof(job), "job:%u", own.job);
	make_words(job);
	if (take_lock() == 1)
		do_as_user(become_recorder, 1);
	return 0;
}

/* The recorder is ended before slurmstepd waits for what is left of the step. */
int slurm_spank_task_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	if (++own.ended >= own.tasks)
		leave_lock();
	return 0;
}

int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
	(void)sp;
	(void)argc;
	(void)argv;
	leave_lock();
	return 0;
}
