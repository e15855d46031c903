/* Amounts that a process uses up, together with the children it has waited for. */
#ifndef BASE_USAGE_H
#define BASE_USAGE_H

#include "base/base.h"

struct usage {
	int64_t user_us, system_us;
	int64_t minor_faults, major_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t read_chars, write_chars, read_calls, write_calls, read_bytes, write_bytes;
};

static inline void usage_add(struct usage *to, const struct usage *u)
{
	to->user_us += u->user_us;
	to->system_us += u->system_us;
	to->minor_faults += u->minor_faults;
	to->major_faults += u->major_faults;
	to->voluntary_switches += u->voluntary_switches;
	to->involuntary_switches += u->involuntary_switches;
	to->read_chars += u->read_chars;
	to->write_chars += u->write_chars;
	to->read_calls += u->read_calls;
	to->write_calls += u->write_calls;
	to->read_bytes += u->read_bytes;
	to->write_bytes += u->write_bytes;
}

/* Neither CPU time nor page faults. */
static inline bool usage_is_none(const struct usage *u)
{
	return !u->user_us && !u->system_us && !u->minor_faults && !u->major_faults;
}
#endif
