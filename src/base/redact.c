/* A line is looked at word by word; words end at NUL (the arguments) and at blanks (a shell's text, headers).
 * What is to be blanked is marked byte by byte, so that rules may overlap, and the marked runs are replaced
 * in the end.
 *
 * Where it is doubtful how far a secret reaches, more is blanked, not less. Names are recognized by their
 * last part: `--db-password` holds one, `--password-file` and `--max-tokens` do not. */
#include "base/redact.h"

#include "base/str.h"
#include "base/text.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_LEN 64 /* of a name its last bytes are looked at */
#define MATCHES_MAX 64	/* of one expression in one line */
#define KEY_LEAST 20	/* a URL's user of so many letters is a key */

struct redact {
	bool known;
	unsigned nr;
	uint64_t lines;
	char text[REDACT_LINE_MAX + 1]; /* the line with blanks for NUL, then the line as it is written */
	bool mark[REDACT_LINE_MAX];
	regex_t regex[];
};

/* ---- names ---- */

static bool is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return true;
	return false;
}

static bool ends_in_one_of(const char *word, const char *const *list)
{
	for (size_t n = strlen(word); *list; list++)
		if (n >= strlen(*list) && !strcmp(word + n - strlen(*list), *list))
			return true;
	return false;
}

/* "--dbPassword" becomes "db_password". */
static void plain_name(const char *name, size_t len, char out[static 2 * NAME_MAX_LEN + 1])
{
	size_t n = 0;

	if (len > NAME_MAX_LEN) {
		name += len - NAME_MAX_LEN;
		len = NAME_MAX_LEN;
	}
	for (size_t i = 0; i < len; i++) {
		bool hump = i && islower((unsigned char)name[i - 1]) && isupper((unsigned char)name[i]);

		if (hump)
			out[n++] = '_';
		out[n++] = isalnum((unsigned char)name[i]) ? (char)tolower((unsigned char)name[i]) : '_';
	}
	while (n && out[n - 1] == '_')
		n--;
	out[n] = 0;
}

enum name_kind {
	HOLDS_NOTHING,
	HOLDS_IF_JOINED, /* name=value, but not name value: -pass of ffmpeg takes a number */
	HOLDS_SECRET,
	HOLDS_LINE, /* all that follows, blanks included: Authorization: Bearer … */
};

static enum name_kind judge_name(const char *name, size_t len)
{
	static const char *const endings[] = {"password", "passwd", "passphrase", "passcode", "secret",
		"token", "apikey", "accesskey", "secretkey", "privatekey", "authkey", "credential",
		"credentials", "signature", "storepass", "keypass", "dbpass", "userpass", "rootpass", NULL};
	static const char *const keys[] = {"api", "access", "secret", "private", "auth", "account", "shared",
		"encryption", "signing", "master", "storage", "subscription", NULL};
	/* Of language models: marks in a text, and their number. */
	static const char *const no_tokens[] = {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "max",
		"min", "special", "per", "stop", "end", "start", "num", "image", NULL};
	static const char *const lines[] = {"authorization", "cookie", NULL};
	char text[2 * NAME_MAX_LEN + 1], *last, *before;

	plain_name(name, len, text);
	last = strrchr(text, '_');
	before = text;
	if (last) {
		*last++ = 0;
		before = strrchr(text, '_');
		before = before ? before + 1 : text;
	} else {
		last = text;
		before = (char *)"";
	}
	if (ends_in_one_of(last, lines))
		return HOLDS_LINE;
	if (!strcmp(last, "token") && is_one_of(before, no_tokens))
		return HOLDS_NOTHING;
	if (ends_in_one_of(last, endings) || (!strcmp(last, "key") && is_one_of(before, keys)) ||
		!strcmp(last, "pw") || !strcmp(last, "jwt") || (*before && !strcmp(last, "pass")) ||
		(*before && !strcmp(last, "pwd") && strcmp(before, "old")))
		return HOLDS_SECRET;
	return !strcmp(last, "pass") || !strcmp(last, "sig") ? HOLDS_IF_JOINED : HOLDS_NOTHING;
}

/* ---- words ---- */

