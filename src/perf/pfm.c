/* Names of the processors' manuals through libpfm4, where it is installed: it knows thousands for all makers,
 * and gives the attr. Only what is used is declared here, by its documented layout, so that neither header
 * nor library is needed to build. It is searched for each time a name is looked up; it initialises itself
 * once. */
#include "perf/event_internal.h"

#include "base/str.h"

#define PFM_LIBRARY "libpfm.so.4"

enum { PFM_SUCCESS = 0, PFM_ERR_NOTFOUND = -4, PFM_OS_PERF_EVENT = 1, PFM_ATTR_UMASK = 1 };
enum { PFM_PMUS = 4096 };		   /* more than any version knows */
enum { PFM_PLM0 = 0x01, PFM_PLM3 = 0x08 }; /* kernel, user */

struct pfm_encode_arg {
	struct perf_event_attr *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad0;
};

/* The structs say how large they are: a library that knows more leaves the rest alone. */
struct pfm_pmu_info {
	const char *name, *desc;
	size_t size;
	int pmu, type;
	int nevents, first_event; /* an index; -1: none */
	int max_encoding, num_cntrs, num_fixed_cntrs;
	unsigned is_present : 1, rest : 31;
};

struct pfm_event_info {
	const char *name, *desc, *equiv;
	size_t size;
	uint64_t code;
	int pmu, dtype, idx, nattrs, reserved;
	unsigned flags;
};

struct pfm_attr_info {
	const char *name, *desc, *equiv;
	size_t size;
	uint64_t code;
	int type, idx, ctrl;
	unsigned flags;
	uint64_t preset;
};

/* Every symbol is there in all versions of libpfm.so.4. */
struct pfm {
	int (*initialize)(void);
	int (*encode)(const char *text, int levels, int os, void *arg);
	const char *(*strerror)(int error);
	int (*pmu_info)(int pmu, struct pfm_pmu_info *ret);
	int (*event_next)(int idx);
	int (*event_info)(int idx, int os, struct pfm_event_info *ret);
	int (*attr_info)(int idx, int attr, int os, struct pfm_attr_info *ret);
};

static bool pfm_open(struct env *env, struct pfm *ret)
{
	const struct {
		const char *name;
		void *into;
	} symbol[] = {
		{"pfm_initialize", &ret->initialize},
		{"pfm_get_os_event_encoding", &ret->encode},
		{"pfm_strerror", &ret->strerror},
		{"pfm_get_pmu_info", &ret->pmu_info},
		{"pfm_get_event_next", &ret->event_next},
		{"pfm_get_event_info", &ret->event_info},
		{"pfm_get_event_attr_info", &ret->attr_info},
	};
	void *library = env_library(env, PFM_LIBRARY, NULL);

	if (!library)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(symbol); i++) {
		void *address = env_symbol(env, library, symbol[i].name);

		if (!address)
			return false;
		memcpy(symbol[i].into, &address, sizeof(address));
	}
	return ret->initialize() == PFM_SUCCESS;
}

/* The PMU that the library found the type of. */
static void set_pmu(struct env *env, struct perf_event *e)
{
	struct pmu pmu[PMUS_MAX];
	size_t nr = pmus_all(env, pmu, ARRAY_SIZE(pmu));

	snprintf(e->pmu, sizeof(e->pmu), "%s", e->type == PERF_TYPE_SOFTWARE ? "software" : "cpu");
	for (size_t i = 0; i < nr; i++) {
		if (pmu[i].type != e->type)
			continue;
		memcpy(e->pmu, pmu[i].name, sizeof(e->pmu));
		e->of_package = pmu[i].of_package;
	}
}

