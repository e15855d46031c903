/* Turns targets into groups of processes.
 *
 * A regular expression is matched with the command line as ps shows it: words separated by blanks. The
 * process that started us (a shell, sudo, timeout) has our own target in its command line and would match
 * itself, so a command line that holds the target as it was written is passed over.
 *
 * The first SCOPE_GROUPS_MAX - 1 tools have groups of their own; what comes after that goes into one for the
 * rest, so that an expression that names every process otherwise still records them all. */
#include "target/scope.h"

#include "base/redact.h"
#include "base/str.h"
#include "node/cgroups.h"
#include "read/read.h"
#include "target/job_text.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define OTHER_TOOLS "(other tools)"
/* Shorter parts of an id might find the wrong container. */
#define CONTAINER_PART_MIN 6

enum { HAS_CMDLINE = 1, HAS_CGROUP = 2, HAS_UID = 4 };

static const struct {
	const char *name;
	bool argument, inherits, endless;
} kind_row[NR_SCOPE_KINDS] = {
	[SCOPE_COMMAND] = {"command", false, true, false},
	[SCOPE_PID] = {"pid", false, true, false},
	[SCOPE_MATCH] = {"match", true, false, true},
	[SCOPE_USER] = {"user", true, false, true},
	[SCOPE_CGROUP] = {"cgroup", true, false, false},
	[SCOPE_CONTAINER] = {"container", true, false, false},
	[SCOPE_JOB] = {"job", true, true, false},
	[SCOPE_SYSTEM] = {"system", false, false, true},
};

const char *scope_kind_name(enum scope_kind kind)
{
	return (size_t)kind < NR_SCOPE_KINDS ? kind_row[kind].name : NULL;
}

void scopes_init(struct scopes *s, struct env *env)
{
	memset(s, 0, offsetof(struct scopes, scope));
	s->env = env;
}

void scopes_release(struct scopes *s)
{
	for (unsigned i = 0; i < s->nr; i++) {
		struct scope *scope = &s->scope[i];

		if (scope->kind == SCOPE_MATCH)
			regfree(&scope->regex);
		free(scope->path);
		job_close(scope->job);
		env_close(s->env, scope->procs);
	}
	scopes_init(s, s->env);
}

/* ---- understanding a target ---- */

static int add_group(struct scopes *s, unsigned scope, const char *name)
{
	struct scope_group *g = &s->group[s->nr_groups];

	if (s->nr_groups == SCOPE_GROUPS_MAX)
		return -ENOSPC;
	*g = (struct scope_group){.scope = scope};
	memccpy(g->name, name, 0, sizeof(g->name) - 1);
	if (kind_row[s->scope[scope].kind].inherits)
		s->inheriting |= UINT64_C(1) << s->nr_groups;
	if (s->scope[scope].kind == SCOPE_MATCH)
		s->matching |= UINT64_C(1) << s->nr_groups;
	if (s->scope[scope].kind == SCOPE_USER)
		s->users |= UINT64_C(1) << s->nr_groups;
	return (int)s->nr_groups++;
}

static int find_group(const struct scopes *s, const char *name)
{
	for (unsigned i = 0; i < s->nr_groups; i++)
		if (!strcmp(s->group[i].name, name))
			return (int)i;
	return -ENOENT;
}

int scopes_add_command(struct scopes *s, const char *name)
{
	struct scope *scope = &s->scope[s->nr];

	if (s->nr == SCOPES_MAX)
		return -ENOSPC;
	*scope = (struct scope){.kind = SCOPE_COMMAND, .procs = -1};
	snprintf(scope->name, sizeof(scope->name), "%s", name);
	snprintf(scope->target, sizeof(scope->target), "%s", name);
	scope->group = add_group(s, s->nr, scope->name);
	s->nr++;
	return 0;
}

/* Length of NAME in NAME=TARGET; 0 when there is none. */
static size_t name_length(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

	return text[n] == '=' ? n : 0;
}

static bool parse_pid(const char *text, pid_t *ret)
{
	uint64_t pid;

	if (!parse_u64(text, &pid) || pid == 0 || pid > PID_LIMIT)
		return false;
	*ret = (pid_t)pid;
	return true;
}

