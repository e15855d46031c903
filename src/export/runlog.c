/* The run log of a run (query/runlog.h): the lines that --run-log writes while a job runs. They are no table:
 * the recordings are read once more for them. */
#include "export/exporter.h"
#include "text/runlog.h"

#include <stdlib.h>

static int runlog_export_open(const struct export_job *job, void **ret, struct buf *reterr)
{
	(void)reterr;
	*ret = (void *)job;
	return 0;
}

static int runlog_export_add(void *e, const struct data_table_batch *batch)
{
	(void)e, (void)batch;
	return 0;
}

static int put_line(void *arg, const void *line, size_t len)
{
	return outlet_add(arg, line, len);
}

static int runlog_export_close(void *e)
{
	const struct export_job *job = e;

	return job->run ? runlog_lines(job->run, NULL, put_line, job->out, job->reterr) : 0;
}

static void runlog_export_drop(void *e)
{
	(void)e;
}

const struct exporter exporter_runlog = {
	.name = "runlog",
	.suffix = ".runlog.jsonl",
	.help = "the run log: a line of JSON for each phase and event, as tacho run --run-log writes it",
	.shape = EXPORT_ONE_FILE,
	.streams = true,
	.is_text = true,
	.tables = (const char *const[]){"meta", NULL},
	.open = runlog_export_open,
	.add = runlog_export_add,
	.close = runlog_export_close,
	.drop = runlog_export_drop,
};
