/* How SLURM, PBS and OAR name jobs: in control groups, in variables, in the output of tools, by process
 * names.
 *
 * Paths of control groups are recognized by the names around the job's own, never by their depth: slices can
 * be renamed, containers and namespaces put something before or cut the beginning off. A name alone ("job_7")
 * is not enough, since any user may use it. */
#include "target/job_text.h"

#include "node/cgroups.h"
#include "read/read.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool all_digits(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (!is_digit(t.p[i]))
			return false;
	return t.len > 0;
}

/* ---- names ---- */

const char *scheduler_name(enum scheduler kind)
{
	static const char *const name[NR_SCHEDULERS] = {[SCHEDULER_SLURM] = "slurm",
		[SCHEDULER_PBS] = "pbs",
		[SCHEDULER_OAR] = "oar",
		[SCHEDULER_LSF] = "lsf",
		[SCHEDULER_SGE] = "sge"};

	return kind < NR_SCHEDULERS ? name[kind] : NULL;
}

/* Ids become words of a command line and parts of paths: only what schedulers use in them is taken. */
static bool is_id(struct text t)
{
	if (!t.len || t.len >= sizeof(((struct job_name *)0)->id))
		return false;
	for (size_t i = 0; i < t.len; i++) {
		char c = t.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !is_digit(c) && (i == 0 || !memchr("._-[]", c, 5)))
			return false;
	}
	return true;
}

static bool name_set(struct job_name *ret, enum scheduler kind, struct text id)
{
	if (!is_id(id))
		return false;
	ret->kind = kind;
	memcpy(ret->id, id.p, id.len);
	ret->id[id.len] = '\0';
	return true;
}

bool job_name_parse(const char *text, struct job_name *ret)
{
	struct text id = text_of(text);
	enum scheduler kind = SCHEDULER_NONE;

	for (int k = SCHEDULER_NONE + 1; k < NR_SCHEDULERS; k++) {
		size_t n = strlen(scheduler_name(k));

		if (!text_starts(id, scheduler_name(k)) || id.p[n] != ':')
			continue;
		kind = k;
		id.p += n + 1;
		id.len -= n + 1;
		break;
	}
	if (kind == SCHEDULER_NONE && id.len && is_digit(*id.p) && !all_digits(id))
		kind = SCHEDULER_PBS; /* 7.head, 3[1].head: the others have numbers only */
	if (kind == SCHEDULER_PBS && (!id.len || !is_digit(*id.p) || memchr(id.p, '_', strcspn(id.p, "."))))
		return false; /* 7_3 is how SLURM shows a member of an array: it has a number of its own */
	if ((kind == SCHEDULER_OAR || kind == SCHEDULER_LSF || kind == SCHEDULER_SGE) && !all_digits(id))
		return false;
	if (kind == SCHEDULER_SLURM && id.len && is_digit(*id.p) && !all_digits(id))
		return false;
	return name_set(ret, kind, id);
}

bool job_name_is(const struct job_name *wanted, enum scheduler kind, const char *id, size_t len)
{
	size_t n = strlen(wanted->id);

	if (!n || (wanted->kind != SCHEDULER_NONE && wanted->kind != kind))
		return false;
	if (len < n || memcmp(id, wanted->id, n) != 0)
		return false;
	return len == n || (kind == SCHEDULER_PBS && id[n] == '.');
}

/* ---- control groups ---- */

static bool slurm_group(struct text before, struct text name, struct text after, struct job_group *ret)
{
	bool in_scope = text_ends(before, "slurmstepd.scope"), has_step = text_starts(after, "step_");
	struct text number = text_from(name, strlen("job_"));

	if (text_starts(name, "job_") && all_digits(number) &&
		(in_scope || has_step || text_starts(before, "uid_"))) {
		*ret = (struct job_group){.kind = SCHEDULER_SLURM, .id = number.p, .id_len = number.len};
		return true;
	}
	if (!in_scope || !has_step || !is_id(name))
		return false;
	*ret = (struct job_group){.kind = SCHEDULER_SLURM, .id = name.p, .id_len = name.len, .by_name = true};
	return true;
}

/* What follows the last of this character. */
static struct text after_last(struct text t, char c)
{
	const char *p = t.len ? memrchr(t.p, c, t.len) : NULL;

	return p ? text_from(t, (size_t)(p - t.p) + 1) : (struct text){"", 0};
}

/* jane_12 in OAR 2, oar-u1000-j12.slice in OAR 3. */
static bool oar_group(struct text before, struct text name, struct job_group *ret)
{
	struct text id = {"", 0};

	if (text_is(before, "oar"))
		id = after_last(name, '_');
	else if (text_starts(name, "oar-u") && text_ends(name, ".slice")) {
		name.len -= strlen(".slice");
		id = after_last(name, '-');
		if (!text_starts(id, "j"))
			return false;
		id = text_from(id, 1);
	}
	*ret = (struct job_group){.kind = SCHEDULER_OAR, .id = id.p, .id_len = id.len};
	return all_digits(id);
}

