/* The man pages as roff, with the macros of man(7), which groff, mandoc and heirloom all read.
 *
 * Texts come from the rows; what roff would take for its own is escaped byte by byte in one place (add_roff),
 * and what stands between backticks in a text is shown in bold. */
#include "cli/cli.h"

#include "cli/words.h"

#include <string.h>

/* Adds text with roff's special characters escaped. At the beginning of a line a dot or quote would be a
 * request. */
static void add_roff_part(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool line_start = out->len && out->data[out->len - 1] == '\n';

		switch (text[i]) {
		case '\\':
			buf_adds(out, "\\e");
			break;
		case '-':
			buf_adds(out, "\\-");
			break;
		case '\'':
			buf_adds(out, "\\(aq");
			break;
		case '"':
			buf_adds(out, "\\(dq");
			break;
		case '`':
			buf_adds(out, "\\(ga");
			break;
		case '^':
			buf_adds(out, "\\(ha");
			break;
		case '~':
			buf_adds(out, "\\(ti");
			break;
		case '.':
			buf_adds(out, line_start ? "\\&." : ".");
			break;
		default:
			buf_addch(out, text[i]);
		}
	}
}

static void add_roff(struct buf *out, const char *text)
{
	add_roff_part(out, text, strlen(text));
}

/* Running text: `code` in bold, a new line after each sentence's end is left to the writer; an empty line is
 * a new paragraph of the kind `paragraph` (".PP" or, inside a list, ".IP"). */
static void add_text(struct buf *out, const char *text, const char *paragraph)
{
	bool bold = false;

	while (*text) {
		size_t n = strcspn(text, "`\n");

		add_roff_part(out, text, n);
		text += n;
		if (*text == '`') {
			bold = !bold;
			buf_adds(out, bold ? "\\fB" : "\\fR");
		} else if (text[0] == '\n' && text[1] == '\n') {
			buf_addf(out, "\n%s\n", paragraph);
			text++;
		} else if (*text) {
			buf_addch(out, '\n');
		}
		if (*text)
			text++;
	}
	buf_addch(out, '\n');
}

static void add_sentence(struct buf *out, const char *help)
{
	struct buf text;

	buf_init(&text, 4000);
	buf_addf(&text, "%c%s.", *help >= 'a' && *help <= 'z' ? *help - 'a' + 'A' : *help,
		*help ? help + 1 : "");
	add_text(out, (char *)text.data, ".PP");
	buf_release(&text);
}