struct redact_scan {
	struct redact *r;
	const char *line, *end;
	const char *arg, *arg_end; /* the argument in which the word stands */
	bool shell;		   /* it is a text for a shell: it follows -c */
	const char *at;		   /* in a shell's text: up to here the quotes are known */
	char quote;		   /* that is open there; 0: none */
	uint64_t programs;	   /* of this command, by their place in the table: a bit for each */
	bool logs_in;		   /* it has the word `login` */
};

static bool is_blank(char c)
{
	return !c || c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static void mark(struct redact_scan *s, const char *from, const char *to)
{
	if (to > from)
		memset(s->r->mark + (from - s->line), 1, (size_t)(to - from));
}

/* Goes on to p in a shell's text. A command ends where a separator stands outside of quotes, and its options
 * with it: the -u of `curl h | sort -u` is not curl's. */
static void follow_quotes(struct redact_scan *s, const char *p)
{
	for (; s->at < p; s->at++) {
		char c = *s->at;

		if (c == '\\' && s->quote != '\'' && s->at + 1 < p)
			s->at++;
		else if (s->quote)
			s->quote = c == s->quote ? 0 : s->quote;
		else if (is_quote(c))
			s->quote = c;
		else if (strchr(";|&\n", c))
			s->programs = s->logs_in = 0;
	}
}

/* From an opening quote to what closes it. A quote behind a backslash closes only one that stood behind one.
 */
static const char *end_of_quoted(const char *from, const char *end, bool escaped)
{
	for (const char *p = from + 1; p < end; p++) {
		if (*p == '\\' && !escaped)
			p++;
		else if (*p == *from)
			return escaped && p[-1] == '\\' ? p - 1 : p;
	}
	return end;
}

/* The end of a word of a shell's text, whose pieces may be quoted; a quote that is open around it ends it. */
static const char *end_of_word(struct redact_scan *s, const char *p)
{
	const char *close;

	follow_quotes(s, p);
	while (p < s->arg_end && !is_blank(*p) && (!s->quote || *p != s->quote) && !strchr(";|&)`", *p)) {
		size_t n =
			*p == '\\' && p + 1 < s->arg_end ? 2 : 1; /* a quote may stand behind a backslash */

		close = is_quote(p[n - 1]) ? memmem(p + n, (size_t)(s->arg_end - p) - n, p, n) : p;
		if (!close)
			break;
		p = close + n;
	}
	return MIN(p, s->arg_end);
}

/* Marks what of [from, to) is behind the separator: `user:secret`. 0: all. */
static void mark_behind(struct redact_scan *s, const char *from, const char *to, char separator)
{
	const char *at = separator ? memchr(from, separator, (size_t)(to - from)) : NULL;

	if (separator && !at)
		return;
	from = at ? at + 1 : from;
	if (to > from && is_quote(to[-1]) && !memchr(from, to[-1], (size_t)(to - from - 1)))
		to -= to - 1 > from && to[-2] == '\\' ? 2 : 1; /* it was opened before */
	mark(s, from, to);
}

/* Marks the value that begins here; returns where it ends. */
static const char *blank_value(struct redact_scan *s, const char *from, bool whole_line)
{
	const char *p = from;
	bool escaped;

	if (p < s->arg_end && (is_quote(*p) || (*p == '\\' && p + 1 < s->arg_end && is_quote(p[1])))) {
		escaped = *p == '\\';
		p += escaped;
		from = end_of_quoted(p, s->arg_end, escaped);
		mark(s, p + 1, from);
		return from;
	}
	if (s->shell && !whole_line) {
		p = end_of_word(s, p);
		mark(s, from, p);
		return p;
	}
	while (p < s->arg_end && !is_quote(*p) && (whole_line ? *p != '\n' : !is_blank(*p)))
		p++;
	if (p > from && p[-1] == '\\' && p < s->arg_end && is_quote(*p))
		p--;
	mark(s, from, p);
	return p;
}

static const char *blank_parameter(struct redact_scan *s, const char *from)
{
	const char *p = from;

	while (p < s->arg_end && !is_blank(*p) && !is_quote(*p) && *p != '&' && *p != '#')
		p++;
	mark(s, from, p);
	return p;
}

/* `name=value`, `name = value` and `name: value` from the name's end. Returns where to go on; NULL when it is
 * none. */
static const char *joined_value(struct redact_scan *s, const char *name, const char *name_end)
{
	enum name_kind kind = judge_name(name, (size_t)(name_end - name));
	const char *p = name_end, *begin = s->arg;
	char separator;
	bool spaced;

	if (kind == HOLDS_NOTHING)
		return NULL;
	while (p < s->arg_end && (is_quote(*p) || *p == '\\'))
		p++;
	spaced = p == name_end && p < s->arg_end && *p == ' '; /* as in files of settings */
	while (spaced && p < s->arg_end && *p == ' ')
		p++;
	if (p == s->arg_end || (*p != '=' && (spaced || *p != ':')))
		return NULL;
	separator = *p++;
	if (p < s->arg_end && (separator == ':' ? *p == ':' || *p == '/' : spaced && *p == '='))
		return NULL;
	while ((separator == ':' || spaced) && p < s->arg_end && *p == ' ')
		p++;
	if (name > begin && (name[-1] == '?' || name[-1] == '&')) /* of a URL, or a form */
		return blank_parameter(s, p);
	/* An argument of its own is all value, blanks included. */
	if (begin == name && !s->shell && kind != HOLDS_LINE) {
		mark(s, p, s->arg_end);
		return s->arg_end;
	}
	if (s->shell)
		follow_quotes(s, p);
	return blank_value(s, p, kind == HOLDS_LINE || (spaced && s->quote));
}

/* ---- what single programs take ---- */

enum {
	JOINED = 1,
	NEXT = 2,
	AFTER_COLON = 4,
	BY_PREFIX = 8,
	AFTER_PERCENT = 16,
	ONCE = 32,  /* what follows is another program's */
	LOGIN = 64, /* of its command `login` only */
};

static const struct program {
	const char *name;
	const char *flags; /* letters */
	unsigned how;
} programs[] = {
	{"mysql", "p", JOINED | BY_PREFIX},
	{"mariadb", "p", JOINED | BY_PREFIX},
	{"mongo", "p", JOINED | NEXT | BY_PREFIX},
	{"ldap", "w", JOINED | NEXT | BY_PREFIX},
	{"snmp", "AX", JOINED | NEXT | BY_PREFIX},
	{"sshpass", "p", JOINED | NEXT | ONCE},
	{"redis-cli", "a", JOINED | NEXT},
	{"curl", "uU", JOINED | NEXT | AFTER_COLON},
	{"ipmitool", "P", JOINED | NEXT},
	{"sqlcmd", "P", JOINED | NEXT},
	{"zip", "P", JOINED | NEXT},
	{"unzip", "P", JOINED | NEXT},
	{"7z", "p", JOINED | BY_PREFIX},
	{"http", "a", NEXT | AFTER_COLON},
	{"https", "a", NEXT | AFTER_COLON},
	{"openssl", "kK", NEXT},
	{"mosquitto_", "P", NEXT | BY_PREFIX},
	{"smbclient", "U", JOINED | NEXT | AFTER_PERCENT},
	{"rpcclient", "U", JOINED | NEXT | AFTER_PERCENT},
	{"docker", "p", JOINED | NEXT | LOGIN},
	{"podman", "p", JOINED | NEXT | LOGIN},
	{"nerdctl", "p", JOINED | NEXT | LOGIN},
	{"buildah", "p", JOINED | NEXT | LOGIN},
	{"skopeo", "p", JOINED | NEXT | LOGIN},
	{"helm", "p", JOINED | NEXT | LOGIN},
	{"oc", "p", JOINED | NEXT | LOGIN},
	{"az", "p", JOINED | NEXT | LOGIN},
	{"cf", "p", JOINED | NEXT | LOGIN},
};

_Static_assert(ARRAY_SIZE(programs) <= 64, "a bit for each");

static char separator_of(const struct program *g)
{
	return g->how & AFTER_COLON ? ':' : g->how & AFTER_PERCENT ? '%' : 0;
}

/* The name of a program: behind its folder, and behind what a shell may have before it. */
static const char *program_name(const char *word, const char *end)
{
	const char *name = end;

	while (name > word && !strchr("/\"'();&|$`={}\\", name[-1]))
		name--;
	return name;
}

/* A file may be called like a program, so all programs of a command count. */
static uint64_t find_programs(const char *word, const char *end)
{
	uint64_t found = 0;
	size_t n;

	while (end > word && strchr("\"'\\", end[-1]))
		end--;
	word = program_name(word, end);
	n = (size_t)(end - word);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		size_t k = strlen(programs[i].name);

		if (n >= k && !memcmp(word, programs[i].name, k) && (n == k || programs[i].how & BY_PREFIX))
			found |= UINT64_C(1) << i;
	}
	return found;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

/* The argument that holds p; `shell`: the one before it was -c, or -lc. */
static void enter_argument(struct redact_scan *s, const char *p)
{
	const char *before = s->arg, *end = memchr(p, 0, (size_t)(s->end - p));

	if (p < s->arg_end)
		return;
	s->shell = before && s->arg_end - before >= 2 && *before == '-' && before[1] != '-' &&
		s->arg_end[-1] == 'c';
	s->arg = s->at = p;
	s->quote = 0;
	s->arg_end = end ? end : s->end;
}

/* The value of an option is the next argument, or in a shell's text the next word. Returns where to go on. */
static const char *next_value(struct redact_scan *s, const char *word_end, char separator)
{
	bool whole = word_end == s->arg_end;
	const char *p = skip_blanks(word_end, s->end), *to;

	if (p == s->end)
		return p;
	enter_argument(s, p);
	if (*p == '-' && p + 1 < s->arg_end && (p[1] == '-' || isalpha((unsigned char)p[1])))
		return p; /* an option: this one takes no value */
	if (!whole && !separator)
		return blank_value(s, p, false);
	to = whole ? s->arg_end : end_of_word(s, p);
	mark_behind(s, p, to, separator);
	return to;
}

/* -pSECRET, -p SECRET of one program. NULL when it is none. */
static const char *program_flag(
	struct redact_scan *s, const struct program *g, const char *word, const char *end)
{
	const char *from = word + 2;
	char separator = separator_of(g);

	if (separator && !strchr(g->flags, word[1]) && strchr(g->flags, end[-1]))
		from = end; /* -sSu: flags together, of which the last takes a value */
	else if (!strchr(g->flags, word[1]))
		return NULL;
	if (g->how & ONCE)
		s->programs &= ~(UINT64_C(1) << (g - programs));
	if (from == end)
		return g->how & NEXT ? next_value(s, end, separator) : NULL;
	if (!(g->how & JOINED))
		return NULL;
	end = s->shell ? end_of_word(s, from) : s->arg_end;
	mark_behind(s, from, end, separator);
	return end;
}

static const char *program_flags(struct redact_scan *s, const char *word, const char *end)
{
	const char *on = NULL;

	if (end - word < 2 || *word != '-' || word[1] == '-')
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(programs) && !on; i++)
		if (s->programs >> i & 1 && (s->logs_in || !(programs[i].how & LOGIN)))
			on = program_flag(s, &programs[i], word, end);
	return on;
}

