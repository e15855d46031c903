/* Help for a terminal: the overview, a page of options, the whole manual of a command; and finding commands.
 */
#include "cli/cli.h"

#include "base/str.h"
#include "cli/words.h"

#include <string.h>

#define HELP_COLUMN 28
#define WIDTH_MIN 40
#define WIDTH_MAX 100

static unsigned sane_width(unsigned width)
{
	return MIN(MAX(width, WIDTH_MIN), WIDTH_MAX);
}

const struct cmd *cli_find(const struct cmd *const *cmds, const char *name)
{
	for (; *cmds; cmds++)
		if (!strcmp((*cmds)->name, name))
			return *cmds;
	return NULL;
}

const char *cli_nearest(const struct cmd *const *cmds, const char *name)
{
	struct nearest near = typed_nearest(name);

	for (; *cmds; cmds++)
		if (!(*cmds)->hidden)
			typed_try(&near, (*cmds)->name);
	return near.best;
}

static bool preset_worth_showing(const struct opt *o)
{
	return o->preset && o->type != OPT_FLAG;
}

/* Left and right of one line in two columns; a left side that is too long has a line of its own. */
static void add_row(struct buf *out, const char *left, const char *right, unsigned column, unsigned width)
{
	unsigned at = (unsigned)utf8_columns(left);

	buf_adds(out, left);
	if (at + 2 > column) {
		buf_addch(out, '\n');
		at = 0;
	}
	wrap_text(out, right, at, column, width);
}

static void add_option(struct buf *out, const struct opt *o, unsigned width)
{
	unsigned column = width < 60 ? 8 : HELP_COLUMN;
	struct buf left, right;

	buf_init(&left, 200);
	buf_init(&right, 4000);
	if (o->short_name)
		buf_addf(&left, "  -%c, ", o->short_name);
	else
		buf_adds(&left, "      ");
	opt_long_form(&left, o);
	buf_adds(&right, o->help);
	if (preset_worth_showing(o))
		buf_addf(&right, ". Default: %s", o->preset);
	add_row(out, (char *)left.data, (char *)right.data, column, width);
	buf_release(&left);
	buf_release(&right);
}

static const struct opt opt_help = {'h', "help", .type = OPT_FLAG, .help = "this help", .not_from_env = true};

/* "run a command" becomes "Run a command." */
static void add_sentence(struct buf *out, const char *help, unsigned indent, unsigned width)
{
	struct buf text;

	buf_init(&text, 4000);
	buf_addf(&text, "%c%s.", *help >= 'a' && *help <= 'z' ? *help - 'a' + 'A' : *help,
		*help ? help + 1 : "");
	wrap_text(out, (char *)text.data, 0, indent, width);
	buf_release(&text);
}

static void add_head(struct buf *out, const struct cmd *cmd, unsigned width)
{
	buf_addf(out, "Usage: tacho %s ", cmd->name);
	wrap_text(out, cmd->synopsis, (unsigned)(14 + strlen(cmd->name)), 14, width);
	buf_addch(out, '\n');
	add_sentence(out, cmd->help, 0, width);
}

static void add_examples(struct buf *out, const struct cmd *cmd)
{
	const char *p = cmd->examples;

	if (!p)
		return;
	buf_adds(out, "\nExamples:\n");
	while (*p) {
		size_t n = strcspn(p, "\n");

		buf_addf(out, "%s%.*s\n", n ? "  " : "", (int)n, p);
		p += n + (p[n] == '\n');
	}
}

void cli_help(const struct cmd *cmd, struct buf *out, unsigned width)
{
	width = sane_width(width);
	add_head(out, cmd, width);
	buf_adds(out, "\nOptions:\n");
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->hidden)
			add_option(out, cmd_opt(cmd, i), width);
	add_option(out, &opt_help, width);
	add_examples(out, cmd);
	buf_addf(out, "\nEnvironment: most options have a variable. More: tacho help %s\n", cmd->name);
}

static void add_option_detail(struct buf *out, const struct opt *o, unsigned width)
{
	char variable[OPT_VARIABLE_SIZE];
	struct buf choices;

	buf_init(&choices, 4096);
	opt_choices(&choices, o);
	buf_adds(out, "\n  ");
	if (o->short_name)
		buf_addf(out, "-%c, ", o->short_name);
	opt_long_form(out, o);
	buf_addch(out, '\n');
	add_sentence(out, o->help, 6, width);
	if (o->detail)
		wrap_text(out, o->detail, 0, 6, width);
	if (choices.len)
		wrap_text(out, (char *)choices.data, 0, 6, width);
	buf_release(&choices);
	if (preset_worth_showing(o))
		buf_addf(out, "      Default: %s\n", o->preset);
	if (!o->not_from_env)
		buf_addf(out, "      Environment: %s\n", opt_variable(variable, o));
	else
		buf_adds(out, "      Only on the command line.\n");
}

void cli_manual(const struct cmd *cmd, struct buf *out, unsigned width)
{
	width = sane_width(width);
	add_head(out, cmd, width);
	if (cmd->detail) {
		buf_addch(out, '\n');
		wrap_text(out, cmd->detail, 0, 0, width);
	}
	buf_adds(out, "\nOptions:\n");
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->hidden)
			add_option_detail(out, cmd_opt(cmd, i), width);
	add_option_detail(out, &opt_help, width);
	add_examples(out, cmd);
}

void cli_overview(const struct cmd *const *cmds, struct buf *out)
{
	buf_adds(out,
		"tacho records what a computing job does to its machine.\n\n"
		"Usage: tacho COMMAND [OPTION…] [ARGUMENT…]\n"
		"       tacho -- PROGRAM [ARGUMENT…]    the same as tacho run -- …\n"
		"\nCommands:\n");
	for (; *cmds; cmds++) {
		struct buf left;

		if ((*cmds)->hidden)
			continue;
		buf_init(&left, 100);
		buf_addf(&left, "  %s", (*cmds)->name);
		add_row(out, (char *)left.data, (*cmds)->help, 12, 80);
		buf_release(&left);
	}
	buf_adds(out,
		"\nOptions:\n  -h, --help            this overview\n  -V, --version         the version\n "
		"     --describe=json   all commands and options, for programs\n\n`tacho COMMAND --help` "
		"lists options, `tacho help COMMAND` explains\nthem. Most options can also be set as "
		"TACHO_LONG_NAME in the environment or as\n`long-name = value` in "
		"~/.config/tacho/config.\n");
}
