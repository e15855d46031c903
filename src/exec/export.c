/* `tacho export`: reads a run once, and writes it in the formats that are wanted. */
#include "exec/export.h"

#include "cmd/cmd.h"
#include "cmd/export.h"
#include "export/exporter.h"

static int list_formats(void)
{
	struct buf out;
	int status;

	buf_init(&out, 1 << 16);
	for (size_t i = 0; exporters[i]; i++) {
		const struct exporter *x = exporters[i];

		buf_addf(&out, "%-12s  %-10s  %s\n", x->name, x->suffix, x->help);
		if (x->missing)
			buf_addf(&out, "%-12s  %-10s  not in this build: it lacks %s\n", "", "", x->missing);
	}
	status = print(&out);
	buf_release(&out);
	return status;
}

int export_run(const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return list_formats();
}
