/* Options to values.
 *
 * The sources are read from the strongest to the weakest (command line, environment, user's file, preset),
 * and a weaker one is looked at only for what is still unset: a bad value in the environment is no error when
 * the command line overrides it, and --help always works.
 *
 * Options and operands may come in any order unless the command says stop_at_operand: operands move behind
 * the options in argv, keeping their order. `--` always ends the options. Rejected: getopt_long (accepts
 * prefixes, so that a new option can break an old script; its messages cannot say what would have been
 * right). */
#include "cli/cli.h"

#include "base/rights.h"
#include "base/str.h"
#include "cli/words.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct parse {
	const struct cmd *cmd;
	char *args;
	struct opt_origins origins;
	uint64_t set; /* bit: the option has a value from the source at hand or a stronger one */
	struct buf *err;
	char where[512]; /* prefix of messages: "" for the command line */
};

/* ---- one value ---- */

/* "1ms", "24h": the largest unit that gives a whole number. */
static void add_seconds(struct buf *out, double seconds)
{
	static const struct {
		double seconds;
		const char *name;
	} unit[] = {{3600, "h"}, {60, "m"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(unit) &&
		fabs(seconds / unit[i].seconds - (double)round_i64(seconds / unit[i].seconds)) > 1e-9)
		i++;
	while (i + 1 < ARRAY_SIZE(unit) && seconds < unit[i].seconds)
		i++;
	buf_addf(out, "%.0f%s", seconds / unit[i].seconds, unit[i].name);
}

static void add_range(struct buf *out, const struct opt *o)
{
	if (o->min == 0 && o->max == 0)
		return;
	buf_adds(out, " from ");
	if (o->type == OPT_INTERVAL) {
		add_seconds(out, o->min);
		buf_adds(out, " to ");
		add_seconds(out, o->max);
	} else {
		buf_addf(out, "%.10g to %.10g", o->min, o->max);
	}
}

/* What the option accepts: a text to follow "takes". */
static void add_accepted(struct buf *out, const struct opt *o)
{
	switch (o->type) {
	case OPT_FLAG:
		buf_adds(out, "yes or no");
		break;
	case OPT_COUNT:
		buf_adds(out, "a whole number");
		break;
	case OPT_DECIMAL:
		buf_adds(out, "a number such as 0.5");
		break;
	case OPT_INTERVAL:
		buf_adds(out, "a time such as 0.5, 500ms, 2s or 10Hz");
		break;
	case OPT_CHOICE:
		for (size_t i = 0; o->choices[i]; i++)
			buf_addf(out, "%s%s", !i ? "" : o->choices[i + 1] ? ", " : " or ", o->choices[i]);
		break;
	case OPT_TEXT:
	case OPT_LIST:
		buf_adds(out, o->arg);
		break;
	}
	add_range(out, o);
}

static int bad_value(struct parse *p, const struct opt *o, const char *text)
{
	buf_addf(p->err, "%s--%s takes ", p->where, o->long_name);
	add_accepted(p->err, o);
	buf_adds(p->err, ", not '");
	escape_bytes(p->err, text, strlen(text));
	buf_adds(p->err, "'");
	return -EINVAL;
}

static bool in_range(const struct opt *o, double v)
{
	return (o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max);
}

static bool parse_flag(const char *text, bool *ret)
{
	static const char *const word[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < ARRAY_SIZE(word); i++)
		if (!strcmp(text, word[i])) {
			*ret = i % 2;
			return true;
		}
	return false;
}

static bool parse_choice(const struct opt *o, const char *text, int *ret)
{
	for (int i = 0; o->choices[i]; i++)
		if (!strcmp(text, o->choices[i])) {
			*ret = i;
			return true;
		}
	return false;
}

static bool parse_range_interval(const struct opt *o, const char *text, int64_t *ret)
{
	int64_t ns;

	if (parse_interval(text, &ns) < 0 || !in_range(o, (double)ns / NSEC_PER_SEC))
		return false;
	*ret = ns;
	return true;
}

static bool parse_range_count(const struct opt *o, const char *text, uint64_t *ret)
{
	uint64_t v;

	if (!parse_u64(text, &v) || !in_range(o, (double)v))
		return false;
	*ret = v;
	return true;
}

static bool parse_range_decimal(const struct opt *o, const char *text, double *ret)
{
	double v;

	if (!parse_decimal(text, &v) || !in_range(o, v))
		return false;
	*ret = v;
	return true;
}

static int add_to_list(struct parse *p, const struct opt *o, struct opt_list *list, const char *text)
{
	if (list->nr == OPT_LIST_MAX) {
		buf_addf(
			p->err, "%s--%s can be given at most %d times", p->where, o->long_name, OPT_LIST_MAX);
		return -E2BIG;
	}
	list->item[list->nr++] = text;
	return 0;
}

static int set_value(struct parse *p, size_t index, enum opt_origin origin, const char *text)
{
	const struct opt *o = cmd_opt(p->cmd, index);
	char *args = cmd_opt_of_group(p->cmd, index) ? p->cmd->group->args : (char *)p->args;
	void *into = args + o->into;
	bool ok = true;

	switch (o->type) {
	case OPT_FLAG:
		ok = parse_flag(text, into);
		break;
	case OPT_TEXT:
		*(const char **)into = text;
		break;
	case OPT_COUNT:
		ok = parse_range_count(o, text, into);
		break;
	case OPT_DECIMAL:
		ok = parse_range_decimal(o, text, into);
		break;
	case OPT_INTERVAL:
		ok = parse_range_interval(o, text, into);
		break;
	case OPT_CHOICE:
		ok = parse_choice(o, text, into);
		break;
	case OPT_LIST:
		if (add_to_list(p, o, into, text) < 0)
			return -E2BIG;
		break;
	}
	if (!ok)
		return bad_value(p, o, text);
	p->origins.of[index] = (uint8_t)origin;
	p->set |= UINT64_C(1) << index;
	return 0;
}

/* ---- command line ---- */

/* "save_dir" is as good as "save-dir". */
static bool is_name(const char *known, const char *name, size_t len)
{
	if (!known || strlen(known) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (known[i] != (name[i] == '_' ? '-' : name[i]))
			return false;
	return true;
}

static int find_long(const struct cmd *cmd, const char *name, size_t len)
{
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++) {
		const struct opt *o = cmd_opt(cmd, i);

		if (is_name(o->long_name, name, len) || is_name(o->also, name, len))
			return (int)i;
	}
	return -ENOENT;
}

static int find_short(const struct cmd *cmd, char c)
{
	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (cmd_opt(cmd, i)->short_name == c)
			return (int)i;
	return -ENOENT;
}

static const char *nearest_option(const struct cmd *cmd, const char *name)
{
	struct nearest near = typed_nearest(name);

	for (size_t i = 0; i < cmd_nr_opts(cmd); i++)
		if (!cmd_opt(cmd, i)->hidden)
			typed_try(&near, cmd_opt(cmd, i)->long_name);
	typed_try(&near, "help");
	return near.best;
}

static int unknown_option(struct parse *p, const char *dashes, const char *name, size_t len)
{
	char word[64];
	const char *near;

	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), name);
	near = len > 1 ? nearest_option(p->cmd, word) : NULL;
	buf_addf(p->err, "there is no option '%s", dashes);
	escape_bytes(p->err, name, len);
	buf_adds(p->err, "'; ");
	if (near)
		buf_addf(p->err, "did you mean '--%s'?", near);
	else
		buf_addf(p->err, "`tacho %s --help` lists them", p->cmd->name);
	return -EINVAL;
}

