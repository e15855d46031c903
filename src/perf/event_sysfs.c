/* The kernel's PMUs as /sys describes them: a folder each, with its type, in format/ the terms and the bits
 * they are written to, and in events/ texts of such terms under a name.
 *
 * Boxes of one kind (uncore_imc_0, uncore_imc_1 …) are meant together when their number is left out. "cpu"
 * means the cores whatever their PMU is called: cpu, cpu_core and cpu_atom, armv8_pmuv3_0; such a PMU has a
 * list of its `cpus`. One with a `cpumask` counts for whole packages. */
#include "perf/event_internal.h"

#include "base/str.h"
#include "read/value.h"

#include <ctype.h>

/* A name that can be a part of a path below the folder, and nowhere else. */
static bool name_is_good(struct text t)
{
	if (!t.len || t.len >= sizeof(((struct pmu *)0)->name) || t.p[0] == '.')
		return false;
	for (size_t i = 0; i < t.len; i++)
		if (!isalnum((unsigned char)t.p[i]) && !memchr("_-.:", t.p[i], 4))
			return false;
	return true;
}

static void pmu_path(char *out, size_t size, const struct pmu *pmu, const char *file)
{
	snprintf(out, size, PMU_DIR "/%.47s/%s", pmu->name, file);
}

static bool pmu_has(struct env *env, const struct pmu *pmu, const char *file)
{
	char path[200];

	pmu_path(path, sizeof(path), pmu, file);
	return env_try(env, path) == 0;
}

static bool pmu_open(struct env *env, struct text name, struct pmu *ret)
{
	char path[200];
	int64_t type;

	if (!name_is_good(name))
		return false;
	*ret = (struct pmu){0};
	memcpy(ret->name, name.p, name.len);
	pmu_path(path, sizeof(path), ret, "type");
	if (value_get(env, path, &type) < 0 || type < 0 || type > INT32_MAX)
		return false;
	ret->type = (uint32_t)type;
	ret->core = !strcmp(ret->name, "cpu") || pmu_has(env, ret, "cpus");
	ret->of_package = !ret->core && pmu_has(env, ret, "cpumask");
	return true;
}

struct pmu_search {
	struct env *env;
	struct pmu *pmu;
	size_t nr, max;
};

static int add_pmu(void *arg, const char *name)
{
	struct pmu_search *s = arg;

	if (s->nr == s->max)
		return 1;
	s->nr += pmu_open(s->env, text_of(name), &s->pmu[s->nr]);
	return 0;
}

static int pmu_order(const void *a, const void *b)
{
	const struct pmu *x = a, *y = b;

	if (x->core != y->core)
		return x->core ? -1 : 1;
	/* "cpu_core" before "cpu_atom": where only one is used, it is that of the larger cores. */
	return x->core ? (int)(x->type > y->type) - (int)(x->type < y->type) : strverscmp(x->name, y->name);
}

size_t pmus_all(struct env *env, struct pmu *ret, size_t max)
{
	struct pmu_search s = {.env = env, .pmu = ret, .max = max};

	env_list(env, PMU_DIR, add_pmu, &s);
	qsort(ret, s.nr, sizeof(*ret), pmu_order);
	return s.nr;
}

/* Where there is a "cpu", it is the only one: one file is enough on nearly all machines. */
size_t pmus_core(struct env *env, struct pmu *ret, size_t max)
{
	struct pmu all[PMUS_MAX];
	size_t nr, n = 0;

	if (max && pmu_open(env, text_of("cpu"), ret))
		return 1;
	nr = pmus_all(env, all, ARRAY_SIZE(all));
	while (n < nr && n < max && all[n].core) {
		ret[n] = all[n];
		n++;
	}
	return n;
}

size_t pmu_stem(const char *name)
{
	size_t len = strlen(name), n = len;

	while (n && isdigit((unsigned char)name[n - 1]))
		n--;
	return n > 1 && n < len && name[n - 1] == '_' ? n - 1 : len;
}

bool pmus_alike(const struct pmu *a, const struct pmu *b)
{
	size_t n = pmu_stem(a->name);

	if (a->core || b->core)
		return a->core && b->core;
	return n == pmu_stem(b->name) && !strncmp(a->name, b->name, n);
}