/* Below pbs_jobs.service/jobid, or TORQUE's own. */
static bool pbs_group(struct text before, struct text name, struct job_group *ret)
{
	if ((!text_is(before, "jobid") && !text_is(before, "torque")) || !is_id(name) || !is_digit(*name.p))
		return false;
	*ret = (struct job_group){.kind = SCHEDULER_PBS, .id = name.p, .id_len = name.len};
	return true;
}

bool job_group_find(const char *path, size_t len, struct job_group *ret)
{
	struct text rest = {path, len}, before = {"", 0}, name = {"", 0};

	for (bool last = false; !last;) {
		struct text after;

		last = rest.len == 0;
		after = text_cut(&rest, '/');
		if (name.len &&
			(slurm_group(before, name, after, ret) || oar_group(before, name, ret) ||
				pbs_group(before, name, ret))) {
			ret->end = (size_t)(name.p + name.len - path);
			return true;
		}
		before = name;
		name = after;
	}
	return false;
}

bool job_group_next(const char *text, size_t *at, struct job_group *ret)
{
	struct text rest = text_of(text + *at), group;

	while (cgroup_next(&rest, &group)) {
		*at = (size_t)(rest.p - text);
		if (job_group_find(group.p, group.len, ret))
			return true;
	}
	return false;
}

/* ---- variables ---- */

static const struct {
	const char *name;
	enum scheduler kind;
	const char *beside; /* counts only where this is set, too: the name is not its scheduler's alone */
} variable[] = {
	{"SLURM_JOB_ID", SCHEDULER_SLURM},
	{"SLURM_JOBID", SCHEDULER_SLURM},
	{"PBS_JOBID", SCHEDULER_PBS},
	{"OAR_JOB_ID", SCHEDULER_OAR},
	{"OAR_JOBID", SCHEDULER_OAR},
	{"LSB_JOBID", SCHEDULER_LSF},
	{"JOB_ID", SCHEDULER_SGE, .beside = "SGE_ROOT"},
};

const char *job_variable_name(unsigned nth, enum scheduler *ret_kind, const char **ret_beside)
{
	if (nth >= ARRAY_SIZE(variable))
		return NULL;
	*ret_kind = variable[nth].kind;
	*ret_beside = variable[nth].beside;
	return variable[nth].name;
}

/* The id that a variable gives, as in "SLURM_JOB_ID=7"; no text when it is none of those. */
static struct text id_of(struct text value, enum scheduler *ret_kind)
{
	struct text name = text_cut(&value, '=');

	for (size_t i = 0; i < ARRAY_SIZE(variable); i++)
		if (text_is(name, variable[i].name) && is_id(value)) {
			*ret_kind = variable[i].kind;
			return value;
		}
	return (struct text){"", 0};
}

bool job_environ_has(
	const char *text, size_t len, const struct job_name *wanted, struct job_name *ret, size_t *ret_rest)
{
	struct text rest = {text, len};

	while (rest.len > 0 && memchr(rest.p, '\0', rest.len)) {
		enum scheduler kind = SCHEDULER_NONE;
		struct text id = id_of(text_cut(&rest, '\0'), &kind);

		if (!id.len || !job_name_is(wanted, kind, id.p, id.len))
			continue;
		if (ret)
			name_set(ret, kind, id);
		return true;
	}
	*ret_rest = len - rest.len;
	return false;
}

static const struct {
	const char *name, *size;
} rank_variable[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMIX_RANK", NULL}, {"PMI_RANK", "PMI_SIZE"},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"}, {"PALS_RANKID", NULL},
	{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, /* the latter is not set in a job script, which is no task
						     of a step */
};

const char *job_rank_variable(unsigned nth, const char **ret_size)
{
	if (nth >= ARRAY_SIZE(rank_variable))
		return NULL;
	*ret_size = rank_variable[nth].size;
	return rank_variable[nth].name;
}

static void take_number(struct text value, char *to, size_t size)
{
	if (!all_digits(value) || value.len >= size)
		return;
	memcpy(to, value.p, value.len);
	to[value.len] = 0;
}

static void take_variable(struct job_part *part, struct text name, struct text value)
{
	if (!text_starts(name, "SLURM_") && !text_starts(name, "OMPI_") && !text_starts(name, "P") &&
		!text_starts(name, "MV2_") && !text_starts(name, "FLUX_"))
		return;
	part->in_slurm |= text_is(name, "SLURM_JOB_ID");
	if (text_is(name, "SLURM_STEP_ID"))
		take_number(value, part->step, sizeof(part->step));
	for (unsigned i = 0; i < ARRAY_SIZE(rank_variable); i++)
		if (text_is(name, rank_variable[i].name) && (!part->rank_from || i + 1 < part->rank_from)) {
			take_number(value, part->rank, sizeof(part->rank));
			part->rank_from = i + 1;
		}
}

void job_environ_part(const char *text, size_t len, struct job_part *part, size_t *ret_rest)
{
	struct text rest = {text, len};

	while (rest.len > 0 && memchr(rest.p, '\0', rest.len)) {
		struct text value = text_cut(&rest, '\0'), name = text_cut(&value, '=');

		take_variable(part, name, value);
	}
	*ret_rest = len - rest.len;
}