static int no_value(struct parse *p, const struct opt *o)
{
	buf_addf(p->err, "--%s needs a value: ", o->long_name);
	add_accepted(p->err, o);
	return -EINVAL;
}

/* Words of one option are taken from argv[*i] on; *i is left at the last one used. */
static int parse_long(struct parse *p, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	int index = find_long(p->cmd, name, len);

	if (index < 0 && !strcmp(name, "help"))
		return -ECANCELED;
	if (index < 0 && !value && str_starts(name, "no-")) {
		index = find_long(p->cmd, name + 3, len - 3);
		if (index >= 0 && cmd_opt(p->cmd, (size_t)index)->type == OPT_FLAG)
			return set_value(p, (size_t)index, FROM_COMMAND_LINE, "no");
		index = -ENOENT;
	}
	if (index < 0)
		return unknown_option(p, "--", name, len);
	if (!value && cmd_opt(p->cmd, (size_t)index)->type == OPT_FLAG)
		value = "yes";
	if (!value) {
		if (*i + 1 >= argc)
			return no_value(p, cmd_opt(p->cmd, (size_t)index));
		value = argv[++*i];
	}
	return set_value(p, (size_t)index, FROM_COMMAND_LINE, value);
}

static int parse_short(struct parse *p, int argc, char **argv, int *i)
{
	for (const char *c = argv[*i] + 1; *c; c++) {
		int index = find_short(p->cmd, *c);
		const struct opt *o;
		int r;

		if (index < 0 && *c == 'h')
			return -ECANCELED;
		if (index < 0) {
			size_t n = utf8_length((const uint8_t *)c, (const uint8_t *)c + strlen(c));

			return unknown_option(p, "-", c, n ? n : 1);
		}
		o = cmd_opt(p->cmd, (size_t)index);
		if (o->type == OPT_FLAG) {
			r = set_value(p, (size_t)index, FROM_COMMAND_LINE, "yes");
			if (r < 0)
				return r;
			continue;
		}
		if (c[1])
			return set_value(p, (size_t)index, FROM_COMMAND_LINE, c + 1);
		if (*i + 1 >= argc)
			return no_value(p, o);
		return set_value(p, (size_t)index, FROM_COMMAND_LINE, argv[++*i]);
	}
	return 0;
}

