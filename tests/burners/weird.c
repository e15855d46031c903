/* A process with a strange name and strange arguments, known only by bytes: weird [SECONDS [MIB]]. It runs
 * itself again with arguments of blanks, newlines, parentheses and bytes that are not UTF-8, or with MIB of
 * them in arguments of 100,000 bytes (the kernel takes no longer ones). For SECONDS see hold(). */
#include "burner.h"

#include <sys/prctl.h>

#define ARGUMENT 100000

static const char odd_name[] = "a) R (\n\xff\t b";

static void again(const char *seconds_text, double mib)
{
	static char program[] = "/proc/self/exe", mark[] = "--again";
	static char odd[] = " two\nlines\t(and) \"quotes\" \\ \xff\xfe \xc3\xa9 ", empty[] = "",
		    huge[ARGUMENT + 1];
	static char *args[1000];
	int nr = 0;

	args[nr++] = odd;
	args[nr++] = mark;
	args[nr++] = (char *)seconds_text;
	args[nr++] = empty;
	args[nr++] = odd;
	memset(huge, 'h', ARGUMENT);
	for (double left = mib * (double)MIB; left > 0 && nr < 990; left -= ARGUMENT)
		args[nr++] = huge;
	execv(program, args);
	fail("execv");
}

int main(int argc, char **argv)
{
	if (argc < 3 || strcmp(argv[1], "--again") != 0)
		again(argc > 1 ? argv[1] : "0.5", number(argc, argv, 2, 0));
	prctl(PR_SET_NAME, odd_name);
	hold(argc, argv, 2, 0.5);
	return 0;
}
