/* cli/: the parser and its sources, help, manual pages, completions, description; and the rows of the real
 * commands. */
#include "base/str.h"
#include "cli/cli.h"
#include "cli/words.h"
#include "cmd/cmd.h"
#include "cmd/record_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

struct args {
	struct {
		bool shared;
	} base;
	bool quiet, verbose, summary;
	const char *output;
	uint64_t count;
	double budget;
	int64_t interval;
	int wait;
	struct opt_list tag;
};

#define INTO(member) offsetof(struct args, member)

static const char *const choices[] = {"root", "tree", "never", NULL};

/* clang-format off */
static const struct opt opts[] = {
	{'q', "quiet", NULL, OPT_FLAG, INTO(quiet), .help = "say nothing"},
	{'v', "verbose", NULL, OPT_FLAG, INTO(verbose), .help = "say more"},
	{0, "summary", NULL, OPT_FLAG, INTO(summary), .preset = "yes", .help = "no summary"},
	{'o', "output", "FILE", OPT_TEXT, INTO(output), .preset = "here", .help = "where"},
	{'c', "count", "N", OPT_COUNT, INTO(count), .min = 1, .max = 9, .help = "how many"},
	{0, "budget", "PERCENT", OPT_DECIMAL, INTO(budget), .preset = "1", .min = 0.01, .max = 100, .help = "cost"},
	{'i', "interval", "TIME", OPT_INTERVAL, INTO(interval), .preset = "1s", .min = 0.001, .max = 86400,
		.help = "how often", .detail = "It's `this`.\n\n.Then \\ 'that' -"},
	{0, "wait", "root|tree", OPT_CHOICE, INTO(wait), choices, .preset = "tree", .help = "for [what]: 'it'"},
	{'t', "tag", "KEY=VALUE", OPT_LIST, INTO(tag), .help = "label"},
	{'f', "flat-file", NULL, OPT_FLAG, INTO(verbose), .not_from_env = true, .help = "never from outside"},
	{0, "secret", NULL, OPT_FLAG, INTO(verbose), .hidden = true, .help = "not for all"},
};
static const struct opt shared_opts[] = {
	{'s', "shared", NULL, OPT_FLAG, offsetof(struct args, base.shared), .help = "in common"},
};
#define CMD .opt = opts, .nr_opts = ARRAY_SIZE(opts), .shared = shared_opts, .nr_shared = 1, \
	.args_size = sizeof(struct args), .synopsis = "[OPTION…] WORD…", .help = "do something"
static const struct cmd cmd_any = {.name = "any", CMD, .operands = "file", .examples = "$ tacho any -q x\n    quiet"};
static const struct cmd cmd_stop = {.name = "stop", CMD, .stop_at_operand = true, .operands = "command"};
static const struct cmd cmd_covert = {.name = "covert", CMD, .hidden = true};
static const struct cmd *const cmds[] = {&cmd_any, &cmd_stop, &cmd_covert, NULL};
/* clang-format on */

#define WORDS_MAX 80

/* Words separated by blanks; the name of the command comes first. */
struct line {
	char text[1000], *argv[WORDS_MAX + 1], message[1000];
	int argc, first;
	struct args args;
	struct opt_origins origins;
};

static int parse(const struct cmd *cmd, struct line *l, const char *words)
{
	struct buf err;

	memset(l, 0, sizeof(*l));
	memset(&l->args, 0x55, sizeof(l->args));
	snprintf(l->text, sizeof(l->text), "%s", words);
	l->argv[l->argc++] = (char *)cmd->name;
	for (char *p = l->text; (p = p + strspn(p, " ")), *p && l->argc < WORDS_MAX;) {
		l->argv[l->argc++] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = 0;
	}
	buf_init(&err, 2000);
	l->first = cli_parse(cmd, l->argc, l->argv, &l->args, &l->origins, &err);
	snprintf(l->message, sizeof(l->message), "%s", (char *)err.data);
	buf_release(&err);
	return l->first;
}

/* The values of all options and the operands in one line, so that cases are lines too. */
static void show(const struct line *l, char *out, size_t size)
{
	const struct args *a = &l->args;
	int n = snprintf(out, size, "%s%s%s%s%s %llu %g %lld %s", a->quiet ? "q" : "", a->verbose ? "v" : "",
		a->summary ? "S" : "", a->base.shared ? "s " : " ", a->output ? a->output : "NULL",
		(unsigned long long)a->count, a->budget, (long long)(a->interval / NSEC_PER_MSEC),
		choices[a->wait]);

	for (unsigned i = 0; i < a->tag.nr; i++)
		n += snprintf(out + n, size - (size_t)n, "%s%s", i ? "," : " ", a->tag.item[i]);
	n += snprintf(out + n, size - (size_t)n, " |");
	for (int i = l->first; i < l->argc; i++)
		n += snprintf(out + n, size - (size_t)n, " %s", l->argv[i]);
}