/* The kind, and what stands behind its colon. */
static bool parse_kind(const char *text, enum scope_kind *ret_kind, const char **ret_argument)
{
	for (enum scope_kind kind = SCOPE_MATCH; kind < NR_SCOPE_KINDS; kind++) {
		size_t n = strlen(kind_row[kind].name);

		if (strncmp(text, kind_row[kind].name, n))
			continue;
		*ret_kind = kind;
		*ret_argument = text[n] == ':' ? text + n + 1 : text + n;
		if (!text[n] || (text[n] == ':' && kind_row[kind].argument))
			return true;
	}
	return false;
}

static int parse_regex(struct scope *scope, const char *text, struct buf *err)
{
	char why[200];
	int r = *text ? regcomp(&scope->regex, text, REG_EXTENDED) : REG_BADPAT;

	if (r == 0)
		return 0;
	if (*text)
		regerror(r, &scope->regex, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "it is empty");
	buf_addf(err, "the regular expression of '%s' is wrong: %s", scope->target, why);
	return -EINVAL;
}

static int parse_user(struct scope *scope, const char *text, struct buf *err)
{
	const struct passwd *pw;
	uint64_t uid;

	if (!*text) {
		scope->uid = getuid();
		pw = getpwuid(scope->uid);
		if (!scope->name[0] && pw)
			snprintf(scope->name, sizeof(scope->name), "user:%s", pw->pw_name);
		else if (!scope->name[0])
			snprintf(scope->name, sizeof(scope->name), "user:%u", scope->uid);
		return 0;
	}
	pw = getpwnam(text);
	if (pw) {
		scope->uid = pw->pw_uid;
		return 0;
	}
	if (parse_u64(text, &uid) && uid < UINT32_MAX) {
		scope->uid = (uint32_t)uid;
		return 0;
	}
	buf_addf(err, "there is no user '%s'", text);
	return -ENOENT;
}

static int parse_argument(struct scope *scope, const char *text, struct buf *err)
{
	if (scope->kind == SCOPE_MATCH)
		return parse_regex(scope, text, err);
	if (scope->kind == SCOPE_USER)
		return parse_user(scope, text, err);
	if (!*text && (scope->kind == SCOPE_CGROUP || scope->kind == SCOPE_CONTAINER)) {
		buf_addf(err, "'%s' names no %s", scope->target,
			scope->kind == SCOPE_CGROUP ? "control group" : "container");
		return -EINVAL;
	}
	scope->path = strdup(text);
	return scope->path ? 0 : -ENOMEM;
}

static int parse_target(struct scope *scope, const char *text, struct buf *err)
{
	const char *argument;

	if (parse_pid(text, &scope->pid)) {
		scope->kind = SCOPE_PID;
		return 0;
	}
	if (parse_kind(text, &scope->kind, &argument))
		return parse_argument(scope, argument, err);
	buf_adds(err, "'");
	escape_bytes(err, text, strlen(text));
	buf_adds(err,
		"' is not a target: give a process id, match:REGEX, user:NAME, cgroup:PATH, container:ID, "
		"job[:ID] or system");
	return -EINVAL;
}

/* Its own group, or that of the same name, if both count alike. Tools' groups come with their processes. */
static int give_group(struct scopes *s, unsigned at, struct buf *err)
{
	struct scope *scope = &s->scope[at];
	const char *name = scope->name[0] ? scope->name : scope->target;

	scope->group = -1;
	if (scope->kind == SCOPE_MATCH && !scope->name[0])
		return 0;
	scope->group = find_group(s, name);
	if (scope->group < 0)
		scope->group = add_group(s, at, name);
	if (scope->group < 0)
		buf_addf(err, "more than %d groups cannot be recorded", SCOPE_GROUPS_MAX);
	else if (kind_row[s->scope[s->group[scope->group].scope].kind].inherits !=
		kind_row[scope->kind].inherits) {
		buf_addf(err, "'%s' cannot have the name of another kind of target, '%s'", scope->target,
			name);
		return -EINVAL;
	}
	return scope->group < 0 ? scope->group : 0;
}