/* Words in capitals are what the user puts in: italic; all others are typed as they are: bold or roman. */
static void add_synopsis(struct buf *out, const char *synopsis)
{
	while (*synopsis) {
		size_t n = strspn(synopsis, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		size_t plain = strcspn(synopsis, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		if (n) {
			buf_adds(out, "\\fI");
			add_roff_part(out, synopsis, n);
			buf_adds(out, "\\fR");
		} else {
			add_roff_part(out, synopsis, plain);
		}
		synopsis += n ? n : plain;
	}
	buf_addch(out, '\n');
}

static void add_title(struct buf *out, const char *name)
{
	buf_adds(out, ".\\\" Generated from the table of commands by `tacho help --man`.\n.TH ");
	for (; *name; name++)
		buf_addch(out, *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
	buf_addf(out, " 1 \"%s\" \"tacho %s\" \"tacho manual\"\n", TACHO_DATE, TACHO_VERSION);
}

static void add_option(struct buf *out, const struct opt *o)
{
	struct buf form;

	buf_init(&form, 200);
	opt_long_form(&form, o);
	buf_adds(out, ".TP\n");
	if (o->short_name)
		buf_addf(out, "\\fB\\-%c\\fR, ", o->short_name);
	buf_adds(out, "\\fB");
	add_roff_part(out, (char *)form.data, form.len - (o->arg ? strlen(o->arg) + 1 : 0));
	buf_adds(out, "\\fR");
	if (o->arg) {
		buf_adds(out, " \\fI");
		add_roff(out, o->arg);
		buf_adds(out, "\\fR");
	}
	buf_addch(out, '\n');
	add_sentence(out, o->help);
	if (o->detail)
		add_text(out, o->detail, ".IP");
	buf_reset(&form);
	opt_choices(&form, o);
	if (form.len) {
		add_roff(out, (char *)form.data);
		buf_addch(out, '\n');
	}
	if (o->preset && o->type != OPT_FLAG) {
		buf_adds(out, "Default: \\fB");
		add_roff(out, o->preset);
		buf_adds(out, "\\fR.\n");
	}
	buf_release(&form);
}

static void add_examples(struct buf *out, const char *p)
{
	bool open = false;

	if (!p)
		return;
	buf_adds(out, ".SH EXAMPLES\n");
	for (; *p; p += *p == '\n') {
		size_t n = strcspn(p, "\n"), indent = strspn(p, " ");

		if (n && *p == '$') {
			buf_adds(out, open ? ".RE\n.PP\n.EX\n" : ".EX\n");
			add_roff_part(out, p, n);
			buf_adds(out, "\n.EE\n.RS 4\n");
			open = true;
		} else if (n > indent) {
			add_roff_part(out, p + indent, n - indent);
			buf_addch(out, '\n');
		}
		p += n;
	}
	if (open)
		buf_adds(out, ".RE\n");
}

static void add_variables(struct buf *out, const struct cmd *cmd)
{
	char variable[OPT_VARIABLE_SIZE];
	bool any = false;

	for (size_t i = 0; i < cmd_nr_opts(cmd); i++) {
		const struct opt *o = cmd_opt(cmd, i);

		if (o->hidden || o->not_from_env)
			continue;
		if (!any)
			buf_adds(out,
				".SH ENVIRONMENT\nThese set options that the command line does not set; "
				"an empty variable counts as unset.\nThe same settings can be written "
				"into the file \\fI\\(ti/.config/tacho/config\\fR\nas lines "
				"\\fIlong\\-name\\fR = \\fIvalue\\fR, which the environment overrides.\n");
		any = true;
		buf_addf(out, ".TP\n.B %s\n\\-\\-", opt_variable(variable, o));
		add_roff(out, o->long_name);
		buf_adds(out, o->type == OPT_FLAG ? ": yes or no\n" : "\n");
	}
}

void cli_man(const struct cmd *cmd, struct buf *out)
{
	struct buf name;

	buf_init(&name, 100);
	buf_addf(&name, "tacho-%s", cmd->name);
	add_title(out, (char *)name.data);
	buf_adds(out, ".SH NAME\n");
	add_roff(out, (char *)name.data);
	buf_adds(out, " \\- ");
	add_roff(out, cmd->help);
	buf_addf(out, "\n.SH SYNOPSIS\n\\fBtacho %s\\fR ", cmd->name);
	add_synopsis(out, cmd->synopsis);
	buf_adds(out, ".SH DESCRIPTION\n");
	if (cmd->detail)
		add_text(out, cmd->detail, ".PP");
	else
		add_sentence(out, cmd->help);
	buf_adds(out, ".SH OPTIONS\n");
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->hidden)
			add_option(out, cmd_opt(cmd, i));
	buf_adds(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nThe options at a glance.\n");
	add_examples(out, cmd->examples);
	add_variables(out, cmd);
	buf_adds(out, ".SH SEE ALSO\n.BR tacho (1)\n");
	buf_release(&name);
}

/* clang-format off */
static const char main_middle[] =
	".SH OPTIONS\n.TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nThe list of commands.\n.TP\n\\fB\\-V\\fR, "
	"\\fB\\-\\-version\\fR\nThe version.\n.TP\n\\fB\\-\\-describe=json\\fR\nAll commands and options "
	"as JSON, for programs.\n.SH EXIT STATUS\nCommands that record end as the recorded command does: "
	"with its exit status,\nor killed by the same signal. 126 and 127 mean that it could not be run "
	"or was not found,\n125 wrong use, and that nothing was run. A command that cannot be recorded "
	"runs nevertheless,\nwith one line that says why, unless \\fB\\-\\-strict\\fR is given: then this "
	"is 125 too.\n.PP\nAll others: 0 is success, 1 that something is wrong with the recording or the "
	"answer is no,\n2 wrong use, or that there is no recording.\n.SH ENVIRONMENT\nMost options have a "
	"variable: \\fBTACHO_\\fR and its long name in capitals,\nwith \\(oq_\\(cq for \\(oq\\-\\(cq. The "
	"page of each command lists those that it takes.\n.TP\n.B NO_COLOR\nWhen set and not empty, "
	"output has no colors.\n.TP\n.B TACHO_EVENTS\nA folder of event files, which come before those "
	"that are built in.\n.TP\n.B TACHO_NVML\nThe library of NVIDIA\\(cqs driver, where it lies in an "
	"unusual place.\n.TP\n.B TACHO_ROCM\nWhen set, ROCm SMI is asked for what no file has on "
	"AMD\\(cqs GPUs: its path, or any word for\nthe library that is installed.\n.SH FILES\n.TP\n.I "
	"$XDG_CONFIG_HOME/tacho/config\nor \\fI\\(ti/.config/tacho/config\\fR: lines \\fIlong\\-name\\fR "
	"= \\fIvalue\\fR;\na line that begins with # is a comment.\nThe command line overrides the "
	"environment, which overrides this file.\n";
/* clang-format on */

void cli_man_main(const struct cmd *const *cmds, struct buf *out)
{
	add_title(out, "tacho");
	buf_adds(out,
		".SH NAME\ntacho \\- record what a computing job does to its machine\n"
		".SH SYNOPSIS\n"
		"\\fBtacho\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
		".br\n\\fBtacho \\-\\-\\fR \\fIPROGRAM\\fR [\\fIARGUMENT\\fR...]\n"
		".SH DESCRIPTION\n"
		"\\fBtacho run \\-\\-\\fR \\fIPROGRAM\\fR runs a program as if tacho were not there and\n"
		"records what it and its descendants use into one file; the other commands read that file.\n"
		"The second form is short for it.\n"
		".SH COMMANDS\n");
	for (const struct cmd *const *c = cmds; *c; c++) {
		if ((*c)->hidden)
			continue;
		buf_addf(out, ".TP\n.BR tacho\\-%s (1)\n", (*c)->name);
		add_sentence(out, (*c)->help);
	}
	buf_adds(out,
		".PP\nAny other \\fINAME\\fR runs the program \\fBtacho\\-\\fR\\fINAME\\fR, looked for "
		"beside tacho\n"
		"and in \\fBPATH\\fR.\n");
	buf_adds(out, main_middle);
	buf_adds(out, ".SH SEE ALSO\n");
	for (const struct cmd *const *c = cmds; *c; c++)
		if (!(*c)->hidden)
			buf_addf(out, ".BR tacho\\-%s (1)%s\n", (*c)->name, c[1] && !c[1]->hidden ? "," : "");
}