static void assert_values(const struct cmd *cmd, const char *words, const char *expected)
{
	struct line l;
	char got[1000];

	if (parse(cmd, &l, words) < 0)
		fail_msg("'%s' was refused: %s", words, l.message);
	show(&l, got, sizeof(got));
	if (strcmp(got, expected))
		fail_msg("'%s' gave '%s', not '%s'", words, got, expected);
}

static void assert_refused(const struct cmd *cmd, const char *words, const char *expected)
{
	struct line l;

	if (parse(cmd, &l, words) >= 0)
		fail_msg("'%s' was accepted", words);
	if (strcmp(l.message, expected))
		fail_msg("'%s' said \"%s\", not \"%s\"", words, l.message, expected);
}

/* ---- command line ---- */

static void test_command_lines(void **state)
{
	static const struct {
		const char *words, *expected;
	} c[] = {
		{"", "S here 0 1 1000 tree |"},
		{"a b", "S here 0 1 1000 tree | a b"},
		{"-q", "qS here 0 1 1000 tree |"},
		{"-qv", "qvS here 0 1 1000 tree |"},
		{"-s", "Ss here 0 1 1000 tree |"},
		{"--shared", "Ss here 0 1 1000 tree |"},
		{"-qs", "qSs here 0 1 1000 tree |"},
		{"-i5", "S here 0 1 5000 tree |"},
		{"-i 5", "S here 0 1 5000 tree |"},
		{"-qi5", "qS here 0 1 5000 tree |"},
		{"-qi 5", "qS here 0 1 5000 tree |"},
		{"--interval=5", "S here 0 1 5000 tree |"},
		{"--interval 5", "S here 0 1 5000 tree |"},
		{"--interval 10Hz", "S here 0 1 100 tree |"},
		{"--interval=1ms", "S here 0 1 1 tree |"},
		{"--interval=24h", "S here 0 1 86400000 tree |"},
		{"-i5 -i 6 --interval=7", "S here 0 1 7000 tree |"},
		{"-o -q", "S -q 0 1 1000 tree |"},
		{"-o--", "S -- 0 1 1000 tree |"},
		{"--output=", "S  0 1 1000 tree |"},
		{"--output=a=b", "S a=b 0 1 1000 tree |"},
		{"-c9 --budget=0.5 --wait=never", "S here 9 0.5 1000 never |"},
		{"--wait root", "S here 0 1 1000 root |"},
		{"-t a=1 --tag b=2 -tc=3", "S here 0 1 1000 tree a=1,b=2,c=3 |"},
		{"--no-summary", " here 0 1 1000 tree |"},
		{"--no-summary --summary", "S here 0 1 1000 tree |"},
		{"-q --no-quiet", "S here 0 1 1000 tree |"},
		{"--quiet=yes --summary=off", "q here 0 1 1000 tree |"},
		{"--quiet=no", "S here 0 1 1000 tree |"},
		{"-- -q", "S here 0 1 1000 tree | -q"},
		{"-", "S here 0 1 1000 tree | -"},
		{"-q -- -- x", "qS here 0 1 1000 tree | -- x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		assert_values(&cmd_any, c[i].words, c[i].expected);
		assert_values(&cmd_stop, c[i].words, c[i].expected);
	}
}

static void test_operands_move_behind_the_options(void **state)
{
	(void)state;
	assert_values(&cmd_any, "a -q b -i 5 c", "qS here 0 1 5000 tree | a b c");
	assert_values(&cmd_any, "a b -- -q c", "S here 0 1 1000 tree | a b -q c");
	assert_values(&cmd_any, "a -o x -- b", "S x 0 1 1000 tree | a b");
	assert_values(&cmd_any, "a b c d -v", "vS here 0 1 1000 tree | a b c d");
}

static void test_options_end_at_the_first_operand(void **state)
{
	(void)state;
	assert_values(&cmd_stop, "-q make -v -- --help", "qS here 0 1 1000 tree | make -v -- --help");
	assert_values(&cmd_stop, "-q -- -v", "qS here 0 1 1000 tree | -v");
	assert_values(&cmd_stop, "-i 5 - -q", "S here 0 1 5000 tree | - -q");
}

static void test_help_is_asked_for(void **state)
{
	static const char *const words[] = {"--help", "-h", "-qh", "x --help", "--help --bogus"};
	struct line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(parse(&cmd_any, &l, words[i]), -ECANCELED);
	assert_int_equal(parse(&cmd_any, &l, "-- --help"), 2);
	assert_int_equal(parse(&cmd_stop, &l, "x --help"), 1);
	assert_int_equal(parse(&cmd_any, &l, "-o --help"), 3);
}

#define TIMES "a time such as 0.5, 500ms, 2s or 10Hz from 1ms to 24h"

static void test_messages_say_what_would_be_right(void **state)
{
	static const struct {
		const char *words, *message;
	} c[] = {
		{"--interval abc", "--interval takes " TIMES ", not 'abc'"},
		{"-i abc", "--interval takes " TIMES ", not 'abc'"},
		{"--interval=", "--interval takes " TIMES ", not ''"},
		{"--interval=0", "--interval takes " TIMES ", not '0'"},
		{"--interval=-5", "--interval takes " TIMES ", not '-5'"},
		{"--interval=25h", "--interval takes " TIMES ", not '25h'"},
		{"--interval=999us", "--interval takes " TIMES ", not '999us'"},
		{"--interval", "--interval needs a value: " TIMES},
		{"-qi", "--interval needs a value: " TIMES},
		{"-c 10", "--count takes a whole number from 1 to 9, not '10'"},
		{"-c 1.5", "--count takes a whole number from 1 to 9, not '1.5'"},
		{"-c 99999999999999999999",
			"--count takes a whole number from 1 to 9, not '99999999999999999999'"},
		{"--budget x", "--budget takes a number such as 0.5 from 0.01 to 100, not 'x'"},
		{"--budget 0", "--budget takes a number such as 0.5 from 0.01 to 100, not '0'"},
		{"--wait=tre", "--wait takes root, tree or never, not 'tre'"},
		{"--wait=", "--wait takes root, tree or never, not ''"},
		{"--quiet=maybe", "--quiet takes yes or no, not 'maybe'"},
		{"--output", "--output needs a value: FILE"},
		{"--intervall 5", "there is no option '--intervall'; did you mean '--interval'?"},
		{"--intervall=5", "there is no option '--intervall'; did you mean '--interval'?"},
		{"--inter 5", "there is no option '--inter'; did you mean '--interval'?"},
		{"--qiet", "there is no option '--qiet'; did you mean '--quiet'?"},
		{"--hlep", "there is no option '--hlep'; did you mean '--help'?"},
		{"--no-interval", "there is no option '--no-interval'; did you mean '--interval'?"},
		{"--no-quiet=yes", "there is no option '--no-quiet'; did you mean '--quiet'?"},
		{"--secre", "there is no option '--secre'; `tacho any --help` lists them"},
		{"--zzz", "there is no option '--zzz'; `tacho any --help` lists them"},
		{"-x", "there is no option '-x'; `tacho any --help` lists them"},
		{"-qx", "there is no option '-x'; `tacho any --help` lists them"},
		{"-5", "there is no option '-5'; `tacho any --help` lists them"},
		{"-é", "there is no option '-é'; `tacho any --help` lists them"},
		{"--b\033ad", "there is no option '--b\\x1bad'; `tacho any --help` lists them"},
		{"--wait=\xff\n", "--wait takes root, tree or never, not '\\xff\\n'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_refused(&cmd_any, c[i].words, c[i].message);
}

static void test_a_list_has_an_end(void **state)
{
	char words[OPT_LIST_MAX * 6 + 20] = "";
	size_t n = 0;
	struct line l;

	(void)state;
	for (unsigned i = 0; i < OPT_LIST_MAX; i++)
		n += (size_t)snprintf(words + n, sizeof(words) - n, "-ta=b ");
	assert_true(parse(&cmd_any, &l, words) > 0);
	assert_int_equal(l.args.tag.nr, OPT_LIST_MAX);
	snprintf(words + n, sizeof(words) - n, "-tz");
	assert_refused(&cmd_any, words, "--tag can be given at most 64 times");
}

/* ---- environment and file ---- */

static char config_home[64];

static void write_config(const char *text, size_t len)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tacho", config_home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/tacho/config", config_home);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void config(const char *text)
{
	write_config(text, strlen(text));
}

static int no_settings(void **state)
{
	static const char *const variable[] = {"TACHO_INTERVAL", "TACHO_QUIET", "TACHO_TAG", "TACHO_OUTPUT",
		"TACHO_WAIT", "TACHO_FLAT_FILE", "TACHO_SUMMARY", "TACHO_SHARED"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variable); i++)
		unsetenv(variable[i]);
	config("");
	return 0;
}

static void test_the_stronger_source_wins(void **state)
{
	struct line l;

	(void)state;
	config("interval = 3\noutput=file\n");
	assert_values(&cmd_any, "", "S file 0 1 3000 tree |");
	setenv("TACHO_INTERVAL", "4", 1);
	assert_values(&cmd_any, "", "S file 0 1 4000 tree |");
	assert_values(&cmd_any, "-i 5", "S file 0 1 5000 tree |");
	parse(&cmd_any, &l, "-q");
	assert_int_equal(l.origins.of[0], FROM_COMMAND_LINE);
	assert_int_equal(l.origins.of[2], FROM_PRESET);
	assert_int_equal(l.origins.of[3], FROM_FILE);
	assert_int_equal(l.origins.of[6], FROM_ENVIRONMENT);
	setenv("TACHO_INTERVAL", "", 1);
	assert_values(&cmd_any, "", "S file 0 1 3000 tree |");
}

static void test_a_list_replaces_a_weaker_one(void **state)
{
	(void)state;
	config("tag = a=1\ntag = b=2\n");
	assert_values(&cmd_any, "", "S here 0 1 1000 tree a=1,b=2 |");
	setenv("TACHO_TAG", "c=3,d=4", 1);
	assert_values(&cmd_any, "", "S here 0 1 1000 tree c=3,d=4 |");
	assert_values(&cmd_any, "-te=5", "S here 0 1 1000 tree e=5 |");
}

static void test_flags_from_outside(void **state)
{
	(void)state;
	setenv("TACHO_QUIET", "1", 1);
	setenv("TACHO_SUMMARY", "no", 1);
	setenv("TACHO_FLAT_FILE", "1", 1);
	config("flat-file = yes\nshared\n");
	assert_values(&cmd_any, "", "qs here 0 1 1000 tree |");
	assert_values(&cmd_any, "--no-quiet", "s here 0 1 1000 tree |");
}

static void test_the_users_file_is_forgiving(void **state)
{
	(void)state;
	config("# comment\r\n\n  interval\t=  2s \r\n=\n==\nunknown = 1\noutput = \" a = b \"\nwait='never'");
	assert_values(&cmd_any, "", "S  a = b  0 1 2000 never |");
	config("interval = 2\ninterval = 3\n");
	assert_values(&cmd_any, "", "S here 0 1 3000 tree |");
	config("output = \"\noutput=\"");
	assert_values(&cmd_any, "", "S \" 0 1 1000 tree |");
	write_config("interval = 2\0 3\noutput = x\n", 27);
	assert_values(&cmd_any, "", "S here 0 1 2000 tree |");
}

static void test_a_bad_value_says_where_it_came_from(void **state)
{
	char message[300];

	(void)state;
	setenv("TACHO_INTERVAL", "soon", 1);
	assert_refused(
		&cmd_any, "", "TACHO_INTERVAL in the environment: --interval takes " TIMES ", not 'soon'");
	assert_values(&cmd_any, "-i 5", "S here 0 1 5000 tree |");
	unsetenv("TACHO_INTERVAL");
	config("\n\nwait = long\n");
	snprintf(message, sizeof(message), "%s/tacho/config:3: --wait takes root, tree or never, not 'long'",
		config_home);
	assert_refused(&cmd_any, "", message);
	assert_values(&cmd_any, "--wait=root", "S here 0 1 1000 root |");
	setenv("TACHO_WAIT", "tree", 1);
	assert_values(&cmd_any, "", "S here 0 1 1000 tree |");
}

static void assert_file_check(const char *text, const char *expected)
{
	char whole[600] = "";
	struct buf err;

	config(text);
	buf_init(&err, 5000);
	cli_check_user_file(cmds, &err);
	if (*expected)
		snprintf(whole, sizeof(whole), "%s/tacho/config%s", config_home, expected);
	assert_string_equal((char *)err.data, whole);
	buf_release(&err);
}

static void test_unknown_settings_are_found(void **state)
{
	(void)state;
	assert_file_check("# intervall = 3\ninterval = 3\n\n\t#x\nshared=1\n", "");
	assert_file_check(
		"\nintervall = 3\n", ":2: there is no setting 'intervall'; did you mean 'interval'?\n");
	assert_file_check("flat-file = 1\n", ":1: 'flat-file' can only be given on the command line\n");
	assert_file_check("flat-fil = 1\n", "");
	assert_file_check("of-another-program = 1\n", "");
	assert_file_check("interval 5\n", ":1: there is no setting 'interval 5'; did you mean 'interval'?\n");
	assert_file_check(
		"interva\033l\n", ":1: there is no setting 'interva\\x1bl'; did you mean 'interval'?\n");
}

static void test_a_huge_or_strange_file_is_not_used(void **state)
{
	char *huge = calloc(1, 70000), path[128];
	struct buf err;

	(void)state;
	memset(huge, '\n', 69999);
	memcpy(huge, "quiet\n", 6);
	assert_file_check(huge, " is not used: File too large\n");
	assert_values(&cmd_any, "", "S here 0 1 1000 tree |");
	free(huge);

	snprintf(path, sizeof(path), "%s/tacho/config", config_home);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	buf_init(&err, 1000);
	cli_check_user_file(cmds, &err);
	assert_non_null(strstr((char *)err.data, "is not used"));
	buf_release(&err);
	assert_values(&cmd_any, "", "S here 0 1 1000 tree |");
	unlink(path);
	assert_values(&cmd_any, "", "S here 0 1 1000 tree |");
}

/* ---- pages ---- */

static unsigned widest(const struct buf *b)
{
	unsigned most = 0;

	for (const char *line = (char *)b->data; *line;) {
		size_t n = strcspn(line, "\n");
		char one[1000];

		snprintf(one, sizeof(one), "%.*s", (int)n, line);
		most = MAX(most, (unsigned)utf8_columns(one));
		line += n + (line[n] == '\n');
	}
	return most;
}

static void test_help_of_all_commands_fits(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (const struct cmd *const *c = commands; *c; c++)
		for (unsigned width = 60; width <= 100; width += 20) {
			buf_reset(&b);
			cli_help(*c, &b, width);
			cli_manual(*c, &b, width);
			if (widest(&b) > MAX(width, 80))
				fail_msg("%s: %u columns at %u", (*c)->name, widest(&b), width);
		}
	buf_reset(&b);
	cli_overview(commands, &b);
	assert_true(widest(&b) <= 80);
	assert_int_equal(b.err, 0);
	buf_release(&b);
}

static void test_help_shows_every_option_but_hidden_ones(void **state)
{
	static const char *const lines[] = {
		"Usage: tacho any [OPTION…] WORD…\n",
		"\nDo something.\n",
		"\n  -q, --quiet               say nothing\n",
		"\n      --no-summary          no summary\n",
		"\n  -o, --output FILE         where. Default: here\n",
		"\n  -s, --shared              in common\n",
		"\n  -h, --help                this help\n",
		"\n  $ tacho any -q x\n      quiet\n",
	};
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	cli_help(&cmd_any, &b, 80);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strstr((char *)b.data, lines[i]))
			fail_msg("no '%s' in:\n%s", lines[i], (char *)b.data);
	assert_null(strstr((char *)b.data, "secret"));
	cli_manual(&cmd_any, &b, 80);
	assert_non_null(strstr((char *)b.data, "\n      Default: 1s\n      Environment: TACHO_INTERVAL\n"));
	assert_null(strstr((char *)b.data, "secret"));
	assert_null(strstr((char *)b.data, "TACHO_FLAT_FILE"));
	buf_release(&b);
}

