/* What this machine offers, each tried with the counter that a recording would open. Tracepoints and the
 * names of libpfm4 come in thousands: there the first of a kind is tried for all. */
#include "perf/counter.h"
#include "perf/event_internal.h"

#include "read/value.h"

struct lister {
	struct env *env;
	int (*fn)(void *arg, const struct perf_offer *offer);
	void *arg;
	const struct pmu *pmu; /* the PMU whose events are listed */
	char kind[48];
};

void offer_try(struct env *env, struct perf_offer *offer, const char *text)
{
	struct perf_event e = {0};

	offer->error = perf_event_parse(env, text, strlen(text), &e, NULL, 0);
	if (offer->error == 0)
		offer->error = event_try_modes(env, &e);
	if (offer->error < 0)
		counter_trouble(&e, offer->error, &offer->reason, &offer->remedy);
}

static int list_named(struct lister *l)
{
	static const char *const kind[] = {[PERF_TYPE_HARDWARE] = "hardware",
		[PERF_TYPE_SOFTWARE] = "software",
		[PERF_TYPE_HW_CACHE] = "cache"};
	struct named_event n;
	char memory[48];
	int r = 0;

	for (size_t i = 0; r == 0 && named_event_at(i, &n, memory); i++) {
		struct perf_offer offer = {.name = n.name, .kind = kind[n.type], .about = n.about};
		char about[120];

		if (n.alias) {
			snprintf(about, sizeof(about), "%s (or %s)", n.about, n.alias);
			offer.about = about;
		}
		offer_try(l->env, &offer, n.name);
		r = l->fn(l->arg, &offer);
	}
	return r;
}

static int offer_event(void *arg, const char *name)
{
	struct lister *l = arg;
	char path[200], about[160] = "", text[112], memory[48];
	struct perf_offer offer = {
		.name = text, .kind = l->kind, .about = about, .of_package = l->pmu->of_package};
	struct named_event n;

	if (l->pmu->core && named_event_find(text_of(name), &n, memory))
		return 0; /* listed by its own name already */
	snprintf(path, sizeof(path), PMU_DIR "/%.47s/events/%.47s", l->pmu->name, name);
	value_get_text(l->env, path, about, sizeof(about));
	snprintf(text, sizeof(text), "%s/%.47s/", l->kind, name);
	offer_try(l->env, &offer, text);
	return l->fn(l->arg, &offer);
}

/* Any code of the manual can be written in its terms, whether or not the kernel has names for some. */
static int offer_terms(struct lister *l)
{
	struct name_list terms = {.between = ",", .behind = "=…"};
	char text[220];
	struct perf_offer offer = {.name = text,
		.kind = l->kind,
		.about = "any event of the manual, by its terms",
		.of_package = l->pmu->of_package};

	pmu_list(l->env, l->pmu, "format", name_list_add, &terms);
	if (!terms.len)
		return 0;
	snprintf(text, sizeof(text), "%s/config=0/", l->kind);
	offer_try(l->env, &offer, text);
	if (offer.error == -EINVAL || offer.error == -ENOENT) {
		offer.error = 0; /* 0 need not be an event */
		offer.reason = offer.remedy = NULL;
	}
	snprintf(text, sizeof(text), "%s/%s/", l->kind, terms.text);
	return l->fn(l->arg, &offer);
}

static int list_pmus(struct lister *l)
{
	struct pmu pmu[PMUS_MAX];
	size_t nr = pmus_all(l->env, pmu, ARRAY_SIZE(pmu));
	int r = 0;

	for (size_t i = 0; i < nr && r == 0; i++) {
		/* Boxes of one kind have the same events: only the first is listed. */
		if (i && !pmu[i].core && pmus_alike(&pmu[i - 1], &pmu[i]))
			continue;
		l->pmu = &pmu[i];
		snprintf(l->kind, sizeof(l->kind), "%.*s",
			(int)(pmu[i].core ? strlen(pmu[i].name) : pmu_stem(pmu[i].name)), pmu[i].name);
		r = pmu_list(l->env, l->pmu, "events", offer_event, l);
		r = r == -ENOENT ? 0 : r;
		if (r == 0 && (l->pmu->core || l->pmu->of_package))
			r = offer_terms(l);
	}
	return r;
}

struct tracer {
	struct lister *lister;
	const char *folder, *system;
	struct perf_offer first; /* result of trying the first */
};

static int offer_tracepoint(void *arg, const char *name)
{
	struct tracer *t = arg;
	char text[160], path[300];

	snprintf(path, sizeof(path), "%s/%.60s/%.90s/id", t->folder, t->system, name);
	snprintf(text, sizeof(text), "%.60s:%.90s", t->system, name);
	if (env_try(t->lister->env, path) < 0)
		return 0; /* a file between the folders */
	if (t->first.error > 0)
		offer_try(t->lister->env, &t->first, text);
	t->first.name = text;
	return t->lister->fn(t->lister->arg, &t->first);
}

static int list_system(void *arg, const char *name)
{
	struct tracer *t = arg;
	char path[200];
	int r;

	t->system = name;
	snprintf(path, sizeof(path), "%s/%.60s", t->folder, name);
	r = env_list(t->lister->env, path, offer_tracepoint, t);
	return MAX(r, 0);
}

static int list_tracepoints(struct lister *l)
{
	struct tracer t = {.lister = l, .first = {.kind = "tracepoint", .about = "", .error = 1}};
	int r;

	t.folder = tracepoint_folder(l->env, &r);
	if (!t.folder)
		return l->fn(l->arg,
			&(struct perf_offer){.name = "SYSTEM:NAME…",
				.kind = "tracepoint",
				.about = "",
				.error = r,
				.reason = r == -ENOENT ? "the tracing file system is not mounted"
						       : "the tracing file system is for root",
				.remedy = r == -ENOENT ? "sudo mount -t tracefs nodev /sys/kernel/tracing"
						       : "sudo tacho metrics --events"});
	r = env_list(l->env, t.folder, list_system, &t);
	return MAX(r, 0);
}

int perf_offers(struct env *env, int (*fn)(void *arg, const struct perf_offer *offer), void *arg)
{
	struct lister l = {.env = env, .fn = fn, .arg = arg};
	int r = list_named(&l);

	if (r == 0)
		r = list_pmus(&l);
	if (r == 0)
		r = list_tracepoints(&l);
	if (r == 0)
		r = pfm_offers(env, fn, arg);
	return r;
}
