/* What the commands of tacho-report do there; their rows are those of the main table. */
#ifndef EXEC_COMMANDS_H
#define EXEC_COMMANDS_H

int plot_run(const void *args, int argc, char **argv);
int compare_run(const void *args, int argc, char **argv);
int report_run(const void *args, int argc, char **argv);
#endif
