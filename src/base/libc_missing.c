/* Functions that an older C library lacks, by the kernel's own calls or from tables: see libc_missing.h. */
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LACKS_REALLOCARRAY
void *reallocarray(void *array, size_t nr, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(nr, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(array, bytes);
}
#endif

#ifdef LACKS_EXPLICIT_BZERO
void explicit_bzero(void *bytes, size_t len)
{
	memset(bytes, 0, len);
	__asm__ volatile("" : : "r"(bytes) : "memory"); /* the compiler may not leave it out */
}
#endif

#ifdef LACKS_GETRANDOM
ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
	return syscall(SYS_getrandom, bytes, len, flags);
}
#endif

#ifdef LACKS_GETDENTS64
ssize_t getdents64(int fd, void *bytes, size_t len)
{
	return syscall(SYS_getdents64, fd, bytes, len);
}
#endif

#ifdef LACKS_RENAMEAT2
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
#endif

#ifdef LACKS_STRERRORNAME_NP
const char *strerrorname_np(int error)
{
	/* clang-format off */
#define NAME(e) [e] = #e
	static const char *const name[] = {
		[0] = "0",
		NAME(EPERM), NAME(ENOENT), NAME(ESRCH), NAME(EINTR), NAME(EIO), NAME(ENXIO), NAME(E2BIG), NAME(ENOEXEC), NAME(EBADF),
		NAME(ECHILD), NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES), NAME(EFAULT), NAME(ENOTBLK), NAME(EBUSY), NAME(EEXIST),
		NAME(EXDEV), NAME(ENODEV), NAME(ENOTDIR), NAME(EISDIR), NAME(EINVAL), NAME(ENFILE), NAME(EMFILE), NAME(ENOTTY),
		NAME(ETXTBSY), NAME(EFBIG), NAME(ENOSPC), NAME(ESPIPE), NAME(EROFS), NAME(EMLINK), NAME(EPIPE), NAME(EDOM), NAME(ERANGE),
		NAME(EDEADLK), NAME(ENAMETOOLONG), NAME(ENOLCK), NAME(ENOSYS), NAME(ENOTEMPTY), NAME(ELOOP), NAME(ENOMSG), NAME(EIDRM),
		NAME(ECHRNG), NAME(EL2NSYNC), NAME(EL3HLT), NAME(EL3RST), NAME(ELNRNG), NAME(EUNATCH), NAME(ENOCSI), NAME(EL2HLT),
		NAME(EBADE), NAME(EBADR), NAME(EXFULL), NAME(ENOANO), NAME(EBADRQC), NAME(EBADSLT), NAME(EBFONT), NAME(ENOSTR),
		NAME(ENODATA), NAME(ETIME), NAME(ENOSR), NAME(ENONET), NAME(ENOPKG), NAME(EREMOTE), NAME(ENOLINK), NAME(EADV),
		NAME(ESRMNT), NAME(ECOMM), NAME(EPROTO), NAME(EMULTIHOP), NAME(EDOTDOT), NAME(EBADMSG), NAME(EOVERFLOW),
		NAME(ENOTUNIQ), NAME(EBADFD), NAME(EREMCHG), NAME(ELIBACC), NAME(ELIBBAD), NAME(ELIBSCN), NAME(ELIBMAX), NAME(ELIBEXEC),
		NAME(EILSEQ), NAME(ERESTART), NAME(ESTRPIPE), NAME(EUSERS), NAME(ENOTSOCK), NAME(EDESTADDRREQ), NAME(EMSGSIZE),
		NAME(EPROTOTYPE), NAME(ENOPROTOOPT), NAME(EPROTONOSUPPORT), NAME(ESOCKTNOSUPPORT), NAME(EOPNOTSUPP),
		NAME(EPFNOSUPPORT), NAME(EAFNOSUPPORT), NAME(EADDRINUSE), NAME(EADDRNOTAVAIL), NAME(ENETDOWN), NAME(ENETUNREACH),
		NAME(ENETRESET), NAME(ECONNABORTED), NAME(ECONNRESET), NAME(ENOBUFS), NAME(EISCONN), NAME(ENOTCONN), NAME(ESHUTDOWN),
		NAME(ETOOMANYREFS), NAME(ETIMEDOUT), NAME(ECONNREFUSED), NAME(EHOSTDOWN), NAME(EHOSTUNREACH), NAME(EALREADY),
		NAME(EINPROGRESS), NAME(ESTALE), NAME(EUCLEAN), NAME(ENOTNAM), NAME(ENAVAIL), NAME(EISNAM), NAME(EREMOTEIO),
		NAME(EDQUOT), NAME(ENOMEDIUM), NAME(EMEDIUMTYPE), NAME(ECANCELED), NAME(ENOKEY), NAME(EKEYEXPIRED), NAME(EKEYREVOKED),
		NAME(EKEYREJECTED), NAME(EOWNERDEAD), NAME(ENOTRECOVERABLE), NAME(ERFKILL), NAME(EHWPOISON),
	};
	/* clang-format on */
#undef NAME

	return error >= 0 && (size_t)error < ARRAY_SIZE(name) ? name[error] : NULL;
}
#endif

#ifdef LACKS_STRERRORDESC_NP
/* That of the C library without a translation: nothing here calls setlocale(). */
const char *strerrordesc_np(int error)
{
	return strerrorname_np(error) ? strerror(error) : NULL;
}
#endif

#ifdef LACKS_SIGABBREV_NP
const char *sigabbrev_np(int signal)
{
	static const char *const name[] = {
		[SIGHUP] = "HUP",
		[SIGINT] = "INT",
		[SIGQUIT] = "QUIT",
		[SIGILL] = "ILL",
		[SIGTRAP] = "TRAP",
		[SIGABRT] = "ABRT",
		[SIGBUS] = "BUS",
		[SIGFPE] = "FPE",
		[SIGKILL] = "KILL",
		[SIGUSR1] = "USR1",
		[SIGSEGV] = "SEGV",
		[SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE",
		[SIGALRM] = "ALRM",
		[SIGTERM] = "TERM",
		[SIGSTKFLT] = "STKFLT",
		[SIGCHLD] = "CHLD",
		[SIGCONT] = "CONT",
		[SIGSTOP] = "STOP",
		[SIGTSTP] = "TSTP",
		[SIGTTIN] = "TTIN",
		[SIGTTOU] = "TTOU",
		[SIGURG] = "URG",
		[SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ",
		[SIGVTALRM] = "VTALRM",
		[SIGPROF] = "PROF",
		[SIGWINCH] = "WINCH",
		[SIGPOLL] = "POLL",
		[SIGPWR] = "PWR",
		[SIGSYS] = "SYS",
	};

	return signal > 0 && (size_t)signal < ARRAY_SIZE(name) ? name[signal] : NULL;
}
#endif