/* ---- forms that need no name ---- */

/* scheme://user:secret@host. A port is no secret; a secret may contain slashes that ought to be escaped. */
static void blank_url(struct redact_scan *s, const char *word, const char *end)
{
	const char *p = word, *colon, *stop, *at = memrchr(word, '@', (size_t)(end - word));

	while (at && (p = memmem(p, (size_t)(at - p), "://", 3))) {
		p += 3;
		for (stop = p; stop < end && !strchr("/?#", *stop); stop++)
			;
		colon = memchr(p, ':', (size_t)(stop - p));
		if (!colon && at < stop && at - p >= KEY_LEAST) /* no user has such a name: it is a key */
			mark(s, p, at);
		if (!colon || at < colon ||
			(at > stop && strspn(colon + 1, "0123456789") >= (size_t)(stop - colon - 1)))
			continue;
		mark(s, colon + 1, at);
		return;
	}
}

/* Keys of well-known services, by their first letters. */
static void blank_token(struct redact_scan *s, const char *name, const char *end)
{
	static const struct {
		const char *begins;
		size_t least;
	} shape[] = {
		{"ghp_", 20},
		{"gho_", 20},
		{"ghu_", 20},
		{"ghs_", 20},
		{"github_pat_", 30},
		{"glpat-", 20},
		{"xoxb-", 20},
		{"xoxp-", 20},
		{"xapp-", 20},
		{"hf_", 30},
		{"sk-", 30},
		{"sk_live_", 20},
		{"AIza", 35},
		{"eyJ", 40},
	};

	for (size_t i = 0; i < ARRAY_SIZE(shape); i++)
		if ((size_t)(end - name) >= shape[i].least &&
			!strncmp(name, shape[i].begins, strlen(shape[i].begins)))
			mark(s, name, end);
}

