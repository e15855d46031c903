/* Calls this tree does without: each has a form that cannot overflow, is reentrant or reports errors.
 * Force-included by the build (-include), so that no file has to remember it. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atoll gmtime localtime ctime asctime gets
#endif
