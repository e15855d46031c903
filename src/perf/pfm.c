/* Names of the processors' manuals through libpfm4, where it is installed: it knows thousands for all makers,
 * and gives the attr. Only what is used is declared here, by its documented layout, so that neither header
 * nor library is needed to build. It is looked for each time, as a name is asked for; it initialises itself
 * once. */
#include "perf/event_internal.h"

#include "base/str.h"

#define PFM_LIBRARY "libpfm.so.4"

enum { PFM_SUCCESS = 0, PFM_ERR_NOTFOUND = -4, PFM_OS_PERF_EVENT = 1 };
enum { PFM_PLM0 = 0x01, PFM_PLM3 = 0x08 }; /* kernel, user */

struct pfm_encode_arg {
	struct perf_event_attr *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad0;
};

/* Every symbol is there in all versions of libpfm.so.4. */
struct pfm {
	int (*initialize)(void);
	int (*encode)(const char *text, int levels, int os, void *arg);
	const char *(*strerror)(int error);
};

static bool pfm_open(struct env *env, struct pfm *ret)
{
	void *library = env_library(env, PFM_LIBRARY, NULL);

	if (!library)
		return false;
	*(void **)&ret->initialize = env_symbol(env, library, "pfm_initialize");
	*(void **)&ret->encode = env_symbol(env, library, "pfm_get_os_event_encoding");
	*(void **)&ret->strerror = env_symbol(env, library, "pfm_strerror");
	return ret->initialize && ret->encode && ret->strerror && ret->initialize() == PFM_SUCCESS;
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