int scopes_add(struct scopes *s, const char *target, struct buf *err)
{
	struct scope *scope = &s->scope[s->nr];
	size_t n = name_length(target);
	bool understood;
	int r;

	if (s->nr == SCOPES_MAX) {
		buf_addf(err, "more than %d targets cannot be watched at once", SCOPES_MAX);
		return -ENOSPC;
	}
	*scope = (struct scope){.procs = -1, .group = -1};
	if (n) {
		snprintf(scope->name, sizeof(scope->name), "%.*s", (int)MIN(n, sizeof(scope->name) - 1),
			target);
		target += n + 1;
	}
	snprintf(scope->target, sizeof(scope->target), "%s", target);
	r = parse_target(scope, target, err);
	understood = r == 0;
	if (understood)
		r = give_group(s, s->nr, err);
	if (r < 0) {
		if (scope->kind == SCOPE_MATCH && understood)
			regfree(&scope->regex);
		free(scope->path);
		return r;
	}
	s->nr++;
	s->asks |= scope->kind != SCOPE_PID;
	s->by_cmdline |= scope->kind == SCOPE_MATCH;
	return 0;
}

/* ---- what is read of a process ---- */

static ssize_t read_text(struct scopes *s, const char *file, char *out, size_t size)
{
	char path[48];
	ssize_t n;

	snprintf(path, sizeof(path), "proc/%d/%s", (int)s->pid, file);
	n = env_peek(s->env, path, out, size);
	out[MAX(n, 0)] = 0;
	return MAX(n, 0);
}

static const char *cmdline_of(struct scopes *s)
{
	if (s->has & HAS_CMDLINE)
		return s->cmdline;
	s->has |= HAS_CMDLINE;
	s->cmdline_len = (size_t)read_text(s, "cmdline", s->cmdline, sizeof(s->cmdline));
	while (s->cmdline_len && !s->cmdline[s->cmdline_len - 1])
		s->cmdline_len--;
	for (size_t i = 0; i < s->cmdline_len; i++)
		if (!s->cmdline[i])
			s->cmdline[i] = ' ';
	return s->cmdline;
}

static const char *cgroup_of(struct scopes *s)
{
	if (!(s->has & HAS_CGROUP))
		s->cgroup_len = (size_t)read_text(s, "cgroup", s->cgroup, sizeof(s->cgroup));
	s->has |= HAS_CGROUP;
	return s->cgroup;
}

static uint32_t uid_of(struct scopes *s)
{
	char text[4096];
	int64_t uid;
	ssize_t n;

	if (s->has & HAS_UID)
		return s->uid;
	s->has |= HAS_UID;
	s->uid = UINT32_MAX;
	n = read_text(s, "status", text, sizeof(text));
	if (read_key(text, text + n, "Uid", &uid))
		s->uid = (uint32_t)uid;
	return s->uid;
}

/* ---- asking ---- */

static int tool_group(struct scopes *s, unsigned at, const char *name, size_t len)
{
	char text[sizeof(s->group[0].name)], plain[sizeof(s->cmdline)];
	int g;

	if (s->redact) {
		len = MIN(len, sizeof(plain));
		memcpy(plain, name, len);
		len = redact_line(s->redact, plain, len, sizeof(plain));
		name = plain;
	}
	len = MIN(len, sizeof(text) - sizeof("tool:"));
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	g = find_group(s, text);
	/* Another target, such as the command of `run`, may have this name: they are separate groups. */
	if (g >= 0 && !(s->matching >> g & 1)) {
		snprintf(text, sizeof(text), "tool:%.*s", (int)len, name);
		g = find_group(s, text);
	}
	if (g >= 0 && s->matching >> g & 1)
		return g;
	if (s->nr_groups < SCOPE_GROUPS_MAX - 1)
		return add_group(s, at, text);
	g = find_group(s, OTHER_TOOLS);
	return g >= 0 ? g : add_group(s, at, OTHER_TOOLS);
}

static uint64_t ask_match(struct scopes *s, unsigned at)
{
	struct scope *scope = &s->scope[at];
	const char *text = cmdline_of(s);
	regmatch_t part[2];
	int g = scope->group, named;

	if (!*text || regexec(&scope->regex, text, ARRAY_SIZE(part), part, 0) != 0 ||
		strstr(text, scope->target))
		return 0;
	if (g < 0) {
		named = scope->regex.re_nsub && part[1].rm_so >= 0 && part[1].rm_eo > part[1].rm_so;
		g = tool_group(
			s, at, text + part[named].rm_so, (size_t)(part[named].rm_eo - part[named].rm_so));
	}
	return g < 0 ? 0 : UINT64_C(1) << g;
}

