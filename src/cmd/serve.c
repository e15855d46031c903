/* `tacho serve`: its rows, for help, manual and completions. It needs libmicrohttpd, which the recorder must
 * not load: tacho-serve has the same rows with a function of its own (exec/serve.c). */
#include "cmd/serve.h"

#include "cmd/cmd.h"
#include "cmd/external.h"
#include "cmd/reading.h"

#define INTO(member) offsetof(struct serve_args, member)

/* clang-format off */
static const struct opt serve_opts[] = {
	{'p', "port", "PORT", OPT_TEXT, INTO(port), .not_from_env = true,
		.help = "listen at this port of 127.0.0.1, and ask for a token; 0: a free port",
		.detail = "The address is printed with its token, behind a #. Every user of this machine can reach the port, so the token is "
			"always asked for."},
	{0, "bind", "ADDRESS", OPT_TEXT, INTO(bind), .not_from_env = true,
		.help = "listen at this address instead, for a proxy",
		.detail = "The connection is not encrypted: put a proxy with TLS before it. A token is asked for as well."},
	{0, "socket", "PATH", OPT_TEXT, INTO(socket), .not_from_env = true,
		.help = "listen on this unix socket",
		.detail = "Without it and without --port the socket is in a private directory of yours."},
	{0, "allow-host", "NAME", OPT_LIST, INTO(allow_host),
		.help = "answer requests by this host name, too; may be repeated",
		.detail = "For JupyterHub, Open OnDemand and other proxies, which pass on the name that the browser used. Other names than those "
			"of this machine are refused, so that no foreign page can read yours."},
	{0, "token-file", "FILE", OPT_TEXT, INTO(token_file),
		.help = "the file of the token; it is made if it does not exist",
		.detail = "Without it each server has a new token."},
	{0, "patience", "TIME", OPT_INTERVAL, INTO(patience_ns), .preset = "1m", .min = 1, .max = 86400,
		.help = "cut off a viewer that takes nothing for so long",
		.detail = "It comes back by itself when it can, and goes on where it was."},
	{0, "until-end", NULL, OPT_FLAG, INTO(until_end), .not_from_env = true, .hidden = true,
		.help = "end when no recording is in progress and the last viewer has left"},
};
/* clang-format on */

static int become_serve(const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	return external_become("tacho-serve");
}

/* clang-format off */
const struct cmd cmd_serve = {
	.name = "serve",
	.synopsis = "[OPTION…] [FILE|DIRECTORY…]",
	.help = "show recordings in a browser, live",
	.detail = "Shows the page of 'tacho report' in a browser, and what is new while the run goes on; and a list of all recordings in the "
		"directories, or in the current one. It only reads, and without viewers it does nothing.\n\n"
		"By default it listens on a unix socket that only you can open, and prints the line of ssh that brings it to your machine. With "
		"--port it listens on this machine and prints an address with a token.\n\n"
		"It ends with Ctrl-C or SIGTERM.\n\n"
		"Exit status: 0 when it was ended, 1 when it cannot listen, 2 when a directory does not exist or an option is wrong.",
	.examples = "$ tacho serve\n"
		"    The recordings below this directory.\n"
		"$ tacho serve runs/ --port 8080\n"
		"    At an address of this machine, with a token.\n"
		"$ tacho run --serve -- ./train --epochs 3\n"
		"    While the job runs.\n",
	.opt = serve_opts,
	.nr_opts = ARRAY_SIZE(serve_opts),
	.group = &reading,
	.args_size = sizeof(struct serve_args),
	.operands = "file",
	.run = become_serve,
};
/* clang-format on */
