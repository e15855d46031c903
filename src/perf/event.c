/* The text of an event: an optional name of the user's, the event, modifiers. The name is looked up in turn
 * in: the kernel's generic events, raw codes, the PMUs of this machine, tracepoints, libpfm4.
 *
 * Hybrid processors have a PMU for each kind of core, and a counter of one does not count while its task runs
 * on another. So there a generic event means one for each kind (its PMU's type in the upper half of config):
 * the sums of their counts and running times are what one counter would have given. */
#include "perf/event.h"

#include "base/str.h"
#include "perf/event_internal.h"

#include <ctype.h>
#include <stdarg.h>

static _printf_(2, 0) void say_why(struct event_ask *a, const char *fmt, va_list ap)
{
	if (a->err_size && !a->err[0])
		vsnprintf(a->err, a->err_size, fmt, ap);
}

int event_refuse(struct event_ask *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_why(a, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int event_lack(struct event_ask *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_why(a, fmt, ap);
	va_end(ap);
	a->found[0] = (struct perf_event){.scale = 1};
	a->nr = 1;
	return -ENODEV;
}

int event_add(struct event_ask *a, const struct perf_event *e)
{
	if (a->nr == a->max)
		return -ENOSPC;
	a->found[a->nr++] = *e;
	return 0;
}

/* ---- the metric's name ---- */

/* [a-z0-9_]+ of any text. A name that is too long ends in a hash of all of it, so that two never become
 * one. */
static void make_name(char out[static 48], const char *text)
{
	enum { ROOM = 48, SUM = 7 };
	size_t n = 0;
	const char *p;

	for (p = text; *p && n < ROOM - 1; p++) {
		if (isalnum((unsigned char)*p))
			out[n++] = (char)tolower((unsigned char)*p);
		else if (n && out[n - 1] != '_')
			out[n++] = '_';
	}
	if (*p && p[strspn(p, "/")]) {
		n = ROOM - 1 - SUM;
		n += (size_t)snprintf(
			out + n, SUM + 1, "_%06x", (unsigned)(hash_bytes(text, strlen(text)) & 0xffffff));
	}
	while (n && out[n - 1] == '_')
		n--;
	out[n] = 0;
	if (!n)
		snprintf(out, ROOM, "event");
}

static void name_found(struct event_ask *a, const char *text)
{
	char whole[EVENT_TEXT_MAX + 8], name[48];
	const char *mode = a->exclude_kernel ? "_u" : a->exclude_user ? "_k" : "";

	if (a->label[0])
		snprintf(whole, sizeof(whole), "%s", a->label);
	else
		snprintf(whole, sizeof(whole), "%s%s", a->listed[0] ? a->listed : text, mode);
	make_name(name, whole);
	for (size_t i = 0; i < a->nr; i++) {
		memcpy(a->found[i].name, name, sizeof(name));
		a->found[i].exclude_user |= a->exclude_user;
		a->found[i].exclude_kernel |= a->exclude_kernel;
	}
}

/* ---- where the name is known ---- */

static int add_named(struct event_ask *a, const struct named_event *n)
{
	struct perf_event e = {.type = n->type, .config = n->config, .in_kernel = n->in_kernel, .scale = 1};
	struct pmu core[4];
	size_t nr = 0;
	int r = 0;

	snprintf(e.unit, sizeof(e.unit), "%s", n->unit ? n->unit : "");
	snprintf(e.pmu, sizeof(e.pmu), "%s", n->type == PERF_TYPE_SOFTWARE ? "software" : "cpu");
	if (n->type != PERF_TYPE_SOFTWARE)
		nr = pmus_core(a->env, core, ARRAY_SIZE(core));
	if (nr < 2)
		return event_add(a, &e);
	for (size_t i = 0; i < nr && r == 0; i++) {
		e.config = n->config | (uint64_t)core[i].type << 32;
		memcpy(e.pmu, core[i].name, sizeof(e.pmu));
		r = event_add(a, &e);
	}
	return r;
}

static bool is_raw(struct text t, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 1; i < t.len; i++) {
		int c = tolower((unsigned char)t.p[i]);

		if (!isxdigit(c))
			return false;
		*ret = *ret << 4 | (unsigned)(isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	return t.len >= 2 && t.len <= 17 && t.p[0] == 'r';
}

/* The kernel takes a raw code without a PMU for the first kind of cores alone. */
static int add_raw(struct event_ask *a, uint64_t config)
{
	struct perf_event e = {.type = PERF_TYPE_RAW, .config = config, .scale = 1, .pmu = "cpu"};
	struct pmu core[4];
	size_t nr = pmus_core(a->env, core, ARRAY_SIZE(core));
	int r = 0;

	if (nr < 2)
		return event_add(a, &e);
	for (size_t i = 0; i < nr && r == 0; i++) {
		e.type = core[i].type;
		memcpy(e.pmu, core[i].name, sizeof(e.pmu));
		r = event_add(a, &e);
	}
	return r;
}

/* ---- what was probably meant ---- */

struct nearest_event {
	struct nearest nearest;
	char name[48]; /* names are only valid while they are listed */
};

static int compare_name(void *arg, const char *name)
{
	struct nearest_event *n = arg;

	if (strlen(name) < sizeof(n->name) && nearest_try(&n->nearest, name))
		snprintf(n->name, sizeof(n->name), "%s", name);
	return 0;
}

static void find_nearest(struct env *env, struct nearest_event *n)
{
	struct named_event e;
	struct pmu pmu[PMUS_MAX];
	char memory[48];
	size_t nr;

	for (size_t i = 0; named_event_at(i, &e, memory); i++) {
		compare_name(n, e.name);
		if (e.alias)
			compare_name(n, e.alias);
	}
	nr = pmus_all(env, pmu, ARRAY_SIZE(pmu));
	for (size_t i = 0; i < nr; i++)
		pmu_list(env, &pmu[i], "events", compare_name, n);
}

/* "cycles:p": the event is known, its modifier is not. */
static bool is_modified(struct text text)
{
	const char *colon = memrchr(text.p, ':', text.len);
	struct named_event e;
	char memory[48];

	return colon && named_event_find((struct text){text.p, (size_t)(colon - text.p)}, &e, memory);
}

static int refuse_unknown(struct event_ask *a, const char *text, bool has_pfm)
{
	struct nearest_event n = {.nearest = nearest_to(text, strlen(text) / 3 + 1)};
	const char *pfm = has_pfm ? "" : "; names of the processor's manual need the library libpfm4";

	find_nearest(a->env, &n);
	if (*n.name)
		return event_refuse(a,
			"no event is called '%s'; did you mean '%s'? `tacho metrics --events` lists them%s",
			text, n.name, pfm);
	return event_refuse(
		a, "no event is called '%s'; `tacho metrics --events` lists what there is%s", text, pfm);
}

static int understand(struct event_ask *a, const char *text)
{
	struct text t = text_of(text);
	struct named_event n;
	bool has_pfm = false;
	char memory[48];
	uint64_t raw;
	int r;

	if (named_event_find(t, &n, memory)) {
		snprintf(a->listed, sizeof(a->listed), "%s", n.name);
		return add_named(a, &n);
	}
	if (is_raw(t, &raw))
		return add_raw(a, raw);
	if (is_modified(t))
		return event_refuse(a, "the modifiers of '%s' are not understood: there are :u and :k", text);
	r = pmu_parse_bare(a, t);
	if (r == 0 && !a->nr)
		r = tracepoint_parse(a, t);
	if (r == 0 && !a->nr)
		r = pfm_parse(a, text, &has_pfm);
	return r < 0 || a->nr ? r : refuse_unknown(a, text, has_pfm);
}

/* ---- the text ---- */

static int take_modifiers(struct event_ask *a, struct text m)
{
	bool user = false, kernel = false;

	for (size_t i = 0; i < m.len; i++) {
		user |= m.p[i] == 'u';
		kernel |= m.p[i] == 'k';
		if (m.p[i] != 'u' && m.p[i] != 'k')
			return -EINVAL;
	}
	a->exclude_user = kernel && !user;
	a->exclude_kernel = user && !kernel;
	return 0;
}

/* "NAME=" before anything that has an '=' of its own. */
static void take_label(struct event_ask *a, struct text *text)
{
	struct text rest = *text, label = text_cut(&rest, '=');

	if (label.len == text->len || !label.len || !rest.len || label.len >= sizeof(a->label))
		return;
	for (size_t i = 0; i < label.len; i++)
		if (!isalnum((unsigned char)label.p[i]) && !memchr("_-.", label.p[i], 3))
			return;
	memcpy(a->label, label.p, label.len);
	a->named = true;
	*text = rest;
}

/* "PMU/terms/", "PMU/terms/u", "PMU/terms/:u" */
static int parse_slashes(struct event_ask *a, struct text text)
{
	struct text rest = text, pmu = text_cut(&rest, '/');
	const char *end = memrchr(rest.p, '/', rest.len);
	struct text terms, modifiers;

	if (!end)
		return event_refuse(a, "'%.*s' has no second slash", (int)text.len, text.p);
	terms = (struct text){rest.p, (size_t)(end - rest.p)};
	modifiers = text_from(rest, terms.len + 1);
	if (text_starts(modifiers, ":"))
		modifiers = text_from(modifiers, 1);
	if (take_modifiers(a, modifiers) < 0)
		return event_refuse(a, "'%.*s' behind the slashes is not understood: there are u and k",
			(int)modifiers.len, modifiers.p);
	return pmu_parse(a, pmu, terms);
}

static int parse_text(struct event_ask *a, struct text text)
{
	char copy[EVENT_TEXT_MAX];
	const char *colon;
	int r;

	take_label(a, &text);
	colon = memrchr(text.p, ':', text.len);
	if (memchr(text.p, '/', text.len)) {
		r = parse_slashes(a, text);
	} else {
		if (colon && colon + 1 < text.p + text.len &&
			take_modifiers(a, text_from(text, (size_t)(colon - text.p) + 1)) == 0)
			text.len = (size_t)(colon - text.p);
		snprintf(copy, sizeof(copy), "%.*s", (int)text.len, text.p);
		r = understand(a, copy);
	}
	if (r < 0 && r != -ENOSPC && r != -ENODEV)
		return r;
	colon = memrchr(text.p, '/', text.len);
	snprintf(copy, sizeof(copy), "%.*s", (int)(colon ? (size_t)(colon - text.p) : text.len), text.p);
	name_found(a, copy);
	return r == -ENODEV ? r : 0;
}

static bool is_printable(struct text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (t.p[i] <= ' ' || t.p[i] >= 0x7f)
			return false;
	return t.len > 0;
}

int perf_event_boxes(struct env *env, const char *text, size_t len, struct perf_event *ret, size_t max,
	char *err, size_t err_size)
{
	struct event_ask a = {.env = env, .found = ret, .max = max, .err = err, .err_size = err_size};
	struct text t = {text, len};
	int r;

	if (err_size)
		err[0] = 0;
	if (!max)
		return -EINVAL;
	if (len >= EVENT_TEXT_MAX)
		return event_refuse(&a, "an event of %zu letters is too long", len);
	if (!is_printable(t))
		return event_refuse(&a, "an event is a word of printable letters");
	r = parse_text(&a, t);
	if (r < 0)
		return r;
	if (err_size)
		err[0] = 0;
	return (int)a.nr;
}

int perf_event_parse(
	struct env *env, const char *text, size_t len, struct perf_event *ret, char *err, size_t err_size)
{
	int r = perf_event_boxes(env, text, len, ret, 1, err, err_size);

	return MIN(r, 0);
}

int perf_events_split(const char *text, int (*fn)(void *arg, const char *text, size_t len), void *arg)
{
	bool inside = false;
	int r = 0;

	while (*text && r == 0) {
		const char *end = text;

		for (; *end && (inside || *end != ','); end++)
			inside ^= *end == '/';
		if (end > text)
			r = fn(arg, text, (size_t)(end - text));
		text = *end ? end + 1 : end;
	}
	return r;
}

void perf_event_fill(const struct perf_event *e, struct perf_event_attr *ret)
{
	*ret = (struct perf_event_attr){.type = e->type,
		.size = sizeof(*ret),
		.config = e->config,
		.config1 = e->config1,
		.config2 = e->config2,
		.exclude_user = e->exclude_user,
		.exclude_kernel = e->exclude_kernel,
		/* Neither user nor kernel: the hypervisor must not count what is to be left out. */
		.exclude_hv = e->exclude_user || e->exclude_kernel};
}
