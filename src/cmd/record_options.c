/* The rows that run and attach share, and the name of the recording.
 *
 * The template of --output is filled once, before the job starts, from facts that cannot change any more; it
 * never asks the shell. Every placeholder may carry hostile text (a program can have any name), so that what
 * it stands for is reduced to one harmless part of a path; the template itself is the user's own and goes
 * where it says. Rejected: strftime formats in the template (a '%' in a name would be misread).
 *
 * Two recordings that start in the same second get the same name from most templates. The second is numbered
 * ("-2"), and the file system decides which one is the second (store/append.c): a job must never be refused
 * because of a name that its user did not choose. Only a name that was given literally is refused. */
#include "cmd/record_options.h"

#include "base/redact.h"
#include "base/str.h"
#include "target/job_text.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PRESET_NAME "{name}-{datetime}.tacho"
#define PRESET_OF_RANK "{name}-{datetime}-rank{rank}.tacho"
#define ENDING ".tacho"

#define INTO(member) offsetof(struct record_options, member)

static const char *const no_yes[] = {"no", "yes", NULL};

/* clang-format off */
const struct opt record_opts[NR_RECORD_OPTS] = {
	{'i', "interval", "TIME", OPT_INTERVAL, INTO(interval_ns), .preset = "1s", .min = 0.001, .max = 86400, .also = "sampling-freq",
		.help = "time between two samples: 0.5, 500ms, 2s, 10Hz",
		.detail = "A number is seconds; the units are ns, us, ms, s, m, h, d, and Hz for samples a second. "
			"From 1ms to 24h. Whatever the interval, there is a sample right after the start and one "
			"at the end."},
	{'o', "output", "TEMPLATE", OPT_TEXT, INTO(output), .preset = PRESET_NAME,
		.help = "the recording: a file or a directory, with placeholders",
		.detail = "The placeholders are {name} (of --name or of the command), {datetime} "
			"(YYYYMMDD-HHMMSS, local time), {host}, {jobid} (of the batch system, else the "
			"process id), {pid} and {rank} (of MPI or the batch system, else 0); {{ and }} "
			"are plain braces. If TEMPLATE ends in / or is a directory, the recording gets "
			"the default name there; in an MPI job with several ranks the default name ends "
			"in -rankN. Missing directories are created. If the file exists already, a name "
			"with placeholders or in a directory gets a number (-2, -3 …, before the ending "
			".tacho); a literal name is refused, unless --force is given. All ranks of an MPI job may "
			"be given one literal name: -rankN is added to it where it exists already."},
	{'f', "force", NULL, OPT_FLAG, INTO(force), .not_from_env = true,
		.help = "overwrite an existing recording",
		.detail = "Replaces the file that --output names. Where the name has placeholders, a "
			"recording that is still being written is not replaced. The default name and "
			"names in a directory contain the time, and get a number instead."},
	{'m', "metrics", "METRIC,…", OPT_LIST, INTO(metrics),
		.help = "metrics to add or to leave out: +anon_huge,-pss",
		.detail = "Names of metrics, of collectors or of groups, with commas between them; may be "
			"given several times. A plain name or one with + adds to what is recorded by "
			"default, one with - removes. `tacho metrics` lists them all. Sources that are "
			"not needed are not opened."},
	{'e', "event", "EVENT,…", OPT_LIST, INTO(events),
		.help = "count events of the processor or the kernel for the job",
		.detail = "Events are counted for the job and all its descendants: generic names (cycles, LLC-loads), "
			"raw codes (r01c0), those of a PMU of this machine (cpu/event=0xc7,umask=0x1/), tracepoints "
			"(sched:sched_switch), and names of the processor's manual where the library libpfm4 is found. "
			":u or :k counts in user or kernel mode alone; NAME=EVENT gives the metric its name, perf.NAME. "
			"`tacho metrics --events` lists what there is. Counters slow down each fork of the job a little; "
			"-m perf, flops, l2, l3 and membw choose whole groups of them."},
	{0, "children", "yes|no", OPT_CHOICE, INTO(children), no_yes, .preset = "yes",
		.help = "record the descendants too",
		.detail = "With no, only the process itself is recorded, with all its threads."},
	{0, "duration", "TIME", OPT_INTERVAL, INTO(duration_ns), .min = 0.001, .max = 3650.0 * 86400,
		.help = "stop recording after this time; the job goes on"},
	{0, "until-file", "FILE", OPT_TEXT, INTO(until_file),
		.help = "stop recording when FILE contains FINISHED",
		.detail = "FILE need not exist yet. When attached to a batch job, tacho watches "
			".ipc-JOBID in the working directory by default: a job script with processes that "
			"never end by themselves can end with echo FINISHED >.ipc-$SLURM_JOB_ID."},
	{0, "max-cpus", "NUMBER", OPT_TEXT, INTO(max_cpus),
		.help = "CPUs that the job may use; default: its limit",
		.detail = "Percentages are relative to this number. Without it, the lowest of CPU "
			"affinity, control groups and the batch system's allocation is taken."},
	{0, "max-memory", "SIZE", OPT_TEXT, INTO(max_memory),
		.help = "memory that the job may use: 512M, 1.5G; default: its limit"},
	{'n', "name", "TEXT", OPT_TEXT, INTO(name),
		.help = "name of the run; default: the command's name"},
	{'t', "tag", "KEY=VALUE", OPT_LIST, INTO(tag),
		.help = "label stored in the recording; may be repeated",
		.detail = "The key has letters, digits, '_', '-' and '.'; the value is any text."},
	{0, "message", "TEXT", OPT_TEXT, INTO(message),
		.help = "a note stored in the recording and shown with it"},
	{0, "watch", "FILE", OPT_LIST, INTO(watch),
		.help = "read this log of the job as it grows; needs --phase or --mark",
		.detail = "FILE need not exist yet, and may be replaced or cut off. What is in it at the "
			"start is not read. The expressions of --phase and --mark are applied to every "
			"line of every FILE. May be repeated."},
	{0, "phase", "REGEX", OPT_LIST, INTO(phase),
		.help = "a line of the --watch FILE that matches begins a phase",
		.detail = "The phase is called as what matches, or as the group (?<name>…), and lasts to the "
			"next match of this expression, or to one with a group (?<end>…). Other groups with "
			"a name are data; those that are numbers become metrics app.NAME. POSIX extended; "
			"\\d is a digit. May be repeated."},
	{0, "mark", "REGEX", OPT_LIST, INTO(mark),
		.help = "a line of the --watch FILE that matches is a mark",
		.detail = "Groups with a name are its data: --mark 'loss: (?<loss>[0-9.]+)' records app.loss. "
			"May be repeated."},
	{0, "redact", "REGEX", OPT_LIST, INTO(redact),
		.help = "replace what it matches in command lines by ***; none: nothing",
		.detail = "Before a command line is written, known forms of secrets are replaced by ***: "
			"values of names that end in password, passphrase, secret, token, credentials, "
			"api-key and the like, as options, variables, headers or JSON, passwords in URLs, "
			"keys of well-known services, and options of some programs (mysql -pSECRET, curl "
			"-u NAME:SECRET). What REGEX (POSIX extended) matches is replaced as well, or "
			"only the part in its first parentheses; it is matched against the arguments "
			"joined by spaces. May be repeated. With none, known forms are not replaced; "
			"other expressions still are. Names, tags and messages from options are stored "
			"unchanged, and match: compares the original command line."},
	{0, "run-log", "FILE", OPT_TEXT, INTO(run_log),
		.help = "append a line of JSON for each phase and event, as they come",
		.detail = "For tail -f and jq, while the job runs: the job's phases when they end and its "
			"marks, the start with hardware and limits, processes killed because memory ran out, "
			"throttling, stops, missed samples, the end with exit status and resources. The name may "
			"have the placeholders of --output. tacho log shows the same of any recording."},
	{0, "push", "SINK[=URL]", OPT_LIST, INTO(push),
		.help = "send it to MLflow, Prometheus, InfluxDB … while it runs",
		.detail = "Starts 'tacho push --follow --to SINK' beside the job, which goes on after its end until "
			"everything is sent; a server that is slow or down delays nothing. Options of tacho push may follow "
			"in the same word: --push 'mlflow --experiment demo --every 30s'. What it has to say is in "
			"NAME.push.log. May be repeated."},
	{0, "serve", NULL, OPT_FLAG, INTO(serve), .not_from_env = true,
		.help = "show it in a browser while it runs",
		.detail = "Starts 'tacho serve' beside the job and prints where. It reads the recording and delays nothing. It ends when the job has "
			"ended and the last viewer has left."},
	{0, "serve-with", "OPTIONS", OPT_TEXT, INTO(serve_with), .not_from_env = true,
		.help = "--serve with options of tacho serve: '--port 8080'"},
	{0, "flush", "TIME", OPT_INTERVAL, INTO(flush_ns), .preset = "1s", .min = 0.001, .max = 86400,
		.help = "write what was recorded at least this often",
		.detail = "A crash of the machine or a SIGKILL of the recorder loses at most this much "
			"time. SIGTERM, SIGINT and SIGHUP write at once."},
	{0, "budget", "PERCENT", OPT_DECIMAL, INTO(budget_percent), .preset = "1", .min = 0.01, .max = 100,
		.help = "what recording may cost, in percent of one core",
		.detail = "Above it the costly metrics (proportional and unique memory, for instance) are read less "
			"often, and the recording says so."},
	{0, "helpers", "LIST", OPT_TEXT, INTO(helpers), .preset = "all",
		.help = "kernel features to use: all, none, connector,taskstats,cgroup",
		.detail = "Where the kernel and the user's rights allow it, the proc connector reports "
			"every fork and exit, taskstats gives the totals of every process that ended, and "
			"a control group made by tacho has exact totals of the job. None is required; "
			"without them less is known about very short processes."},
	{'q', "quiet", NULL, OPT_FLAG, INTO(quiet),
		.help = "print nothing but errors"},
	{'v', "verbose", NULL, OPT_FLAG, INTO(verbose),
		.help = "say at the end what is recorded, what is not and why",
		.detail = "A line for each source, before the summary; with --json its `unavailable` has the reasons."},
	{0, "summary", NULL, OPT_FLAG, INTO(summary), .preset = "yes",
		.help = "no summary at the end"},
	{0, "json", NULL, OPT_FLAG, INTO(json),
		.help = "the summary on standard error as JSON"},
};
/* clang-format on */

