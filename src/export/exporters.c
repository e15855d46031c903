/* The formats, in the order of `tacho export --formats`. A new one is its file and a line here.
 *
 * Those that stand on a library are here even where it was not found at build time: then the message says
 * what to install, not that there is no such format. */
#include "export/exporter.h"

#include <strings.h>

extern const struct exporter exporter_arrow;
extern const struct exporter exporter_arrow_stream;
extern const struct exporter exporter_csv;
extern const struct exporter exporter_feather;
extern const struct exporter exporter_json;
extern const struct exporter exporter_jsonl;
extern const struct exporter exporter_oasis_csv;
extern const struct exporter exporter_parquet;
extern const struct exporter exporter_openmetrics;
extern const struct exporter exporter_orc;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_perfmon_json;
extern const struct exporter exporter_pickle;
extern const struct exporter exporter_runlog;
extern const struct exporter exporter_snakemake;
extern const struct exporter exporter_tensorboard;
extern const struct exporter exporter_tyche_csv;

#define WITHOUT(package, its_name, its_suffix, others, its_help)                          \
	{                                                                                 \
		.name = its_name, .suffix = its_suffix, .also = others, .help = its_help, \
		.missing = package, .shape = EXPORT_ONE_FILE                              \
	}

#ifdef HAVE_SQLITE
extern const struct exporter exporter_sqlite;
#else
static const struct exporter exporter_sqlite = WITHOUT("libsqlite3-dev", "sqlite", ".sqlite", ".sqlite3,.db",
	"SQLite: tables with keys, and views for common questions");
#endif
#ifdef HAVE_HDF5
extern const struct exporter exporter_hdf5;
#else
static const struct exporter exporter_hdf5 = WITHOUT("libhdf5-dev", "hdf5", ".h5", ".hdf5",
	"HDF5: a group for each table and node, compressed, as pandas reads it");
#endif
#ifdef HAVE_XLSXWRITER
extern const struct exporter exporter_xlsx;
#else
static const struct exporter exporter_xlsx =
	WITHOUT("libxlsxwriter-dev", "xlsx", ".xlsx", NULL, "a spreadsheet: the summary and the tables");
#endif

const struct exporter *const exporters[] = {
	&exporter_csv,
	&exporter_json,
	&exporter_jsonl,
	&exporter_parquet,
	&exporter_arrow,
	&exporter_feather,
	&exporter_arrow_stream,
	&exporter_orc,
	&exporter_pickle,
	&exporter_openmetrics,
	&exporter_sqlite,
	&exporter_hdf5,
	&exporter_xlsx,
	&exporter_perfetto,
	&exporter_tensorboard,
	&exporter_snakemake,
	&exporter_perfmon_json,
	&exporter_oasis_csv,
	&exporter_tyche_csv,
	&exporter_runlog,
	NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; exporters[i]; i++)
		if (!strcasecmp(exporters[i]->name, name))
			return exporters[i];
	return NULL;
}
