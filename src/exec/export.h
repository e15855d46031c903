/* The inside of `tacho export`. */
#ifndef EXEC_EXPORT_H
#define EXEC_EXPORT_H

/* What tacho-export does; the rows are those of the main table. */
int export_run(const void *args, int argc, char **argv);
#endif