/* Next word of a list with commas: true, and *word of *len bytes. Empty words are passed over. */
static bool list_word(const char **list, const char **word, size_t *len)
{
	const char *p = *list + strspn(*list, ", \t");
	const char *end = p + strcspn(p, ",");

	*list = end;
	*word = p;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*len = (size_t)(end - p);
	return *len > 0;
}

int record_helpers(const char *text, unsigned *ret_mask, struct buf *err)
{
	static const struct {
		const char *name;
		unsigned mask;
	} known[] = {
		{"all", HELPERS_ALL},
		{"none", 0},
		{"connector", HELPER_CONNECTOR},
		{"taskstats", HELPER_TASKSTATS},
		{"cgroup", HELPER_CGROUP},
	};
	const char *list = text, *word;
	unsigned mask = 0;
	size_t len, i;

	while (list_word(&list, &word, &len)) {
		for (i = 0; i < ARRAY_SIZE(known); i++)
			if (strlen(known[i].name) == len && !memcmp(known[i].name, word, len))
				break;
		if (i == ARRAY_SIZE(known)) {
			buf_adds(err,
				"--helpers takes all, none, or a list of connector, taskstats and cgroup, "
				"not '");
			escape_bytes(err, word, len);
			buf_adds(err, "'");
			return -EINVAL;
		}
		mask |= known[i].mask;
	}
	*ret_mask = mask;
	return 0;
}

