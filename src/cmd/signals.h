/* Signals that end a program are noted while it writes, so that it can remove what it began. */
#ifndef CMD_SIGNALS_H
#define CMD_SIGNALS_H

void signals_note(void);
int signals_noted(void); /* the signal; 0: none */
/* Ends as the signal would have; returns when there was none. */
void signals_obey(void);
#endif
