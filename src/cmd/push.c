/* `tacho push`: its rows, for help, manual and completions. It needs libcurl, which the recorder must not
 * load: tacho-push has the same rows with a function of its own (exec/push.c). */
#include "cmd/push.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/reading.h"

const char *const push_sink_names[] = {"mlflow", "prometheus", "influx", "otlp", "tensorboard", NULL};

static const char *const per_names[] = {"node", "instance", "group", "process", NULL};
static const char *const as_names[] = {"tacho", "process", "system", NULL};

#define INTO(member) offsetof(struct push_args, member)

/* clang-format off */
static const struct opt push_opts[] = {
	{'t', "to", "SINK[=URL]…", OPT_LIST, INTO(to), .not_from_env = true,
		.help = "where to: mlflow, prometheus, influx, otlp, tensorboard; may be repeated",
		.detail = "--sinks lists them with their addresses. Without a URL it is the one of --server, else that of the variables "
			"which the sink's own clients use. Secrets are taken from these variables and from files, never from here: a URL "
			"with a password is refused, since others can see command lines."},
	{0, "server", "SINK=URL…", OPT_LIST, INTO(server),
		.help = "the usual address of a sink, for the file of settings",
		.detail = "In ~/.config/tacho/config: server = influx=http://metrics:8086?db=jobs"},
	{0, "follow", NULL, OPT_FLAG, INTO(follow), .not_from_env = true,
		.help = "send while the run goes on, until it has ended and all is sent"},
	{'m', "metric", "NAME…", OPT_LIST, INTO(metric), .not_from_env = true,
		.help = "send these metrics, or groups of them, instead of the usual ones",
		.detail = "Names as 'tacho metrics' has them, or their beginning. By default some thirty that people look at: cores, memory, "
			"I/O, network, GPUs, energy of the job and the node, and the job's own numbers. --dry-run shows them."},
	{'e', "every", "TIME", OPT_INTERVAL, INTO(every_ns), .preset = "10s",
		.help = "send one value for each span of this length; 0: each sample",
		.detail = "Levels and rates become their mean, of memory, CPUs and power also their greatest (NAME.max); "
			"high-water marks their greatest, counters their value at the end. Times are those of the last sample in each span."},
	{0, "samples", "N", OPT_COUNT, INTO(samples), .min = 1, .max = 1e6,
		.help = "one value for each N samples, instead of --every"},
	{'p', "per", "WHAT", OPT_CHOICE, INTO(per), .choices = per_names, .preset = "node", .not_from_env = true,
		.help = "send values of the node, of each instance, group or process",
		.detail = "By default of the node, and of each GPU."},
	{'l', "label", "KEY=VALUE…", OPT_LIST, INTO(label), .also = "tag",
		.help = "a label or tag on everything that is sent"},
	{0, "from", "TIME", OPT_TEXT, INTO(from), .not_from_env = true,
		.help = "begin this long after the start of the run: 90, 1m30s, 25%"},
	{0, "until", "TIME", OPT_TEXT, INTO(until), .not_from_env = true,
		.help = "end this long after the start of the run"},
	{'n', "dry-run", NULL, OPT_FLAG, INTO(dry_run), .not_from_env = true,
		.help = "print what would be sent, and send nothing"},
	{0, "status", NULL, OPT_FLAG, INTO(status), .not_from_env = true,
		.help = "show what was sent where, what waits, and why"},
	{0, "timeout", "TIME", OPT_INTERVAL, INTO(timeout_ns), .preset = "30s", .min = 0.1, .max = 3600,
		.help = "how long one request may take"},
	{0, "retries", "N", OPT_COUNT, INTO(retries), .preset = "5", .max = 1e6,
		.help = "how often in a row sending may fail, if the run has ended",
		.detail = "While a run goes on, and --linger after it, there is no limit: what was not sent waits in the recording."},
	{0, "linger", "TIME", OPT_INTERVAL, INTO(linger_ns), .preset = "1h", .max = 604800,
		.help = "with --follow: how long to try after the end of the run"},
	{0, "sinks", NULL, OPT_FLAG, INTO(sinks), .not_from_env = true,
		.help = "list the sinks, and where their addresses come from"},
	{0, "run-id", "ID", OPT_TEXT, INTO(run_id), .not_from_env = true,
		.help = "for mlflow: send to this run"},
	{0, "experiment", "NAME", OPT_TEXT, INTO(experiment),
		.help = "for mlflow: the experiment in which a new run is made"},
	{0, "run-name", "NAME", OPT_TEXT, INTO(run_name), .not_from_env = true,
		.help = "for mlflow: the name of a new run"},
	{0, "as", "NAMES", OPT_CHOICE, INTO(as), .choices = as_names, .preset = "tacho",
		.help = "for mlflow: which names the metrics get: tacho, process or system",
		.detail = "process: the names and units of ProcessMetricsMonitor (process/cpu_usage_percentage …). system: those of MLflow's own "
			"system metrics, which its page shows in a tab of their own."},
	{0, "prefix", "TEXT", OPT_TEXT, INTO(prefix),
		.help = "before each name"},
	{0, "children", NULL, OPT_FLAG, INTO(children), .preset = "yes", .not_from_env = true,
		.help = "mlflow --as process: of the first process alone"},
	{0, "total-memory", "SIZE", OPT_TEXT, INTO(total_memory),
		.help = "for mlflow --as process: how much memory is 100 %: 16GiB"},
	{0, "total-cpus", "N", OPT_DECIMAL, INTO(total_cpus), .min = 0, .max = 1e6,
		.help = "for mlflow --as process: how many CPUs are 100 %"},
	{0, "artifacts", NULL, OPT_FLAG, INTO(artifacts), .preset = "yes",
		.help = "for mlflow: do not send the report and the recording at the end"},
	{0, "semconv", NULL, OPT_FLAG, INTO(semconv),
		.help = "for otlp: use the names of OpenTelemetry's conventions"},
	{0, "listen", "[ADDRESS:]PORT", OPT_TEXT, INTO(listen), .not_from_env = true,
		.help = "for prometheus: serve the last values at /metrics, to be fetched",
		.detail = "On loopback unless an address is given. A client needs the token of --token-file."},
	{0, "token-file", "FILE", OPT_TEXT, INTO(token_file),
		.help = "with --listen: the file of the token; it is made if it does not exist"},
	{0, "textfile", "FILE", OPT_TEXT, INTO(textfile), .not_from_env = true,
		.help = "for prometheus: write the last values to a file that node_exporter reads"},
	{0, "log", "FILE", OPT_TEXT, INTO(log), .not_from_env = true, .hidden = true,
		.help = "where messages go"},
};
/* clang-format on */