static bool tag_valid(const char *tag)
{
	size_t key = strspn(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");

	return key && tag[key] == '=';
}

int record_redact(const struct record_options *o, struct redact **ret, struct buf *err)
{
	return redact_new(ret, o->redact.item, o->redact.nr, err);
}

int record_options_check(const struct record_options *o, struct buf *err)
{
	unsigned mask;
	double amount;

	for (unsigned i = 0; i < o->tag.nr; i++) {
		if (tag_valid(o->tag.item[i]))
			continue;
		buf_adds(err, "--tag takes KEY=VALUE, the key of letters, digits, '_', '-' and '.', not '");
		escape_bytes(err, o->tag.item[i], strlen(o->tag.item[i]));
		buf_adds(err, "'");
		return -EINVAL;
	}
	if (o->max_cpus && (!parse_decimal(o->max_cpus, &amount) || !(amount > 0))) {
		buf_adds(err, "--max-cpus takes a number of CPUs, not '");
		escape_bytes(err, o->max_cpus, strlen(o->max_cpus));
		buf_adds(err, "'");
		return -EINVAL;
	}
	if (o->max_memory && (parse_bytes(o->max_memory, &amount) < 0 || !(amount > 0))) {
		buf_adds(err, "--max-memory takes a size as 512M or 1.5G, not '");
		escape_bytes(err, o->max_memory, strlen(o->max_memory));
		buf_adds(err, "'");
		return -EINVAL;
	}
	return record_helpers(o->helpers, &mask, err);
}

/* ---- the name of the recording ---- */

/* Longest text of one placeholder: several must fit into the 255 bytes that file systems grant a name. */
#define PART_MAX 100

static void add_safe(struct buf *out, const char *text, bool first_in_part)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	size_t room = PART_MAX;

	while (p < end) {
		size_t n = utf8_length(p, end);
		bool hidden = !shown_length(p, end);
		bool leading =
			first_in_part && (*p == '.' || *p == '-'); /* hidden, "..", or looks like an option */

		if (n > room)
			return;
		if (!n || *p == '/' || hidden || leading)
			buf_addch(out, '_');
		else
			buf_add(out, p, n);
		room -= n ? n : 1;
		p += n ? n : 1;
		first_in_part = false;
	}
}

