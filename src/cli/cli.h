/* The command line from rows: one row is one option, one entry is one command.
 *
 * From them come parsing, `--help`, `tacho help CMD`, the man pages, the completions for bash, zsh and fish
 * and `tacho --describe=json`. Precedence: command line, then TACHO_LONG_NAME in the environment, then the
 * user's file ($XDG_CONFIG_HOME/tacho/config or ~/.config/tacho/config, lines `long-name = value`), then
 * `preset`. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/buf.h"

#include <string.h>

enum opt_type {
	OPT_FLAG,     /* bool; --no-NAME takes it back */
	OPT_TEXT,     /* const char * */
	OPT_COUNT,    /* uint64_t */
	OPT_DECIMAL,  /* double, by parse_decimal() */
	OPT_INTERVAL, /* int64_t ns, by parse_interval() */
	OPT_CHOICE,   /* int: index into choices */
	OPT_LIST,     /* struct opt_list: may be given several times, in order */
};

#define OPT_LIST_MAX 64
struct opt_list {
	unsigned nr;
	const char *item[OPT_LIST_MAX];
};

struct opt {
	char short_name; /* 0: none */
	const char *long_name;
	const char *arg; /* "FILE"; NULL for flags */
	enum opt_type type;
	size_t into;		    /* offsetof in the command's args struct */
	const char *const *choices; /* NULL-terminated */
	const char *preset;	    /* as text; NULL: zero */
	const char *help;	    /* one line, without a full stop */
	const char *detail;	    /* paragraph for the manual; may be NULL */
	bool hidden;
	const char *also;  /* a second long name, which other programs have for it; NULL: none */
	bool not_from_env; /* makes no sense as a lasting setting (--force, --help) */
	double min, max;   /* of counts, decimals and (in seconds) intervals; both 0: any */
};

/* Rows that several commands have, with one place for their values in the whole program. */
struct opt_group {
	const struct opt *opt;
	size_t nr;
	void *args; /* `into` counts from here */
	size_t args_size;
	int (*apply)(struct buf *err); /* after parsing, before the command runs: 0 or a negative errno */
};

struct cmd {
	const char *name;
	const char *synopsis; /* "[OPTION…] [--] COMMAND [ARG…]" */
	const char *help;     /* one line, for the list of commands */
	const char *detail;   /* paragraphs for the manual */
	const char *examples; /* lines "$ tacho run -- make" followed by an indented explanation */
	const struct opt *opt;
	size_t nr_opts;
	/* Rows in common with other commands; they write to a struct that is the first member of args. */
	const struct opt *shared;
	size_t nr_shared;
	const char *const *
		leave_out; /* long names of shared rows that it does not have, NULL at the end; may be NULL */
	const struct opt_group *group; /* may be NULL */
	size_t args_size;
	int usage_status;     /* exit status of wrong use; 0 means 2 */
	bool stop_at_operand; /* options end at the first word that is none (run) */
	bool hidden;
	/* It reads from the machine. All other commands give up what rights the file has (base/rights.h). */
	bool measures;
	const char *operands; /* for completion: "command", "phase", "file", "pid", "metric", or NULL */
	/* argv[0] is the first operand. Returns the exit status. */
	int (*run)(const void *args, int argc, char **argv);
};

static inline bool cmd_leaves_out(const struct cmd *cmd, const struct opt *o)
{
	for (const char *const *name = cmd->leave_out; name && *name; name++)
		if (!strcmp(*name, o->long_name))
			return true;
	return false;
}

/* The nth of the shared rows that the command has; NULL: it has fewer, and *ret_nr, if not NULL, is how many.
 */
static inline const struct opt *cmd_shared_opt(const struct cmd *cmd, size_t nth, size_t *ret_nr)
{
	size_t nr = 0;

	for (size_t i = 0; i < cmd->nr_shared; i++)
		if (!cmd_leaves_out(cmd, &cmd->shared[i]) && nr++ == nth)
			return &cmd->shared[i];
	if (ret_nr)
		*ret_nr = nr;
	return NULL;
}

static inline size_t cmd_nr_shared(const struct cmd *cmd)
{
	size_t nr = 0;

	if (!cmd->leave_out)
		return cmd->nr_shared;
	cmd_shared_opt(cmd, SIZE_MAX, &nr);
	return nr;
}

/* Own and shared rows and those of the group counted through, own first. */
static inline size_t cmd_nr_opts(const struct cmd *cmd)
{
	return cmd->nr_opts + cmd_nr_shared(cmd) + (cmd->group ? cmd->group->nr : 0);
}

static inline bool cmd_opt_of_group(const struct cmd *cmd, size_t i)
{
	return i >= cmd->nr_opts + cmd_nr_shared(cmd);
}

static inline const struct opt *cmd_opt(const struct cmd *cmd, size_t i)
{
	if (cmd_opt_of_group(cmd, i))
		return &cmd->group->opt[i - cmd->nr_opts - cmd_nr_shared(cmd)];
	return i < cmd->nr_opts ? &cmd->opt[i] : cmd_shared_opt(cmd, i - cmd->nr_opts, NULL);
}

/* Some of them may be set for good, by variables and in the user's file; others need not read that. */
static inline bool cmd_takes_settings(const struct cmd *cmd)
{
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->not_from_env)
			return true;
	return false;
}

/* Where a value came from, for `--verbose` and tests. */
enum opt_origin { FROM_PRESET, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

#define OPTS_MAX 64
struct opt_origins {
	uint8_t of[OPTS_MAX]; /* by index of the option, as cmd_opt() counts */
};

/* argv[0] is the name of the command. Fills args, all of it: what no source sets is zero. Texts point into
 * argv, the environment or the user's file, whose text is kept until the next call. Lists are not split at
 * commas, and one on the command line replaces one from elsewhere. An empty variable counts as none. Returns
 * the index in argv of the first operand, or a negative errno with a message for people in err (which names
 * the nearest option when one was misspelt). Operands move behind the options in argv, keeping their order.
 * -ECANCELED: --help was asked for. */
int cli_parse(const struct cmd *cmd, int argc, char **argv, void *args, struct opt_origins *ret_origins,
	struct buf *err);

/* Lines of the user's file that look misspelt (no option has the name, but one nearly has it) or do not
 * belong there. */
void cli_check_user_file(const struct cmd *const *cmds, struct buf *err);

void cli_help(const struct cmd *cmd, struct buf *out, unsigned width);	 /* --help: the options at a glance */
void cli_manual(const struct cmd *cmd, struct buf *out, unsigned width); /* the whole manual */
void cli_overview(const struct cmd *const *cmds, struct buf *out);
void cli_man(const struct cmd *cmd, struct buf *out);		   /* roff of tacho-CMD.1 */
void cli_man_main(const struct cmd *const *cmds, struct buf *out); /* roff of tacho.1 */
int cli_completion(
	const struct cmd *const *cmds, const char *shell, struct buf *out); /* -EINVAL: unknown shell */
void cli_describe(const struct cmd *const *cmds, struct buf *out);	    /* JSON */
const struct cmd *cli_find(const struct cmd *const *cmds, const char *name);
const char *cli_nearest(const struct cmd *const *cmds, const char *name); /* NULL when nothing is near */
#endif