static int become_push(const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return external_become("tacho-push");
}

/* clang-format off */
const struct cmd cmd_push = {
	.name = "push",
	.synopsis = "[OPTION…] --to SINK[=URL] [FILE|DIRECTORY…]",
	.help = "send a run to MLflow, Prometheus, InfluxDB, OpenTelemetry, TensorBoard",
	.detail = "Sends the values of a run to a server, afterwards or, with --follow, while it goes on. It reads the recording: a server that is "
		"slow, down or wrong neither delays a sample nor loses one. What was sent is remembered beside the recording "
		"(NAME.push-SINK; in the cache directory where that cannot be written), so that a push that was stopped goes on where it was, "
		"and a second one sends nothing twice.\n\n"
		"tacho run --push SINK does the same beside the job, and goes on after it until everything is sent.\n\n"
		"Values are those of 'tacho export'. What is not known is not sent, and never zero. Several recordings, or the directory of a run, are one run "
		"of several nodes.\n\n"
		"Exit status: 0 when all was sent, 1 when something was not, 2 when there is no recording or an option is wrong.",
	.examples = "$ tacho push --to mlflow job.tacho\n"
		"    As a new run of MLflow, at MLFLOW_TRACKING_URI.\n"
		"$ tacho run --push mlflow -- python train.py\n"
		"    While it trains: to the run that train.py starts, or a new one.\n"
		"$ tacho push --follow --to influx=http://localhost:8086?db=jobs job.tacho\n"
		"    To InfluxDB, or VictoriaMetrics, until the run has ended.\n"
		"$ tacho push --dry-run --to prometheus job.tacho | head\n"
		"    What would be sent.\n"
		"$ tacho push --status job.tacho\n"
		"    What was sent where, and what waits.\n",
	.opt = push_opts,
	.nr_opts = ARRAY_SIZE(push_opts),
	.group = &reading,
	.args_size = sizeof(struct push_args),
	.operands = "file",
	.run = become_push,
};
/* clang-format on */
