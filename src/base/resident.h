/* What our program has resident of its own files. */
#ifndef BASE_RESIDENT_H
#define BASE_RESIDENT_H

#include "base/base.h"

/* Gives back all pages of code and constants; those still in use come back by themselves. */
void resident_give_back(void);
#endif