/* Moves argv[first..i) behind argv[i..end), both keeping their order. */
static void move_behind(char **argv, int first, int i, int end)
{
	for (; i < end; i++, first++) {
		char *word = argv[i];

		memmove(&argv[first + 1], &argv[first], (size_t)(i - first) * sizeof(*argv));
		argv[first] = word;
	}
}

static int parse_command_line(struct parse *p, int argc, char **argv)
{
	int first = MIN(1, argc); /* operands passed over so far are argv[first..i) */

	for (int i = 1; i < argc; i++) {
		int from = i, r = 0;
		bool end = !strcmp(argv[i], "--");

		if (argv[i][0] != '-' || !argv[i][1]) {
			if (p->cmd->stop_at_operand)
				return i;
			continue;
		}
		if (!end)
			r = argv[i][1] == '-' ? parse_long(p, argc, argv, &i)
					      : parse_short(p, argc, argv, &i);
		if (r < 0)
			return r;
		move_behind(argv, first, from, i + 1);
		first += i + 1 - from;
		if (end)
			break;
	}
	return first;
}

/* ---- environment, user's file, presets ---- */

static bool names_file(const struct opt *o)
{
	return o->arg && (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "PATH") || !strcmp(o->arg, "TEMPLATE"));
}

static int parse_environment(struct parse *p)
{
	uint64_t stronger = p->set;

	for (size_t i = 0; i < cmd_nr_opts(p->cmd); i++) {
		const struct opt *o = cmd_opt(p->cmd, i);
		char name[OPT_VARIABLE_SIZE];
		const char *value;
		int r;

		if (o->not_from_env || stronger >> i & 1 || (rights_borrowed() && names_file(o)))
			continue;
		value = getenv(opt_variable(name, o));
		if (!value || !*value)
			continue;
		snprintf(p->where, sizeof(p->where), "%s in the environment: ", name);
		r = set_value(p, i, FROM_ENVIRONMENT, value);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_user_file(struct parse *p)
{
	static char *kept; /* values point into it */
	uint64_t stronger = p->set;
	struct user_file file;
	struct setting s;

	if (!cmd_takes_settings(p->cmd))
		return 0;
	user_file_open(&file);
	free(kept);
	kept = file.text;
	while (user_file_next(&file, &s)) {
		int i = find_long(p->cmd, s.name, strlen(s.name)), r;

		if (i < 0 || cmd_opt(p->cmd, (size_t)i)->not_from_env || stronger >> i & 1)
			continue;
		if (!s.value && cmd_opt(p->cmd, (size_t)i)->type != OPT_FLAG)
			s.value = "";
		snprintf(p->where, sizeof(p->where), "%s:%u: ", file.path, s.line);
		r = set_value(p, (size_t)i, FROM_FILE, s.value ? s.value : "yes");
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_presets(struct parse *p)
{
	p->where[0] = 0;
	for (size_t i = 0; i < cmd_nr_opts(p->cmd); i++) {
		const struct opt *o = cmd_opt(p->cmd, i);
		int r;

		if (!o->preset || p->set >> i & 1)
			continue;
		r = set_value(p, i, FROM_PRESET, o->preset);
		if (r < 0)
			return r;
	}
	return 0;
}

int cli_parse(const struct cmd *cmd, int argc, char **argv, void *args, struct opt_origins *ret_origins,
	struct buf *err)
{
	struct parse p = {.cmd = cmd, .args = args, .err = err};
	int first, r;

	assert(cmd_nr_opts(cmd) <= OPTS_MAX);
	if (cmd->args_size)
		memset(args, 0, cmd->args_size);
	if (cmd->group)
		memset(cmd->group->args, 0, cmd->group->args_size);
	first = parse_command_line(&p, argc, argv);
	if (first < 0)
		return first;
	r = parse_environment(&p);
	if (!r)
		r = parse_user_file(&p);
	if (!r)
		r = parse_presets(&p);
	if (r < 0)
		return r;
	if (ret_origins)
		*ret_origins = p.origins;
	return first;
}