/* The script of a job has the number of a rank, too, but no step: it is none. */
void job_part_settle(struct job_part *part)
{
	if (part->step[0])
		return;
	if (part->rank_from == ARRAY_SIZE(rank_variable))
		part->rank[0] = 0;
	if (part->in_slurm)
		memcpy(part->step, "batch", sizeof("batch"));
}

/* ---- scontrol listpids ---- */

static struct text next_word(struct text *line)
{
	while (line->len > 0 && (*line->p == ' ' || *line->p == '\t' || *line->p == '\r')) {
		line->p++;
		line->len--;
	}
	return text_cut(line, ' ');
}

pid_t job_listpids_next(const char *text, size_t len, size_t *at, const char *id)
{
	struct text rest = {text + *at, len - *at};

	while (rest.len > 0) {
		struct text line = text_cut(&rest, '\n');
		struct text pid = next_word(&line), job = next_word(&line);
		const char *p = pid.p;
		int64_t v;

		*at = (size_t)(rest.p - text);
		/* Seven digits hold every PID, and no 64-bit number wraps into one. */
		if (all_digits(pid) && pid.len <= 7 && text_is(job, id) &&
			read_number(&p, pid.p + pid.len, &v) && v > 0 && v <= PID_LIMIT)
			return (pid_t)v;
	}
	return 0;
}

/* ---- processes ---- */

bool job_process_parse(const char *stat, size_t len, struct job_process *ret)
{
	const char *open = len ? memchr(stat, '(', len) : NULL, *close = len ? memrchr(stat, ')', len) : NULL;
	const char *p, *end = stat + len;
	int64_t parent, group, session;
	size_t n;

	if (!open || !close || close < open || end - close < 5)
		return false;
	n = MIN((size_t)(close - open - 1), sizeof(ret->name) - 1);
	memcpy(ret->name, open + 1, n);
	ret->name[n] = '\0';
	p = close + 4; /* ") S " */
	if (!read_number(&p, end, &parent) || p++ == end || !read_number(&p, end, &group) || p++ == end ||
		!read_number(&p, end, &session))
		return false;
	if (parent < 0 || parent > PID_LIMIT || session < 0 || session > PID_LIMIT)
		return false;
	ret->parent = (pid_t)parent;
	ret->session = (pid_t)session;
	return true;
}

static bool in_list(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

bool job_daemon_name(const char *name)
{
	static const char *const list[] = {"slurmstepd", "slurmd", "pbs_mom", "pbs_demux", "sshd",
		"sshd-session", "sshd-auth", "tacho", "signal-witness", NULL};

	return in_list(name, list);
}

/* The last part of a path. */
static struct text base_name(struct text path)
{
	const char *slash = path.len ? memrchr(path.p, '/', path.len) : NULL;

	return slash ? (struct text){slash + 1, (size_t)(path.p + path.len - slash - 1)} : path;
}

/* OAR runs a job below `perl - 12 OAREXEC` and below a script given with -e, which begins by setting OAR's
 * variables; both are in the job's own control group and only wait. */
static bool is_oar_wrapper(struct text words)
{
	struct text first = base_name(text_cut(&words, '\0')), second = text_cut(&words, '\0'),
		    third = text_cut(&words, '\0');

	if (!text_is(first, "perl"))
		return false;
	if (text_is(second, "-") && all_digits(third))
		return text_is(text_cut(&words, '\0'), "OAREXEC");
	return text_is(second, "-e") && memmem(third.p, third.len, "$ENV{OAR_STDOUT}", 16);
}

/* `srun --overlap tacho attach job`, or what `tacho job` starts recorders with: it waits for us, and we must
 * not wait for it. */
static bool starts_recorder(struct text words)
{
	bool recorder = false;

	while (words.len > 0) {
		struct text word = text_cut(&words, '\0');

		/* For ssh and its like it is all one word. */
		if (memmem(word.p, word.len, " job ", 5) && memmem(word.p, word.len, "--on-node=", 10))
			return true;
		if (recorder && (text_is(word, "attach") || text_is(word, "job")))
			return true;
		recorder = text_is(base_name(word), "tacho");
	}
	return false;
}

bool job_daemon_cmdline(const char *cmdline, size_t len)
{
	return is_oar_wrapper((struct text){cmdline, len}) || starts_recorder((struct text){cmdline, len});
}

bool job_launcher_name(const char *name)
{
	static const char *const list[] = {"orterun", "prterun", "prun", "orted", "prted", "prte",
		"hydra_pmi_proxy", "srun", "aprun", "jsrun", NULL};
	struct text t = text_of(name);

	return text_starts(t, "mpirun") || text_starts(t, "mpiexec") || in_list(name, list);
}

bool job_doorkeeper_name(const char *name)
{
	static const char *const list[] = {"init", "systemd", "login", "su", "sudo", "cron", "crond", "atd",
		"screen", "SCREEN", "tmux: server", "xterm", "konsole", "gnome-terminal-", "containerd-shim",
		NULL};

	return job_daemon_name(name) || in_list(name, list);
}