/* ---- the pass ---- */

/* Names within a word; returns where to go on, which may be behind the word. */
static const char *scan_names(struct redact_scan *s, const char *word, const char *end)
{
	for (const char *p = word, *q; p<end; p = q> p ? q : p + 1) {
		const char *on;

		for (q = p; q < end && is_name(*q); q++)
			;
		if (q == p)
			continue;
		blank_token(s, p, q);
		on = joined_value(s, p, q);
		if (on && on >= end)
			return on;
		if (on)
			q = on;
	}
	return end;
}

static bool takes_user(const struct redact_scan *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (s->programs >> i & 1 && programs[i].how & AFTER_COLON)
			return true;
	return false;
}

/* --user NAME:SECRET, --user=NAME:SECRET of programs that take them. */
static const char *user_option(struct redact_scan *s, const char *word, const char *end)
{
	struct text value = {word, (size_t)(end - word)}, option = text_cut(&value, '=');

	if (!takes_user(s) ||
		!(text_is(option, "--user") || text_is(option, "--proxy-user") || text_is(option, "--auth")))
		return NULL;
	if (option.p + option.len == end)
		return next_value(s, end, ':');
	end = s->shell ? end_of_word(s, value.p) : s->arg_end;
	mark_behind(s, value.p, end, ':');
	return end;
}