int pfm_parse(struct event_ask *a, const char *name, bool *ret_there)
{
	/* A newer library may know a longer attr than we do. */
	union {
		struct perf_event_attr attr;
		char room[512];
	} u = {0};
	struct pfm_encode_arg arg = {.attr = &u.attr, .size = sizeof(arg), .cpu = -1};
	struct perf_event e = {.scale = 1};
	struct pfm pfm;
	int r;

	*ret_there = pfm_open(a->env, &pfm);
	if (!*ret_there)
		return 0;
	u.attr.size = sizeof(u.attr);
	r = pfm.encode(name, PFM_PLM3 | PFM_PLM0, PFM_OS_PERF_EVENT, &arg);
	if (r == PFM_ERR_NOTFOUND)
		return 0;
	if (r != PFM_SUCCESS)
		return event_refuse(a, "libpfm4 says of '%s': %s", name, pfm.strerror(r));
	e.type = u.attr.type;
	e.config = u.attr.config;
	e.config1 = u.attr.config1;
	e.config2 = u.attr.config2;
	set_pmu(a->env, &e);
	/* Modifiers of its own, "EVENT:u=1:k=0". */
	e.exclude_user = !e.of_package && u.attr.exclude_user;
	e.exclude_kernel = !e.of_package && u.attr.exclude_kernel;
	return event_add(a, &e);
}

/* ---- the list ---- */

struct pfm_lister {
	struct env *env;
	const struct pfm *pfm;
	int (*fn)(void *arg, const struct perf_offer *offer);
	void *arg;
	struct perf_offer first; /* of the PMU, as the library calls it: what trying it gave */
};

static int offer_name(struct pfm_lister *l, const char *event, const char *mask, const char *about)
{
	char name[200];
	int n = snprintf(name, sizeof(name), "%s::%s%s%s", l->first.kind, event, *mask ? ":" : "", mask);

	if (n < 0 || (size_t)n >= sizeof(name))
		return 0;
	if (l->first.error > 0)
		offer_try(l->env, &l->first, name);
	l->first.name = name;
	l->first.about = about ? about : "";
	return l->fn(l->arg, &l->first);
}

/* An event with masks is counted with one of them, and is listed with each. */
static int offer_masks(struct pfm_lister *l, int idx)
{
	struct pfm_event_info event = {.size = sizeof(event)};
	bool masks = false;
	int r = 0;

	if (l->pfm->event_info(idx, PFM_OS_PERF_EVENT, &event) != PFM_SUCCESS || !event.name)
		return 0;
	for (int i = 0; i < event.nattrs && r == 0; i++) {
		struct pfm_attr_info attr = {.size = sizeof(attr)};

		if (l->pfm->attr_info(idx, i, PFM_OS_PERF_EVENT, &attr) != PFM_SUCCESS ||
			attr.type != PFM_ATTR_UMASK || !attr.name)
			continue;
		masks = true;
		r = offer_name(l, event.name, attr.name, attr.desc);
	}
	return r || masks ? r : offer_name(l, event.name, "", event.desc);
}

int pfm_offers(struct env *env, int (*fn)(void *arg, const struct perf_offer *offer), void *arg)
{
	struct pfm_lister l = {.env = env, .fn = fn, .arg = arg};
	struct perf_offer none = {
		.name = "NAME.OF.THE.MANUAL…", .kind = "libpfm4", .about = "", .error = -ENOENT};
	struct pfm pfm;
	int r = 0;

	if (!pfm_open(env, &pfm)) {
		none.reason = "libpfm4 is not installed";
		none.remedy = "sudo apt install libpfm4 # or: sudo dnf install libpfm";
		return fn(arg, &none);
	}
	l.pfm = &pfm;
	for (int i = 0; i < PFM_PMUS && r == 0; i++) {
		struct pfm_pmu_info pmu = {.size = sizeof(pmu)};

		/* "perf" and "perf_raw" are the kernel's own names once more. */
		if (pfm.pmu_info(i, &pmu) != PFM_SUCCESS || !pmu.is_present || !pmu.name ||
			str_starts(pmu.name, "perf"))
			continue;
		l.first = (struct perf_offer){.kind = pmu.name, .error = 1};
		for (int idx = pmu.first_event; idx >= 0 && r == 0; idx = pfm.event_next(idx))
			r = offer_masks(&l, idx);
	}
	if (r || l.first.kind)
		return r;
	none.reason = "libpfm4 knows no counters of this processor, or sees none";
	return fn(arg, &none);
}