static void assert_wrapped(
	const char *text, unsigned at, unsigned indent, unsigned width, const char *expected)
{
	struct buf b;

	buf_init(&b, 1000);
	wrap_text(&b, text, at, indent, width);
	assert_string_equal((char *)b.data, expected);
	buf_release(&b);
}

static void test_text_is_wrapped(void **state)
{
	(void)state;
	assert_wrapped("aa bb cc", 0, 0, 5, "aa bb\ncc\n");
	assert_wrapped("aa bb cc", 0, 0, 4, "aa\nbb\ncc\n");
	assert_wrapped("aa bb cc", 0, 2, 7, "  aa bb\n  cc\n");
	assert_wrapped("aa bb", 3, 2, 6, "aa\n  bb\n");
	assert_wrapped("aa bb", 1, 4, 20, "   aa bb\n");
	assert_wrapped("aaaaaaaa bb", 0, 0, 4, "aaaaaaaa\nbb\n");
	assert_wrapped("éé éé", 0, 0, 5, "éé éé\n");
	assert_wrapped("a\n\nb", 0, 2, 9, "  a\n\n  b\n");
	assert_wrapped("", 0, 2, 9, "");
}

static void test_man_pages_hide_nothing_from_roff(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 16);
	cli_man(&cmd_any, &b);
	assert_non_null(strstr((char *)b.data, "\n.TH TACHO-ANY 1 \""));
	assert_non_null(
		strstr((char *)b.data, "It\\(aqs \\fBthis\\fR.\n.IP\n\\&.Then \\e \\(aqthat\\(aq \\-\n"));
	assert_non_null(strstr(
		(char *)b.data, ".TP\n\\fB\\-i\\fR, \\fB\\-\\-interval\\fR \\fITIME\\fR\nHow often.\n"));
	assert_non_null(strstr((char *)b.data, ".EX\n$ tacho any \\-q x\n.EE\n"));
	assert_null(strstr((char *)b.data, "secret"));
	buf_reset(&b);
	cli_man_main(cmds, &b);
	assert_non_null(strstr((char *)b.data, ".BR tacho\\-stop (1)\n"));
	assert_null(strstr((char *)b.data, "covert"));
	buf_release(&b);
}