static const char *first_set(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && *value)
			return value;
	}
	return NULL;
}

/* As basename(3) of POSIX, without changing the text: "/opt/bin/gcc//" is "gcc", "/" is "/". */
static const char *text_name(const struct output_names *n, char *memory, size_t size)
{
	const char *command = n->command && *n->command ? n->command : "tacho";
	size_t len = strlen(command);
	const char *slash;

	if (n->name && *n->name)
		return n->name;
	while (len > 1 && command[len - 1] == '/')
		len--;
	slash = memrchr(command, '/', len - 1);
	if (slash) {
		len -= (size_t)(slash + 1 - command);
		command = slash + 1;
	}
	snprintf(memory, size, "%.*s", (int)MIN(len, size - 1), command);
	return memory;
}

static const char *text_datetime(const struct output_names *n, char *memory, size_t size)
{
	time_t t = (time_t)(n->wall_ns / NSEC_PER_SEC);
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(memory, size, "%Y%m%d-%H%M%S", &tm))
		snprintf(memory, size, "%lld", (long long)t);
	return memory;
}

static const char *text_host(const struct output_names *n, char *memory, size_t size)
{
	if (n->host && *n->host)
		return n->host;
	if (gethostname(memory, size) < 0 || !*memory)
		return "localhost";
	memory[size - 1] = 0;
	return memory;
}

static const char *text_pid(const struct output_names *n, char *memory, size_t size)
{
	snprintf(memory, size, "%d", (int)(n->pid ? n->pid : getpid()));
	return memory;
}

static const char *text_jobid(const struct output_names *n, char *memory, size_t size)
{
	static const char *const variables[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "OAR_JOB_ID",
		"OAR_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID", NULL};
	const char *value = first_set(variables);

	return value ? value : text_pid(n, memory, size);
}