/* ---- steps and ranks of a job ---- */

/* So many groups are left for ranks when there are many steps. */
#define STEPS_MAX 16

/* The group of that step or rank; what is too much goes into one for the rest. */
static uint64_t part_group(struct scopes *s, unsigned at, const char *kind, const char *name, unsigned most)
{
	char text[sizeof(s->group[0].name)];
	int g;

	if (!*name)
		return 0;
	snprintf(text, sizeof(text), "%s %s", kind, name);
	g = find_group(s, text);
	if (g < 0 && s->nr_groups >= most) {
		snprintf(text, sizeof(text), "other %ss", kind);
		g = find_group(s, text);
	}
	if (g < 0 && (g = add_group(s, at, text)) >= 0)
		s->group[g].part = kind;
	return g < 0 ? 0 : UINT64_C(1) << g;
}

static uint64_t part_groups(struct scopes *s, unsigned at, pid_t pid)
{
	struct job_part part;

	if (!s->expects)
		return 0;
	job_part_of(s->scope[at].job, pid, &part);
	return part_group(s, at, "step", part.step, STEPS_MAX) |
		part_group(s, at, "rank", part.rank, SCOPE_GROUPS_MAX - 2);
}

uint64_t scopes_parts(struct scopes *s, pid_t pid)
{
	uint64_t groups = 0;

	for (unsigned i = 0; i < s->nr; i++)
		if (s->scope[i].job)
			groups |= part_groups(s, i, pid);
	return groups;
}

static bool in_cgroup(const char *text, const char *group)
{
	struct text rest = text_of(text), path;
	size_t n = strlen(group);

	if (n && group[n - 1] == '/')
		n--;
	while (cgroup_next(&rest, &path))
		if (path.len >= n && !memcmp(path.p, group, n) && (path.len == n || path.p[n] == '/'))
			return true;
	return false;
}

/* Is this part of a path the container's? "docker-ID.scope", "libpod-ID", "ID" itself, "lxc.payload.NAME"...
 */
static bool is_container(const char *part, size_t len, const char *id)
{
	static const char *const before[] = {"docker-", "libpod-conmon-", "libpod-", "cri-containerd-",
		"crio-", "lxc.payload.", "machine-", ""};
	static const char *const after[] = {".scope", ".service", ".libvirt-lxc", ""};
	size_t n = strlen(id);

	for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
		size_t a = strlen(after[i]);

		if (len > a && !memcmp(part + len - a, after[i], a)) {
			len -= a;
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		size_t b = strlen(before[i]);

		if (len < b + n || memcmp(part, before[i], b) || memcmp(part + b, id, n))
			continue;
		if (len == b + n)
			return true;
		/* The first letters of a long number, as tools print it. */
		if (n >= CONTAINER_PART_MIN && strspn(part + b, "0123456789abcdef") >= len - b &&
			len - b >= 32)
			return true;
	}
	return false;
}

/* Where in the path the container's part ends; 0: it is not in it. */
static size_t container_end(const char *path, size_t len, const char *id)
{
	for (size_t from = 0; from < len;) {
		const char *slash = memchr(path + from, '/', len - from);
		size_t n = slash ? (size_t)(slash - path) - from : len - from;

		if (n && is_container(path + from, n, id))
			return from + n;
		from += n + 1;
	}
	return 0;
}

static uint64_t ask_one(struct scopes *s, unsigned at)
{
	struct scope *scope = &s->scope[at];
	bool yes = false;

	switch (scope->kind) {
	case SCOPE_MATCH:
		return ask_match(s, at);
	case SCOPE_USER:
		yes = uid_of(s) == scope->uid;
		break;
	case SCOPE_CGROUP:
	case SCOPE_CONTAINER:
		yes = scope->path && in_cgroup(cgroup_of(s), scope->path);
		break;
	case SCOPE_JOB:
		if (scope->job && job_takes(scope->job, s->pid))
			return UINT64_C(1) << scope->group | part_groups(s, at, s->pid);
		break;
	case SCOPE_SYSTEM:
		yes = true;
		break;
	default:
		break;
	}
	return yes ? UINT64_C(1) << scope->group : 0;
}

