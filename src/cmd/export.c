/* `tacho export`: its rows, for help, manual and completions. Some formats need libraries that the recorder
 * must not load: tacho-export has the same rows with a function of its own (exec/export.c).
 *
 * --to is the format, as people say it, so that the end of the time range is --until here; a --to that is a
 * time (`--to 20m`, as other commands have it) is taken as one, since no format begins with a digit. */
#include "cmd/export.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/reading.h"

#define INTO(field) offsetof(struct export_args, field)

/* As enum tables_per. */
static const char *const per_names[] = {"instance", "process", "group", "node", NULL};

/* clang-format off */
static const struct opt export_opts[] = {
	{'t', "to", "FORMAT…", OPT_LIST, INTO(to), .not_from_env = true,
		.help = "as what: csv, json, parquet …; with commas for several",
		.detail = "--formats lists them. All formats of one command are written while the recording is read once. "
			"Without --to the ending of --output chooses, else it is csv."},
	{'f', "format", "FORMAT…", OPT_LIST, INTO(to), .not_from_env = true,
		.help = "the same as --to, as other commands have it"},
	{'o', "output", "PATH", OPT_TEXT, INTO(output), .not_from_env = true,
		.help = "where to: a file, a directory, or - for stdout",
		.detail = "By default the files stand in the directory job-export beside job.tacho, and a format that is one file "
			"as job.FORMAT beside it. What is one file takes a name; what is several takes a directory, which "
			"is made when it is not there. Formats that can be streamed take - when one table is asked for "
			"(--domain), and those that are one file in any case."},
	{'d', "domain", "NAME…", OPT_LIST, INTO(domain), .not_from_env = true,
		.help = "only these tables: process, cpu, gpu, events …",
		.detail = "A table for each domain that was recorded, and processes, events, metrics (what each column is), meta "
			"and summary."},
	{'m', "metric", "NAME…", OPT_LIST, INTO(metric), .not_from_env = true,
		.help = "only these metrics, or groups of them",
		.detail = "Names as 'tacho metrics' has them, or their beginning: 'proc.mem' is all of proc.mem.*."},
	{0, "raw", NULL, OPT_FLAG, INTO(raw), .not_from_env = true,
		.help = "the stored integers, without units and rates",
		.detail = "Each column says what one of it is worth (\"0.01 s\", \"4096 bytes\"). By default values have the units "
			"people expect, and counters have their rate beside them."},
	{'p', "per", "WHAT", OPT_CHOICE, INTO(per), .choices = per_names, .preset = "instance", .not_from_env = true,
		.help = "a row for each instance, process, group or node",
		.detail = "process: only what is known of each process. group: processes are folded to the groups they are in. node: all "
			"instances of a domain become one row for each tick, folded as each metric says."},
	{0, "every", "TIME", OPT_INTERVAL, INTO(every_ns), .not_from_env = true,
		.help = "one row for each span of this time: 10s, 1m",
		.detail = "Levels become their mean, high-water marks their maximum, counters their value at the end. "
			"By default a row is a tick."},
	{0, "from", "TIME", OPT_TEXT, INTO(from), .not_from_env = true,
		.help = "begin this long after the start of the run: 90, 1m30s, 25%",
		.detail = "Seconds, a time with units, or a share of the whole."},
	{0, "until", "TIME", OPT_TEXT, INTO(until), .not_from_env = true,
		.help = "end this long after the start of the run",
		.detail = "Also `--to TIME`, as other commands have it."},
	{0, "phase", "NAME", OPT_TEXT, INTO(phase), .not_from_env = true,
		.help = "only while this phase of the job lasted",
		.detail = "By its name as the summary has it; NAME#3 is the third of its repetitions."},
	{0, "long", NULL, OPT_FLAG, INTO(is_long), .not_from_env = true,
		.help = "csv: a row for each value (tidy form)",
		.detail = "The keys, then metric, value and unit. What is not known has no row."},
	{0, "wide", NULL, OPT_FLAG, INTO(wide), .not_from_env = true,
		.help = "csv: a row for each tick, instances side by side"},
	{0, "compression", "NAME", OPT_TEXT, INTO(compression),
		.help = "by zstd, zlib or none, where the format has a choice",
		.detail = "By default each format takes what its readers read best."},
	{0, "safe-cells", NULL, OPT_FLAG, INTO(safe_cells), .preset = "yes",
		.help = "in csv and xlsx, texts that begin as formulas are not changed",
		.detail = "Spreadsheets take a cell that begins with = + - @, a tab or an end of line for a formula, and the "
			"user of a job chooses its names. Such a text gets an apostrophe before it, and so does one that has apostrophes "
			"before such a character: a program that reads the file removes one apostrophe to get the text. Numbers and "
			"all other formats are never changed. --no-safe-cells writes texts as they are."},
	{0, "force", NULL, OPT_FLAG, INTO(force), .not_from_env = true,
		.help = "replace existing files"},
	{0, "formats", NULL, OPT_FLAG, INTO(formats), .not_from_env = true,
		.help = "list the formats, and what is missing for some"},
};
/* clang-format on */

static int become_export(const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return external_become("tacho-export");
}

/* clang-format off */
const struct cmd cmd_export = {
	.name = "export",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "take the data elsewhere: CSV, JSON, Parquet, Arrow, HDF5, SQLite …",
	.detail = "Writes a run as tables: one for each domain (node, cpu, process, gpu …) with a row for each instance at each "
		"tick and a column for each metric, and tables of the processes, the events, the columns and what the "
		"recording says of itself. The path of what was written goes to stdout, one line each.\n\n"
		"Without an operand it is the newest recording in this directory. Several files, or a directory of recordings, "
		"are one run with several nodes: the same tables, in which the column host says of which node a row is. A recording that is still "
		"being written is exported up to now, a damaged one as far as it can be read. Memory does not grow with the "
		"length of a recording.\n\n"
		"Times are UTC with nanoseconds. Counts and bytes are exact 64-bit integers. What is not known is missing, never "
		"zero. Texts are UTF-8; other bytes are written as \\xNN, the same in every format, and a backslash before an "
		"x as \\\\x.\n\n"
		"Files are for their owner alone (mode 0600), as recordings are. They have their name when all of them are whole: "
		"a failure half-way leaves nothing behind. Nothing is replaced without --force. Exit status: 0 when all was "
		"written, 1 on trouble, 2 when there is no recording, a file exists already or an option is wrong.",
	.examples = "$ tacho export job.tacho\n"
		"    CSV files in job-export/, one for each domain.\n"
		"$ tacho export --to parquet -o tables/ runs/4711/\n"
		"    A run on several nodes, as Parquet.\n"
		"$ tacho export --to csv -d process -m proc.mem -o - job.tacho\n"
		"    Memory of every process at every tick, on stdout.\n"
		"$ tacho export -o job.sqlite job.tacho\n"
		"    A database to ask questions of.\n"
		"$ tacho export --to csv,parquet --every 10s --per node -o out/ job.tacho\n"
		"    Two formats, a row for every ten seconds of each node.\n"
		"$ tacho export --formats\n"
		"    Which formats there are.\n",
	.opt = export_opts,
	.nr_opts = ARRAY_SIZE(export_opts),
	.group = &reading,
	.args_size = sizeof(struct export_args),
	.operands = "file",
	.run = become_export,
};
/* clang-format on */