static void test_completions_know_all_commands(void **state)
{
	static const char *const shell[] = {"bash", "zsh", "fish"};
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(shell); i++) {
		buf_reset(&b);
		assert_int_equal(cli_completion(cmds, shell[i], &b), 0);
		assert_int_equal(b.err, 0);
		assert_non_null(strstr((char *)b.data, "any"));
		assert_non_null(strstr((char *)b.data, "no-summary"));
		assert_null(strstr((char *)b.data, "covert"));
		assert_null(strstr((char *)b.data, "secret"));
	}
	assert_int_equal(cli_completion(cmds, "csh", &b), -EINVAL);
	buf_release(&b);
}

static void test_near_commands(void **state)
{
	static const struct {
		const char *word, *near;
	} c[] = {{"any", "any"}, {"nay", NULL}, {"an", "any"}, {"ani", "any"}, {"sotp", "stop"},
		{"stopp", "stop"}, {"s", NULL}, {"", NULL}, {"covert", NULL}, {"make", NULL}, {"st", "stop"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		const char *near = cli_nearest(cmds, c[i].word);

		if (!c[i].near != !near || (near && strcmp(near, c[i].near)))
			fail_msg("'%s' is near '%s'", c[i].word, near ? near : "nothing");
	}
	assert_ptr_equal(cli_find(cmds, "covert"), &cmd_covert);
	assert_null(cli_find(cmds, "stopp"));
}

/* ---- the rows of the real commands ---- */

static void check_row(const struct cmd *cmd, size_t index)
{
	const struct opt *o = cmd_opt(cmd, index);
	bool valued = o->type != OPT_FLAG;

	if (!o->long_name ||
		strspn(o->long_name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(o->long_name))
		fail_msg("%s: name '%s'", cmd->name, o->long_name);
	if (str_starts(o->long_name, "no-") || !strcmp(o->long_name, "help") || o->short_name == 'h')
		fail_msg("%s --%s is taken", cmd->name, o->long_name);
	if (valued != (o->arg != NULL) || (o->type == OPT_CHOICE) != (o->choices != NULL))
		fail_msg("%s --%s: value", cmd->name, o->long_name);
	if (!o->help || !*o->help || o->help[strlen(o->help) - 1] == '.' || strlen(o->help) > 76)
		fail_msg("%s --%s: help is one line without a full stop", cmd->name, o->long_name);
	if (o->type == OPT_LIST && o->preset)
		fail_msg("%s --%s: a list has no preset", cmd->name, o->long_name);
	if (o->into >= (cmd_opt_of_group(cmd, index) ? cmd->group->args_size : cmd->args_size))
		fail_msg("%s --%s: writes outside its args", cmd->name, o->long_name);
}

static void test_rows_are_sound(void **state)
{
	(void)state;
	for (const struct cmd *const *c = commands; *c; c++) {
		assert_non_null((*c)->synopsis);
		assert_non_null((*c)->help);
		assert_non_null((*c)->run);
		assert_true(cmd_nr_opts(*c) <= OPTS_MAX);
		for (size_t i = 0; i < cmd_nr_opts(*c); i++) {
			check_row(*c, i);
			for (size_t k = 0; k < i; k++) {
				const struct opt *a = cmd_opt(*c, i), *b = cmd_opt(*c, k);

				if (!strcmp(a->long_name, b->long_name) ||
					(a->short_name && a->short_name == b->short_name))
					fail_msg("%s: --%s and --%s collide", (*c)->name, a->long_name,
						b->long_name);
			}
		}
	}
}

static void test_presets_parse(void **state)
{
	(void)state;
	for (const struct cmd *const *c = commands; *c; c++) {
		void *args = calloc(1, (*c)->args_size + 1);
		char *argv[] = {(char *)(*c)->name, NULL};
		struct buf err;

		buf_init(&err, 1000);
		if (cli_parse(*c, 1, argv, args, NULL, &err) != 1)
			fail_msg("%s: %s", (*c)->name, (char *)err.data);
		buf_release(&err);
		free(args);
	}
}

/* ---- options of recording commands ---- */

static const struct cmd cmd_record = {.name = "run",
	.shared = record_opts,
	.nr_shared = NR_RECORD_OPTS,
	.args_size = sizeof(struct record_options),
	.stop_at_operand = true,
	.synopsis = "",
	.help = "record"};

static void test_record_options(void **state)
{
	char *argv[] = {(char *)"run", (char *)"-i10ms", (char *)"-m", (char *)"-pss,+fds", (char *)"-tk=v=w",
		(char *)"-f", (char *)"--children=no", (char *)"make", (char *)"-j8", NULL};
	struct record_options o;
	struct buf err;

	(void)state;
	buf_init(&err, 1000);
	assert_int_equal(cli_parse(&cmd_record, 9, argv, &o, NULL, &err), 7);
	assert_int_equal(o.interval_ns, 10 * NSEC_PER_MSEC);
	assert_int_equal(o.flush_ns, NSEC_PER_SEC);
	assert_int_equal(o.duration_ns, 0);
	assert_true(o.budget_percent == 1);
	assert_string_equal(o.output, "{name}-{datetime}.tacho");
	assert_string_equal(o.metrics.item[0], "-pss,+fds");
	assert_string_equal(o.tag.item[0], "k=v=w");
	assert_int_equal(o.children, 0);
	assert_true(o.force && o.summary && !o.quiet && !o.verbose && !o.json);
	assert_int_equal(record_options_check(&o, &err), 0);
	o.tag.item[0] = "k";
	assert_int_equal(record_options_check(&o, &err), -EINVAL);
	assert_string_equal((char *)err.data,
		"--tag takes KEY=VALUE, the key of letters, digits, '_', '-' and '.', not 'k'");
	o.tag.item[0] = "=v";
	assert_int_equal(record_options_check(&o, &err), -EINVAL);
	o.tag.item[0] = "a b=v";
	assert_int_equal(record_options_check(&o, &err), -EINVAL);
	buf_release(&err);
}

static void test_helpers(void **state)
{
	static const struct {
		const char *text;
		int mask;
	} c[] = {{"all", HELPERS_ALL}, {"none", 0}, {"", 0}, {"connector", HELPER_CONNECTOR},
		{"cgroup, taskstats", HELPER_CGROUP | HELPER_TASKSTATS}, {",cgroup,,", HELPER_CGROUP},
		{"cgroups", -EINVAL}, {"all,x", -EINVAL}};
	struct buf err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		unsigned mask = 99;
		int r;

		buf_init(&err, 1000);
		r = record_helpers(c[i].text, &mask, &err);
		assert_int_equal(r < 0 ? r : (int)mask, c[i].mask);
		assert_int_equal(err.len > 0, r < 0);
		buf_release(&err);
	}
}

/* 2026-11-15 19:30:05 UTC */
#define WALL_NS (INT64_C(1794771005) * NSEC_PER_SEC)

static const struct output_names names = {
	.command = "/usr/bin/make", .host = "n1", .pid = 42, .wall_ns = WALL_NS};

static void assert_path(const char *template, const struct output_names *n, const char *expected)
{
	struct buf out, err;

	buf_init(&out, 4096);
	buf_init(&err, 1000);
	int kind = output_path(template, n, &out, &err);

	if (kind < 0)
		fail_msg("'%s': %s", template, (char *)err.data);
	assert_int_equal(kind,
		!strcmp(template, "/tmp") || strstr(template, "dir/") || strstr(template, "{datetime}")
			? OUTPUT_MADE
			: strstr(template, "{name}") || strstr(template, "{host}") ||
				strstr(template, "{jobid}")
			? OUTPUT_FILLED
			: OUTPUT_LITERAL);
	assert_string_equal((char *)out.data, expected);
	buf_release(&out);
	buf_release(&err);
}

/* NULL: there is no other rank. */
static void assert_with_rank(const char *path, const char *expected)
{
	struct buf out;

	buf_init(&out, 4096);
	buf_adds(&out, path);
	assert_int_equal(output_add_rank(&out), expected != NULL);
	assert_string_equal((char *)out.data, expected ? expected : path);
	buf_release(&out);
}

static void test_output_names(void **state)
{
	static const struct {
		const char *template, *expected;
	} c[] = {
		{"x.tacho", "x.tacho"},
		{"{name}-{datetime}.tacho", "make-20261115-193005.tacho"},
		{"{host}/{pid}_{rank}", "n1/42_0"},
		{"{jobid}", "42"},
		{"{{{name}}}", "{make}"},
		{"a}b", "a}b"},
		{"no-such-dir/", "no-such-dir/make-20261115-193005.tacho"},
		{"no-such-dir/{host}/", "no-such-dir/n1/make-20261115-193005.tacho"},
		{"/tmp", "/tmp/make-20261115-193005.tacho"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_path(c[i].template, &names, c[i].expected);
}

static void test_output_names_are_safe(void **state)
{
	static const struct {
		const char *name, *command, *expected;
	} c[] = {
		{NULL, "a.out", "d/a.out"},
		{NULL, "/opt/bin/gcc//", "d/gcc"},
		{NULL, "/", "d/_"},
		{NULL, "", "d/tacho"},
		{NULL, NULL, "d/tacho"},
		{NULL, "..", "d/_."},
		{NULL, "./-rf", "d/_rf"},
		{NULL, "a\nb\033c\x7f", "d/a_b_c_"},
		{NULL, "caf\xc3\xa9 \xff", "d/caf\xc3\xa9 _"},
		{NULL, "\xc2\x9b", "d/_"},
		{"../../etc/passwd", "x", "d/_._.._etc_passwd"},
		{"my run", "x", "d/my run"},
		{"", "x", "d/x"},
	};
	struct output_names n = names;
	char longest[301], expected[200] = "d/";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		n.name = c[i].name;
		n.command = c[i].command;
		assert_path("d/{name}", &n, c[i].expected);
	}
	memset(longest, 'x', 300);
	longest[300] = 0;
	memset(expected + 2, 'x', 100);
	n.name = longest;
	assert_path("d/{name}", &n, expected);
}

static void test_output_names_of_batch_systems(void **state)
{
	(void)state;
	setenv("SLURM_JOB_ID", "77", 1);
	setenv("PMI_RANK", "3", 1);
	assert_path("{jobid}.{rank}", &names, "77.3");
	/* Ranks that mpirun starts from a job script have the script's. */
	setenv("SLURM_PROCID", "0", 1);
	assert_path("{jobid}.{rank}", &names, "77.3");
	assert_path("/tmp", &names, "/tmp/make-20261115-193005-rank3.tacho");
	assert_path("x.tacho", &names, "x.tacho");
	assert_with_rank("d/x.tacho", "d/x-rank3.tacho");
	assert_with_rank("x", "x-rank3");
	setenv("PMI_SIZE", "1", 1);
	assert_with_rank("x.tacho", NULL);
	assert_path("{name}-{datetime}.tacho", &names, "make-20261115-193005.tacho");
	unsetenv("PMI_SIZE");
	unsetenv("PMI_RANK");
	/* A job script is no rank; a task of a step with several is one. */
	assert_path("{name}-{datetime}.tacho", &names, "make-20261115-193005.tacho");
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	assert_path("{name}-{datetime}.tacho", &names, "make-20261115-193005.tacho");
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	assert_path("{name}-{datetime}.tacho", &names, "make-20261115-193005-rank0.tacho");
	unsetenv("SLURM_STEP_NUM_TASKS");
	setenv("SLURM_PROCID", "5", 1);
	assert_path("{jobid}.{rank}", &names, "77.5");
	setenv("SLURM_JOB_ID", "", 1);
	setenv("PBS_JOBID", "3[1].head", 1);
	assert_path("{jobid}", &names, "3[1].head");
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_PROCID");
	unsetenv("PBS_JOBID");
	unsetenv("PMI_RANK");
}

static void test_output_names_refused(void **state)
{
	static const struct {
		const char *template, *message;
	} c[] = {
		{"", "--output takes the name of a file or directory, not an empty text"},
		{"{nam}",
			"--output has no placeholder '{nam}'; there are {name} {datetime} {host} {jobid} "
			"{pid} {rank}"},
		{"{}",
			"--output has no placeholder '{}'; there are {name} {datetime} {host} {jobid} {pid} "
			"{rank}"},
		{"a{name", "--output has a '{' without its '}'; write '{{' for a brace itself"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		struct buf out, err;

		buf_init(&out, 4096);
		buf_init(&err, 1000);
		assert_int_equal(output_path(c[i].template, &names, &out, &err), -EINVAL);
		assert_string_equal((char *)err.data, c[i].message);
		buf_release(&out);
		buf_release(&err);
	}
}

static void test_output_name_too_long(void **state)
{
	struct buf out, err;

	(void)state;
	buf_init(&out, 10);
	buf_init(&err, 1000);
	assert_int_equal(output_path("12345678901", &names, &out, &err), -ENOBUFS);
	buf_release(&out);
	buf_release(&err);
}

static int set_up(void **state)
{
	static const char *const variable[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "OAR_JOB_ID",
		"OAR_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID", "SLURM_PROCID", "PMIX_RANK", "PMI_RANK",
		"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "FLUX_TASK_RANK",
		"SLURM_STEP_NUM_TASKS", "PMI_SIZE"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variable); i++)
		unsetenv(variable[i]);
	setenv("TZ", "UTC", 1);
	snprintf(config_home, sizeof(config_home), "/tmp/test_cli.XXXXXX");
	if (!mkdtemp(config_home))
		return -1;
	setenv("XDG_CONFIG_HOME", config_home, 1);
	return 0;
}

static int tear_down(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/tacho/config", config_home);
	unlink(path);
	snprintf(path, sizeof(path), "%s/tacho", config_home);
	rmdir(path);
	return rmdir(config_home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_command_lines, no_settings),
		cmocka_unit_test_setup(test_operands_move_behind_the_options, no_settings),
		cmocka_unit_test_setup(test_options_end_at_the_first_operand, no_settings),
		cmocka_unit_test_setup(test_help_is_asked_for, no_settings),
		cmocka_unit_test_setup(test_messages_say_what_would_be_right, no_settings),
		cmocka_unit_test_setup(test_a_list_has_an_end, no_settings),
		cmocka_unit_test_setup(test_the_stronger_source_wins, no_settings),
		cmocka_unit_test_setup(test_a_list_replaces_a_weaker_one, no_settings),
		cmocka_unit_test_setup(test_flags_from_outside, no_settings),
		cmocka_unit_test_setup(test_the_users_file_is_forgiving, no_settings),
		cmocka_unit_test_setup(test_a_bad_value_says_where_it_came_from, no_settings),
		cmocka_unit_test_setup(test_unknown_settings_are_found, no_settings),
		cmocka_unit_test_setup(test_a_huge_or_strange_file_is_not_used, no_settings),
		cmocka_unit_test_setup(test_help_of_all_commands_fits, no_settings),
		cmocka_unit_test_setup(test_help_shows_every_option_but_hidden_ones, no_settings),
		cmocka_unit_test_setup(test_text_is_wrapped, no_settings),
		cmocka_unit_test_setup(test_man_pages_hide_nothing_from_roff, no_settings),
		cmocka_unit_test_setup(test_completions_know_all_commands, no_settings),
		cmocka_unit_test_setup(test_near_commands, no_settings),
		cmocka_unit_test_setup(test_rows_are_sound, no_settings),
		cmocka_unit_test_setup(test_presets_parse, no_settings),
		cmocka_unit_test_setup(test_record_options, no_settings),
		cmocka_unit_test_setup(test_helpers, no_settings),
		cmocka_unit_test_setup(test_output_names, no_settings),
		cmocka_unit_test_setup(test_output_names_are_safe, no_settings),
		cmocka_unit_test_setup(test_output_names_of_batch_systems, no_settings),
		cmocka_unit_test_setup(test_output_names_refused, no_settings),
		cmocka_unit_test_setup(test_output_name_too_long, no_settings),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