/* The last of the variables is SLURM's, which a job script has, too: there it is 0, and there is no size. */
const char *rank_of_several(void)
{
	const char *name, *size_name;

	for (unsigned i = 0; (name = job_rank_variable(i, &size_name)); i++) {
		const char *rank = getenv(name), *size = size_name ? getenv(size_name) : NULL;
		bool slurm = str_starts(name, "SLURM_");

		if (!rank || !*rank)
			continue;
		if (slurm ? !strcmp(rank, "0") && (!size || !strcmp(size, "1")) : size && !strcmp(size, "1"))
			return NULL;
		return rank;
	}
	return NULL;
}

static const char *text_rank(const struct output_names *n, char *memory, size_t size)
{
	const char *value = rank_of_several();

	(void)n;
	(void)memory;
	(void)size;
	return value ? value : "0";
}

static const struct placeholder {
	const char *name;
	const char *(*text)(const struct output_names *n, char *memory, size_t size);
} placeholders[] = {
	{"name", text_name},
	{"datetime", text_datetime},
	{"host", text_host},
	{"jobid", text_jobid},
	{"pid", text_pid},
	{"rank", text_rank},
};

static int unknown_placeholder(const char *word, size_t len, struct buf *err)
{
	buf_adds(err, "--output has no placeholder '{");
	escape_bytes(err, word, len);
	buf_adds(err, "}'; there are");
	for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
		buf_addf(err, " {%s}", placeholders[i].name);
	return -EINVAL;
}

static int add_placeholder(
	const char *word, size_t len, const struct output_names *names, struct buf *out, struct buf *err)
{
	char memory[256];

	for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++) {
		if (strlen(placeholders[i].name) != len || memcmp(placeholders[i].name, word, len))
			continue;
		add_safe(out, placeholders[i].text(names, memory, sizeof(memory)),
			!out->len || out->data[out->len - 1] == '/');
		return 0;
	}
	return unknown_placeholder(word, len, err);
}

/* Returns whether there was a placeholder in it. */
static int expand(const char *template, const struct output_names *names, struct buf *out, struct buf *err)
{
	int filled = 0;

	for (const char *p = template; *p; p++) {
		const char *end;
		int r;

		if ((*p == '{' || *p == '}') && p[1] == *p) {
			buf_addch(out, *p++);
			continue;
		}
		if (*p != '{') {
			buf_addch(out, *p);
			continue;
		}
		end = strchr(p, '}');
		if (!end) {
			buf_addf(err, "--output has a '{' without its '}'; write '{{' for a brace itself");
			return -EINVAL;
		}
		r = add_placeholder(p + 1, (size_t)(end - p - 1), names, out, err);
		if (r < 0)
			return r;
		filled = 1;
		p = end;
	}
	return filled;
}

static int expand_preset(const struct output_names *names, struct buf *out, struct buf *err)
{
	int r = expand(rank_of_several() ? PRESET_OF_RANK : PRESET_NAME, names, out, err);

	return r < 0 ? r : out->err ? out->err : OUTPUT_MADE;
}

int output_path(const char *template, const struct output_names *names, struct buf *out, struct buf *err)
{
	struct stat st;
	int r;

	if (!*template) {
		buf_adds(err, "--output takes the name of a file or directory, not an empty text");
		return -EINVAL;
	}
	if (!strcmp(template, PRESET_NAME))
		return expand_preset(names, out, err);
	r = expand(template, names, out, err);
	if (r < 0)
		return r;
	if (out->err)
		return out->err;
	if (out->len && out->data[out->len - 1] != '/') {
		if (stat((const char *)out->data, &st) < 0 || !S_ISDIR(st.st_mode))
			return r ? OUTPUT_FILLED : OUTPUT_LITERAL;
		buf_addch(out, '/');
	}
	return expand_preset(names, out, err);
}

bool output_add_rank(struct buf *out)
{
	const char *rank = rank_of_several();
	size_t end = strlen(ENDING);
	bool ends = out->len > end && !memcmp(out->data + out->len - end, ENDING, end);

	if (!rank)
		return false;
	if (ends)
		out->len -= end;
	buf_adds(out, "-rank");
	add_safe(out, rank, false);
	buf_adds(out, ends ? ENDING : "");
	return !out->err;
}