/* Whether the name that was written means this PMU. */
static bool pmu_is_meant(const struct pmu *pmu, struct text name)
{
	static const char uncore[] = "uncore_";
	const char *own = pmu->name;
	size_t skip = str_starts(own, uncore) && !text_starts(name, uncore) ? strlen(uncore) : 0;

	if (text_is(name, own) || text_is(name, own + skip))
		return true;
	if (pmu->core && text_is(name, "cpu"))
		return true;
	return pmu_stem(own) == skip + name.len && !memcmp(own + skip, name.p, name.len);
}

/* Those that are meant; a name that is exactly that of one means it alone. */
static size_t pmus_meant(struct env *env, struct text name, struct pmu *ret, size_t max)
{
	size_t nr, n = 0;

	if (max && pmu_open(env, name, ret))
		return 1;
	nr = pmus_all(env, ret, max);
	for (size_t i = 0; i < nr; i++)
		if (pmu_is_meant(&ret[i], name))
			ret[n++] = ret[i];
	return n;
}

static bool is_about_another(const char *name)
{
	static const char *const ending[] = {".scale", ".unit", ".snapshot", ".per-pkg"};

	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		if (text_ends(text_of(name), ending[i]))
			return true;
	return false;
}

struct name_filter {
	env_list_fn *fn;
	void *arg;
};

static int pass_name(void *arg, const char *name)
{
	const struct name_filter *f = arg;

	return name_is_good(text_of(name)) && !is_about_another(name) ? f->fn(f->arg, name) : 0;
}

int pmu_list(struct env *env, const struct pmu *pmu, const char *folder, env_list_fn *fn, void *arg)
{
	struct name_filter f = {fn, arg};
	char path[200];

	pmu_path(path, sizeof(path), pmu, folder);
	return env_list(env, path, pass_name, &f);
}

/* ---- terms ---- */

struct terms {
	struct event_ask *ask;
	const struct pmu *pmu;
	struct text given; /* all terms that were written, for what an event leaves open ("chip=?") */
	uint64_t config[3];
	char event[48]; /* the one of events/ that was named */
};

static bool parse_value(struct text t, uint64_t *ret)
{
	unsigned base = text_starts(t, "0x") || text_starts(t, "0X") ? 16 : 10;
	uint64_t v = 0;

	t = base == 16 ? text_from(t, 2) : t;
	for (size_t i = 0; i < t.len; i++) {
		int c = tolower((unsigned char)t.p[i]);
		unsigned digit = isdigit(c) ? (unsigned)(c - '0') : c >= 'a' ? (unsigned)(c - 'a') + 10 : 99;

		if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
			__builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret = v;
	return t.len > 0;
}

/* "0-7" or "18" off the front of the list of bits. */
static bool next_bits(struct text *list, unsigned *ret_first, unsigned *ret_last)
{
	struct text range = text_cut(list, ','), first = text_cut(&range, '-');
	uint64_t a, b;

	if (!parse_value(first, &a))
		return false;
	b = a;
	if (range.len && !parse_value(range, &b))
		return false;
	*ret_first = (unsigned)a;
	*ret_last = (unsigned)b;
	return a <= b && b < 64;
}

/* The value's bits, lowest first, to where the format "config1:0-7,32-35" has them. -EINVAL: no such format;
 * -ERANGE: the value has more bits than that. */
static int put_bits(struct text format, uint64_t value, uint64_t config[static 3])
{
	static const char *const field[] = {"config", "config1", "config2"};
	struct text name = text_cut(&format, ':');
	unsigned first, last, which = 0;
	uint64_t into;

	while (which < ARRAY_SIZE(field) && !text_is(name, field[which]))
		which++;
	if (which == ARRAY_SIZE(field) || !format.len)
		return -EINVAL;
	into = config[which];
	while (format.len) {
		if (!next_bits(&format, &first, &last))
			return -EINVAL;
		for (unsigned bit = first; bit <= last; bit++, value >>= 1)
			into = (into & ~(UINT64_C(1) << bit)) | (value & 1) << bit;
	}
	if (value)
		return -ERANGE;
	config[which] = into;
	return 0;
}

int name_list_add(void *list, const char *name)
{
	struct name_list *l = list;
	const char *between = l->len ? l->between : "";
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s%s", between, name, l->behind);

	if (n < 0 || l->len + (size_t)n >= sizeof(l->text) - 8) {
		snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s…", between);
		return 1;
	}
	l->len += (size_t)n;
	return 0;
}

static int refuse_term(struct terms *t, struct text key)
{
	struct name_list known = {.between = ", ", .behind = ""};

	pmu_list(t->ask->env, t->pmu, "format", name_list_add, &known);
	return event_refuse(t->ask, "the PMU %s has no event or term '%.*s' (its terms: %s)", t->pmu->name,
		(int)key.len, key.p, known.len ? known.text : "none");
}

/* A file of the PMU's folder, its first line; false when there is none. */
static bool pmu_text(const struct terms *t, const char *folder, struct text name, const char *ending,
	char *out, size_t size)
{
	char path[200], file[120];

	if (!name_is_good(name))
		return false;
	snprintf(file, sizeof(file), "%s/%.*s%s", folder, (int)name.len, name.p, ending);
	pmu_path(path, sizeof(path), t->pmu, file);
	return value_get_text(t->ask->env, path, out, size) > 0;
}

static int set_term(struct terms *t, struct text key, struct text value)
{
	static const char *const whole[] = {"config", "config1", "config2"};
	char format[128];
	uint64_t v;
	int r;

	if (!parse_value(value, &v))
		return event_refuse(t->ask, "'%.*s' of the term '%.*s' is no number", (int)value.len, value.p,
			(int)key.len, key.p);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		if (text_is(key, whole[i])) {
			t->config[i] = v;
			return 0;
		}
	}
	if (!pmu_text(t, "format", key, "", format, sizeof(format)))
		return refuse_term(t, key);
	r = put_bits(text_of(format), v, t->config);
	if (r == -ERANGE)
		return event_refuse(t->ask, "%.*s of the term '%.*s' does not fit into its bits (%s)",
			(int)value.len, value.p, (int)key.len, key.p, format);
	if (r < 0)
		return event_refuse(t->ask, "the format of the term '%.*s' is not understood (%s)",
			(int)key.len, key.p, format);
	return 0;
}