/* An option by itself whose value comes next; of options called `pass` one that is no number, which is that
 * of a pass over a film. `aws configure set aws_secret_access_key VALUE` has no dashes. */
static bool takes_next(const struct redact_scan *s, const char *word, const char *name, const char *end)
{
	static const char setting[] = "secret_access_key";
	size_t len = (size_t)(end - name);
	const char *next = skip_blanks(end, s->end);
	enum name_kind kind;

	if (len < 2 || memchr(name, '=', len) || memchr(name, ':', len))
		return false;
	if (name == word)
		return len >= strlen(setting) && !memcmp(end - strlen(setting), setting, strlen(setting)) &&
			next < s->end && *next != '=';
	kind = judge_name(name, len);
	return kind == HOLDS_SECRET ||
		(kind == HOLDS_IF_JOINED && word[1] == '-' && next < s->end &&
			!isdigit((unsigned char)*next));
}

static const char *scan_word(struct redact_scan *s, const char *word, const char *end)
{
	uint64_t found = *word != '-' ? find_programs(word, end) : 0;
	const char *on, *name = word + strspn(word, "-");

	if (s->shell)
		follow_quotes(s, found ? program_name(word, end) : word);
	on = program_flags(s, word, end);
	if (!on)
		on = user_option(s, word, end);
	if (on)
		return on;
	s->programs |= found;
	s->logs_in |= end - word == 5 && !memcmp(word, "login", 5);
	blank_url(s, word, end);
	if (end - word >= 6 && !strncasecmp(end - 6, "bearer", 6) &&
		(end - word == 6 || !isalnum((unsigned char)end[-7])))
		return next_value(s, end, 0);
	if (takes_next(s, word, name, end))
		return next_value(s, end, 0);
	return scan_names(s, word, end);
}

static void mark_known(struct redact *r, const char *line, size_t len)
{
	struct redact_scan s = {.r = r, .line = line, .end = line + len};

	for (const char *p = skip_blanks(line, s.end), *end; p < s.end;
		p = skip_blanks(MAX(end, p + 1), s.end)) {
		enter_argument(&s, p);
		for (end = p; end < s.arg_end && !is_blank(*end); end++)
			;
		end = scan_word(&s, p, end);
	}
}