uint64_t scopes_ask(struct scopes *s, pid_t pid)
{
	uint64_t groups = 0;

	s->pid = pid;
	s->has = 0;
	for (unsigned i = 0; i < s->nr; i++)
		groups |= ask_one(s, i);
	return groups;
}

uint64_t scopes_of_user(const struct scopes *s, uint32_t uid)
{
	uint64_t groups = 0;

	for (unsigned i = 0; i < s->nr; i++)
		if (s->scope[i].kind == SCOPE_USER && s->scope[i].uid == uid)
			groups |= UINT64_C(1) << s->scope[i].group;
	return groups;
}

bool scopes_refuse(struct scopes *s, pid_t pid)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (s->scope[i].job && job_is_daemon(s->scope[i].job, pid))
			return true;
	return false;
}

bool scopes_hide(const struct scopes *s)
{
	bool others = false;

	for (unsigned i = 0; i < s->nr; i++) {
		const struct scope *scope = &s->scope[i];

		others |= scope->kind == SCOPE_MATCH || scope->kind == SCOPE_SYSTEM ||
			(scope->kind == SCOPE_USER && scope->uid != getuid());
	}
	return others && env_try(s->env, "proc/1/stat") < 0;
}

bool scopes_wait_for_us(struct scopes *s, pid_t pid)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (s->scope[i].job && job_waits_for_us(s->scope[i].job, pid))
			return true;
	return false;
}

bool scopes_end(const struct scopes *s)
{
	for (unsigned i = 0; i < s->nr; i++)
		if (kind_row[s->scope[i].kind].endless)
			return false;
	return true;
}

/* ---- finding what is named ---- */

/* The group as /proc/PID/cgroup names it, when the user gave its directory. */
static char *group_of_directory(const struct cgroup_dir *dir, const char *path)
{
	char *group = NULL;

	while (*path == '/')
		path++;
	if (strncmp(path, dir->path, dir->mount_len) || (path[dir->mount_len] && path[dir->mount_len] != '/'))
		return NULL;
	if (asprintf(&group, "%.*s%s", (int)cgroup_root_length(dir), dir->group, path + dir->mount_len) < 0)
		return NULL;
	return group;
}

/* Opens the list of processes of the group in this hierarchy. */
static int open_procs(struct env *env, struct cgroup_dir *dir, const char *group)
{
	char path[PATH_MAX + sizeof("/cgroup.procs")];

	if (!cgroup_dir_move(dir, group))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir->path);
	return env_open(env, path);
}

static int open_cgroup(struct scopes *s, struct scope *scope, struct buf *err)
{
	struct cgroups *at = calloc(1, sizeof(*at));
	int r = at ? cgroups_read(s->env, 0, at) : -ENOMEM, handle = -ENOENT;

	for (unsigned i = 0; i < NR_CGROUP_CONTROLLERS && r == 0; i++) {
		char *group = at->dir[i].found ? group_of_directory(&at->dir[i], scope->path) : NULL;

		if (group) {
			free(scope->path);
			scope->path = group;
			break;
		}
	}
	if (r == 0 && scope->path[0] != '/') {
		char *absolute = NULL;

		if (asprintf(&absolute, "/%s", scope->path) < 0)
			r = -ENOMEM;
		free(scope->path);
		scope->path = absolute;
	}
	for (size_t n = r == 0 ? strlen(scope->path) : 0; n > 1 && scope->path[n - 1] == '/'; n--)
		scope->path[n - 1] = 0;
	for (unsigned i = 0; i < NR_CGROUP_CONTROLLERS && r == 0 && handle < 0; i++)
		if (at->dir[i].found)
			handle = open_procs(s->env, &at->dir[i], scope->path);
	free(at);
	if (r < 0)
		return r;
	scope->procs = handle;
	if (handle >= 0)
		return 0;
	buf_addf(err,
		handle == -EACCES ? "the control group '%s' may not be read"
				  : "there is no control group '%s'",
		scope->path);
	return handle == -EACCES ? -EACCES : -ESRCH;
}

struct scope_search {
	struct scopes *s;
	struct scope *scope;
};