/* Whether the term was written with a value. */
static bool is_given(struct text terms, struct text key)
{
	while (terms.len) {
		struct text term = text_cut(&terms, ',');

		if (text_equal(text_cut(&term, '='), key) && term.len)
			return true;
	}
	return false;
}

/* The terms that stand behind a name of events/. */
static int take_event(struct terms *t, const char *terms)
{
	struct text rest = text_of(terms);
	int r = 0;

	while (rest.len && r == 0) {
		struct text value = text_cut(&rest, ','), key = text_cut(&value, '=');

		if (text_is(value, "?")) {
			if (!is_given(t->given, key))
				r = event_refuse(t->ask, "the event needs the term '%.*s=' as well",
					(int)key.len, key.p);
			continue;
		}
		r = set_term(t, key, value.len ? value : text_of("1"));
	}
	return r;
}

/* The event of that name, however its letters and dashes are written; false when there is none. */
struct name_search {
	struct text want;
	char found[48];
	bool exact;
};

static int match_name(void *arg, const char *name)
{
	struct name_search *s = arg;

	if (!name_equal(s->want, name))
		return 0;
	snprintf(s->found, sizeof(s->found), "%s", name);
	return text_is(s->want, name);
}

static bool find_event(struct env *env, const struct pmu *pmu, struct text name, char out[static 48])
{
	struct name_search s = {.want = name};

	pmu_list(env, pmu, "events", match_name, &s);
	memcpy(out, s.found, sizeof(s.found));
	return *out != 0;
}

static bool parse_raw(struct text t, uint64_t *ret)
{
	char hex[20];

	if (t.len < 2 || t.len > 17 || t.p[0] != 'r')
		return false;
	snprintf(hex, sizeof(hex), "0x%.*s", (int)t.len - 1, t.p + 1);
	return parse_value(text_of(hex), ret);
}

/* A word without value: an event, a term of one bit, or rNNN. */
static int take_word(struct terms *t, struct text word)
{
	char text[512];
	uint64_t raw;

	if (find_event(t->ask->env, t->pmu, word, t->event) &&
		pmu_text(t, "events", text_of(t->event), "", text, sizeof(text)))
		return take_event(t, text);
	if (!pmu_text(t, "format", word, "", text, sizeof(text)) && parse_raw(word, &raw)) {
		t->config[0] = raw;
		return 0;
	}
	return set_term(t, word, text_of("1"));
}

