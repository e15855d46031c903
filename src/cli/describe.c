/* All commands and options as JSON, for programs that call tacho and for those that write documentation. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/words.h"

static const char *const type_name[] = {
	[OPT_FLAG] = "flag",
	[OPT_TEXT] = "text",
	[OPT_COUNT] = "count",
	[OPT_DECIMAL] = "decimal",
	[OPT_INTERVAL] = "interval",
	[OPT_CHOICE] = "choice",
	[OPT_LIST] = "list",
};

static void describe_option(struct json *j, const struct opt *o)
{
	char name[] = {o->short_name, 0}, variable[OPT_VARIABLE_SIZE];

	json_object(j, NULL);
	json_str(j, "name", o->long_name);
	json_str(j, "short", o->short_name ? name : NULL);
	json_str(j, "type", type_name[o->type]);
	json_str(j, "value", o->arg);
	if (o->choices) {
		json_array(j, "choices");
		for (const char *const *c = o->choices; *c; c++)
			json_str(j, NULL, *c);
		json_end_array(j);
	}
	if (o->min != 0 || o->max != 0) {
		json_num(j, "min", o->min);
		json_num(j, "max", o->max);
	}
	json_str(j, "preset", o->preset);
	json_bool(j, "repeatable", o->type == OPT_LIST);
	json_str(j, "variable", o->not_from_env ? NULL : opt_variable(variable, o));
	json_str(j, "help", o->help);
	json_str(j, "detail", o->detail);
	json_end_object(j);
}

static void describe_command(struct json *j, const struct cmd *cmd)
{
	json_object(j, NULL);
	json_str(j, "name", cmd->name);
	json_str(j, "synopsis", cmd->synopsis);
	json_str(j, "help", cmd->help);
	json_str(j, "detail", cmd->detail);
	json_str(j, "examples", cmd->examples);
	json_str(j, "operands", cmd->operands);
	json_bool(j, "stop_at_operand", cmd->stop_at_operand);
	json_array(j, "options");
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->hidden)
			describe_option(j, cmd_opt(cmd, i));
	json_end_array(j);
	json_end_object(j);
}

void cli_describe(const struct cmd *const *cmds, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_object(&j, NULL);
	json_str(&j, "name", "tacho");
	json_str(&j, "version", TACHO_VERSION);
	json_array(&j, "commands");
	for (; *cmds; cmds++)
		if (!(*cmds)->hidden)
			describe_command(&j, *cmds);
	json_end_array(&j);
	json_end_object(&j);
	buf_addch(out, '\n');
}