static int search_container(void *arg, const char *name)
{
	struct scope_search *search = arg;
	struct text rest, path;
	pid_t pid;
	size_t end;

	if (!parse_pid(name, &pid))
		return 0;
	search->s->pid = pid;
	search->s->has = 0;
	rest = text_of(cgroup_of(search->s));
	while (cgroup_next(&rest, &path)) {
		end = container_end(path.p, path.len, search->scope->path);
		if (!end)
			continue;
		free(search->scope->path);
		search->scope->path = strndup(path.p, end);
		return search->scope->path ? 1 : -ENOMEM;
	}
	return 0;
}

static int open_container(struct scopes *s, struct scope *scope, struct buf *err)
{
	struct scope_search search = {.s = s, .scope = scope};
	char *id = strdup(scope->path);
	int r = id ? env_list(s->env, "proc", search_container, &search) : -ENOMEM;

	if (r == 0)
		buf_addf(err,
			"no process on this machine is in a container '%s', by the names of the "
			"control groups",
			id);
	free(id);
	if (r < 0)
		return r;
	if (r == 0)
		return -ESRCH;
	/* Without its directory, as within another container, each process is checked. */
	if (open_cgroup(s, scope, err) < 0)
		err->len = 0;
	return 0;
}

static int open_job(struct scopes *s, struct scope *scope, struct buf *err)
{
	char why[512] = "";
	int r;

	if (scope->job)
		return 0;
	r = job_open(s->env, scope->path, &scope->job, &scope->found_by, why, sizeof(why));
	if ((r == -ESRCH || r == -ENOENT) && s->expects)
		r = job_expect(s->env, scope->path, &scope->job, &scope->found_by, why, sizeof(why));
	if (r < 0)
		buf_adds(err, why);
	return r;
}

static int open_pid(struct scopes *s, struct scope *scope, struct buf *err)
{
	char text[1024], *state;

	if (env_cpu_clock(s->env, scope->pid) < 0) {
		buf_addf(err, "there is no process %d to attach to", (int)scope->pid);
		return -ESRCH;
	}
	s->pid = scope->pid;
	if (!read_text(s, "stat", text, sizeof(text)) && env_cpu_clock(s->env, scope->pid) >= 0) {
		buf_addf(err,
			"process %d is hidden (/proc is mounted with hidepid): only its owner or root can "
			"attach to it",
			(int)scope->pid);
		return -EACCES;
	}
	state = strrchr(text, ')');
	if (state && state[1] && state[2] != 'Z' && state[2] != 'X')
		return 0;
	buf_addf(err, "process %d has ended already (it is a zombie)", (int)scope->pid);
	return -ENODATA;
}

int scope_open(struct scopes *s, unsigned at, struct buf *err)
{
	struct scope *scope = &s->scope[at];

	if (s->env->other_pids && scope->kind != SCOPE_COMMAND) {
		buf_adds(err,
			"processes cannot be found: /proc is not mounted, or is of another PID namespace "
			"than "
			"ours; mount -t proc proc /proc (unshare --mount-proc does)");
		return -ENODATA;
	}
	switch (scope->kind) {
	case SCOPE_PID:
		return open_pid(s, scope, err);
	case SCOPE_CGROUP:
		return open_cgroup(s, scope, err);
	case SCOPE_CONTAINER:
		return open_container(s, scope, err);
	case SCOPE_JOB:
		return open_job(s, scope, err);
	default:
		return 0;
	}
}

/* ---- lists ---- */

struct scope_listing {
	void (*fn)(void *arg, pid_t pid, uint64_t groups);
	void *arg;
	uint64_t groups;
};

static int list_one(void *arg, pid_t pid)
{
	struct scope_listing *l = arg;

	l->fn(l->arg, pid, l->groups);
	return 0;
}

void scopes_list(struct scopes *s, void (*fn)(void *arg, pid_t pid, uint64_t groups), void *arg)
{
	for (unsigned i = 0; i < s->nr; i++) {
		struct scope *scope = &s->scope[i];
		struct scope_listing l = {.fn = fn, .arg = arg};

		if (scope->group < 0)
			continue;
		l.groups = UINT64_C(1) << scope->group;
		if (scope->procs >= 0)
			cgroup_pids(s->env, scope->procs, list_one, &l);
		if (scope->job && (!scope->listed || job_needs_listing(scope->job)))
			job_list(scope->job, list_one, &l);
		scope->listed = true;
	}
}