static int take_terms(struct terms *t, struct text rest)
{
	int r = 0;

	while (rest.len && r == 0) {
		struct text value = text_cut(&rest, ','), term = value, key = text_cut(&value, '=');

		if (key.len == term.len)
			r = take_word(t, key);
		else if (!text_is(key, "name"))
			r = set_term(t, key, value);
		else if (!t->ask->named)
			snprintf(t->ask->label, sizeof(t->ask->label), "%.*s", (int)value.len, value.p);
	}
	return r;
}

/* Scale and unit from the event's other files. */
static void take_unit(const struct terms *t, struct perf_event *e)
{
	char text[64], *end;
	double scale;

	if (!*t->event)
		return;
	if (pmu_text(t, "events", text_of(t->event), ".unit", text, sizeof(text)))
		snprintf(e->unit, sizeof(e->unit), "%.*s", (int)sizeof(e->unit) - 1, text);
	if (!pmu_text(t, "events", text_of(t->event), ".scale", text, sizeof(text)))
		return;
	scale = strtod(text, &end);
	if (end != text && !*end && scale > 0 && scale < 1e300)
		e->scale = scale;
}

static int add_terms(struct event_ask *a, const struct pmu *pmu, struct text terms)
{
	struct terms t = {.ask = a, .pmu = pmu, .given = terms};
	struct perf_event e = {.type = pmu->type, .of_package = pmu->of_package, .scale = 1};
	int r = take_terms(&t, terms);

	if (r < 0)
		return r;
	if (pmu->of_package && (a->exclude_user || a->exclude_kernel))
		return event_refuse(
			a, "%s counts for whole packages and cannot separate user from kernel", pmu->name);
	memcpy(e.pmu, pmu->name, sizeof(e.pmu));
	e.config = t.config[0];
	e.config1 = t.config[1];
	e.config2 = t.config[2];
	take_unit(&t, &e);
	return event_add(a, &e);
}

/* One of several kinds of cores or boxes may lack an event that the others have. */
static int add_to_all(struct event_ask *a, const struct pmu *pmu, size_t nr, struct text terms)
{
	size_t before = a->nr;
	int r = 0;

	for (size_t i = 0; i < nr && r != -ENOSPC; i++)
		r = add_terms(a, &pmu[i], terms);
	return a->nr > before ? 0 : r;
}

int pmu_parse(struct event_ask *a, struct text name, struct text terms)
{
	struct pmu pmu[PMUS_MAX];
	size_t nr = pmus_meant(a->env, name, pmu, ARRAY_SIZE(pmu));
	struct name_list known = {.between = ", ", .behind = ""};

	if (!terms.len)
		return event_refuse(a, "'%.*s/…/' has no terms between its slashes", (int)name.len, name.p);
	if (nr)
		return add_to_all(a, pmu, nr, terms);
	nr = pmus_all(a->env, pmu, ARRAY_SIZE(pmu));
	if (text_is(name, "cpu") && nr)
		return event_lack(a,
			"the processor's counters are not available here, as in most virtual machines: give "
			"the virtual machine a virtual PMU, where its host can");
	for (size_t i = 0; i < nr; i++) {
		char kind[48];

		if (i && pmus_alike(&pmu[i - 1], &pmu[i]) && !pmu[i].core)
			continue;
		snprintf(kind, sizeof(kind), "%.*s", (int)pmu_stem(pmu[i].name), pmu[i].name);
		if (name_list_add(&known, kind))
			break;
	}
	return event_refuse(a, "this machine has no PMU '%.*s' (it has: %s)", (int)name.len, name.p,
		known.len ? known.text : "none");
}

int pmu_parse_bare(struct event_ask *a, struct text name)
{
	struct pmu pmu[PMUS_MAX];
	size_t nr, n = 0;
	char event[48];

	if (!name_is_good(name))
		return 0;
	nr = pmus_all(a->env, pmu, ARRAY_SIZE(pmu));
	for (size_t i = 0; i < nr; i++)
		if ((!n || pmus_alike(&pmu[0], &pmu[i])) && find_event(a->env, &pmu[i], name, event))
			pmu[n++] = pmu[i];
	return add_to_all(a, pmu, n, name);
}