/* ---- expressions ---- */

static void mark_matches(struct redact *r, const regex_t *regex, size_t len)
{
	const char *p = r->text, *end = r->text + len;
	regmatch_t part[2];

	for (unsigned i = 0; i < MATCHES_MAX && p <= end; i++) {
		unsigned which;

		if (regexec(regex, p, ARRAY_SIZE(part), part, i ? REG_NOTBOL : 0))
			return;
		which = regex->re_nsub && part[1].rm_so >= 0;
		if (part[which].rm_eo > part[which].rm_so)
			memset(r->mark + (p - r->text) + part[which].rm_so, 1,
				(size_t)(part[which].rm_eo - part[which].rm_so));
		p += MAX(part[0].rm_eo, 1);
	}
}

/* Every run of marked bytes becomes three stars, so that not even its length is shown. */
static size_t write_line(struct redact *r, const char *line, size_t len, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < size; i++) {
		if (!r->mark[i]) {
			r->text[n++] = line[i];
			continue;
		}
		for (const char *star = REDACTED; *star && n < size; star++)
			r->text[n++] = *star;
		while (i + 1 < len && r->mark[i + 1])
			i++;
	}
	return n;
}

size_t redact_line(struct redact *r, char *line, size_t len, size_t size)
{
	size_t n;

	len = MIN(len, REDACT_LINE_MAX);
	size = MIN(size, REDACT_LINE_MAX);
	if (!len || (!r->known && !r->nr))
		return len;
	memcpy(r->text, line, len);
	r->text[len] = 0;
	memset(r->mark, 0, len);
	if (r->known)
		mark_known(r, r->text, len);
	for (size_t i = 0; i < len && r->nr; i++)
		if (!r->text[i])
			r->text[i] = ' ';
	for (unsigned i = 0; i < r->nr; i++)
		mark_matches(r, &r->regex[i], len);
	if (!memchr(r->mark, 1, len))
		return len;
	n = write_line(r, line, len, size);
	memcpy(line, r->text, n);
	r->lines++;
	return n;
}

/* A reference to what was matched before (\\1) makes matching take exponential time. */
static int add_regex(struct redact *r, const char *word, struct buf *err)
{
	char why[160] = "it refers back to a part of the match";
	int e = REG_ESUBREG;

	for (const char *p = word; (p = strchr(p, '\\')) && p[1]; p += 2)
		if (p[1] >= '1' && p[1] <= '9')
			goto wrong;
	e = *word ? regcomp(&r->regex[r->nr], word, REG_EXTENDED) : REG_BADPAT;
	if (!e) {
		r->nr++;
		return 0;
	}
	regerror(e, &r->regex[r->nr], why, sizeof(why));
wrong:
	buf_adds(err, "--redact takes 'none' or a regular expression, not '");
	escape_bytes(err, word, strlen(word));
	buf_addf(err, "': %s", why);
	return -EINVAL;
}

int redact_new(struct redact **ret, const char *const *words, unsigned nr, struct buf *err)
{
	struct redact *r = malloc(sizeof(*r) + nr * sizeof(r->regex[0]));
	int e = 0;

	if (!r)
		return -ENOMEM;
	/* The lines are written before they are read: clearing them would make 64 KiB of memory real. */
	r->known = true;
	r->nr = 0;
	r->lines = 0;
	for (unsigned i = 0; i < nr && e == 0; i++) {
		if (!strcmp(words[i], "none"))
			r->known = false;
		else
			e = add_regex(r, words[i], err);
	}
	if (e < 0)
		r = redact_free(r);
	*ret = r;
	return e;
}

struct redact *redact_free(struct redact *r)
{
	for (unsigned i = 0; r && i < r->nr; i++)
		regfree(&r->regex[i]);
	free(r);
	return NULL;
}

bool redact_known(const struct redact *r)
{
	return r->known;
}

unsigned redact_nr(const struct redact *r)
{
	return r->nr;
}

uint64_t redact_lines(const struct redact *r)
{
	return r->lines;
}
