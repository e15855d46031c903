/* The handful of macros every file may use. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define NSEC_PER_SEC INT64_C(1000000000)
#define NSEC_PER_MSEC INT64_C(1000000)
#define NSEC_PER_USEC INT64_C(1000)

#define PID_LIMIT (1 << 22) /* no PID is larger: the kernel's, PID_MAX_LIMIT */

/* Scope-bound cleanup: `_cleanup_(freep) char *s = NULL;` */
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Hands the pointer on and forgets it, so that cleanup leaves it alone. */
#define TAKE_PTR(p)                        \
	({                                 \
		__typeof__(p) take_ = (p); \
		(p) = NULL;                \
		take_;                     \
	})

/* The sum, or the nearest end of the range: times of recordings and logs may be anything. */
static inline int64_t add_clamped(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

/* Sums of what a recording says wrap around: those of a forged file may overflow, and must not be undefined.
 */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* To the nearest, halves away from zero: as lround(), without loading libm into every recorder. Values out of
 * range become the nearest end of it (numbers of a recording may be anything), NAN becomes 0. */
static inline int64_t round_i64(double v)
{
	if (v > -0x1p63 && v < 0x1p63)
		return (int64_t)(v < 0 ? v - 0.5 : v + 0.5);
	return v != v ? 0 : v < 0 ? INT64_MIN : INT64_MAX;
}

/* By Newton, for the same reason; 0 of what is not above 0. */
static inline double square_root(double v)
{
	double x = v > 1 ? v : 1;

	if (!(v > 0))
		return 0;
	for (int i = 0; i < 1100 && x * x - v > v * 1e-14; i++)
		x = (x + v / x) / 2;
	return x;
}

/* No permission: the kernel uses either errno for that. */
static inline bool is_refused(int error)
{
	return error == -EACCES || error == -EPERM;
}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* The greater and the lesser of what is known: NAN is not. Not fmax(): the recorder does without libm. */
static inline double known_max(double a, double b)
{
	return a != a || b > a ? b : a;
}

static inline double known_min(double a, double b)
{
	return a != a || b < a ? b : a;
}
#endif
