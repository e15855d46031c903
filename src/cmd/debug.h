/* The verbs of `tacho debug`, each in its own file. They return an exit status. */
#ifndef CMD_DEBUG_H
#define CMD_DEBUG_H

int debug_dump(int argc, char **argv);
int debug_play(int argc, char **argv);
int debug_capture(int argc, char **argv);
#endif
