/* libtacho-nvtx.so: ranges and marks of NVTX as phases and marks of the recording (`tacho run --nvtx`).
 *
 * This runs inside the job, in its threads: nothing is allocated, no lock is taken, and a message is one
 * datagram that never waits. Of each thread the two outermost ranges are told, by push and pop and by start
 * and end each; those within are counted, and the count is told with the next message and at the end.
 *
 * A program may have NVTX several times (each library has its own copy): every copy calls the start function,
 * and all get the same handlers. A child after fork() has the ranges of its parent open, which the parent
 * ends: it tells only of its own. */
#include "nvtx/nvtx.h"

#include <tacho_mark.h>

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define DOMAINS 256 /* the last one is all that come after it */
#define TOLD_MOST 2
#define STARTED 64 /* ranges by start and end that are told and open at once, of all threads */
#define NAME_MOST 256
#define TEXTS_SIZE (16u << 20) /* of registered texts; only what is used takes memory */

/* A handle is the address of its slot. 0: the default domain, which has no name. */
static struct domain {
	char name[64];
} domains[DOMAINS];
static unsigned nr_domains = 1;

static char *texts;
static size_t texts_used;
static const char too_many[] = "(too many names)";

static unsigned long within; /* ranges that are not told, since the last message */

struct told_range {
	unsigned domain, level;
	char name[NAME_MOST];
};
static __thread struct {
	uint32_t depth[DOMAINS];
	unsigned nr;
	struct told_range range[TOLD_MOST];
} thread;

static struct started_range {
	pid_t thread; /* that started it; 0: free */
	uint64_t id;
	char name[NAME_MOST];
} started[STARTED];
static uint64_t last_id;

/* ---- texts ---- */

static size_t put_utf8(char *to, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = 0xfffd;
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static void copy_wide(char *to, size_t size, const wchar_t *from)
{
	size_t at = 0;

	for (; from && *from && at + 5 <= size; from++)
		at += put_utf8(to + at, (uint32_t)*from);
	to[at] = 0;
}

/* Cut off before a character that does not fit. */
static void copy_bytes(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size) : 0;

	if (n == size)
		for (n--; n && ((unsigned char)from[n] & 0xc0) == 0x80;)
			n--;
	if (n)
		memcpy(to, from, n);
	to[n] = 0;
}

/* Where texts that are kept stand; NULL: there is no room. */
static char *text_room(size_t size)
{
	char *all = __atomic_load_n(&texts, __ATOMIC_ACQUIRE), *none = NULL;
	size_t at;

	if (!all) {
		all = mmap(NULL, TEXTS_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (all == MAP_FAILED)
			return NULL;
		if (!__atomic_compare_exchange_n(
			    &texts, &none, all, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			munmap(all, TEXTS_SIZE);
			all = none;
		}
	}
	at = __atomic_load_n(&texts_used, __ATOMIC_RELAXED);
	do
		if (size > TEXTS_SIZE - at)
			return NULL;
	while (!__atomic_compare_exchange_n(
		&texts_used, &at, at + size, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return all + at;
}

static const void *keep_text(const char *text)
{
	size_t size = strlen(text) + 1;
	char *room = text_room(size);

	if (room)
		memcpy(room, text, size);
	return room ? room : too_many;
}

static void event_text(const struct nvtx_event *event, char to[static NAME_MOST])
{
	*to = 0;
	/* A program that is older than these fields has a smaller structure. */
	if (event && event->size >= offsetof(struct nvtx_event, text) + sizeof(event->text)) {
		if (event->text_type == NVTX_TEXT_A)
			copy_bytes(to, NAME_MOST, event->text.a);
		else if (event->text_type == NVTX_TEXT_W)
			copy_wide(to, NAME_MOST, event->text.w);
		else if (event->text_type == NVTX_TEXT_REGISTERED)
			copy_bytes(to, NAME_MOST, event->text.registered);
	}
	if (!*to)
		memcpy(to, "unnamed", sizeof("unnamed"));
}

/* The job may have a locale whose decimal point is a comma, or several bytes. */
static void with_point(char *number)
{
	size_t before = strspn(number, "+-0123456789"), after = strcspn(number + before, "0123456789");

	if (!number[before] || isalpha((unsigned char)number[before])) /* 5, 1e-05, inf, nan */
		return;
	number[before] = '.';
	memmove(number + before + 1, number + before + after, strlen(number + before + after) + 1);
}

static void event_number(const struct nvtx_event *event, char *to, size_t size)
{
	*to = 0;
	if (!event || event->size < offsetof(struct nvtx_event, text_type))
		return;
	switch (event->payload_type) {
	case NVTX_U64:
		snprintf(to, size, "%llu", (unsigned long long)event->payload.u64);
		break;
	case NVTX_I64:
		snprintf(to, size, "%lld", (long long)event->payload.i64);
		break;
	case NVTX_DOUBLE:
		snprintf(to, size, "%.17g", event->payload.f64);
		with_point(to);
		break;
	case NVTX_U32:
		snprintf(to, size, "%u", event->payload.u32);
		break;
	case NVTX_I32:
		snprintf(to, size, "%d", event->payload.i32);
		break;
	case NVTX_FLOAT:
		snprintf(to, size, "%.9g", (double)event->payload.f32);
		with_point(to);
		break;
	}
}

/* ---- telling ---- */

static void say(const char *kind, const char *name, unsigned domain, const char *number)
{
	struct tacho_message m;
	char count[32];
	unsigned long left_out = __atomic_exchange_n(&within, 0, __ATOMIC_RELAXED);

	tacho_start(&m);
	if (left_out) {
		snprintf(count, sizeof(count), "%lu", left_out);
		tacho_add(&m, "@within=", count);
	}
	if (domain && *domains[domain].name)
		tacho_add(&m, "domain=", domains[domain].name);
	if (*number)
		tacho_add(&m, "payload=", number);
	if (tacho_send(&m, kind, name) < 0)
		__atomic_fetch_add(&within, left_out, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void say_the_rest(void)
{
	if (__atomic_load_n(&within, __ATOMIC_RELAXED))
		say("count", "", 0, "");
}

static void after_fork(void)
{
	within = 0;
	thread.nr = 0;
	memset(started, 0, sizeof(started));
}

static void leave_out(void)
{
	__atomic_fetch_add(&within, 1, __ATOMIC_RELAXED);
}

/* ---- marks ---- */

static unsigned domain_of(const void *handle)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)domains;

	return handle && offset < sizeof(domains) ? (unsigned)(offset / sizeof(domains[0])) : 0;
}

static void domain_mark(const void *domain, const struct nvtx_event *event)
{
	char name[NAME_MOST], number[40];

	event_text(event, name);
	event_number(event, number, sizeof(number));
	say("mark ", name, domain_of(domain), number);
}

/* A text alone, as an event. */
static struct nvtx_event narrow(const char *text)
{
	return (struct nvtx_event){
		.size = sizeof(struct nvtx_event), .text_type = NVTX_TEXT_A, .text.a = text};
}

static struct nvtx_event wide(const wchar_t *text)
{
	return (struct nvtx_event){
		.size = sizeof(struct nvtx_event), .text_type = NVTX_TEXT_W, .text.w = text};
}

/* Calls without a domain: of an event, or of a text alone. */
#define WITHOUT_DOMAIN(type, name, function)                  \
	static type name##_ex(const struct nvtx_event *event) \
	{                                                     \
		return function(NULL, event);                 \
	}                                                     \
	static type name##_a(const char *text)                \
	{                                                     \
		struct nvtx_event event = narrow(text);       \
                                                              \
		return function(NULL, &event);                \
	}                                                     \
	static type name##_w(const wchar_t *text)             \
	{                                                     \
		struct nvtx_event event = wide(text);         \
                                                              \
		return function(NULL, &event);                \
	}

WITHOUT_DOMAIN(void, mark, domain_mark)

/* ---- push and pop: nested, of one thread and domain ---- */

static int domain_push(const void *handle, const struct nvtx_event *event)
{
	unsigned domain = domain_of(handle), level = thread.depth[domain]++;
	struct told_range *range;
	char number[40];

	if (thread.nr == TOLD_MOST) {
		leave_out();
		return (int)level;
	}
	range = &thread.range[thread.nr++];
	range->domain = domain;
	range->level = level;
	event_text(event, range->name);
	event_number(event, number, sizeof(number));
	say("begin ", range->name, domain, number);
	return (int)level;
}

static int domain_pop(const void *handle)
{
	unsigned domain = domain_of(handle), level;

	if (!thread.depth[domain])
		return NVTX_NO_LEVEL;
	level = --thread.depth[domain];
	for (unsigned i = thread.nr; i-- > 0;) {
		if (thread.range[i].domain != domain || thread.range[i].level != level)
			continue;
		say("end ", thread.range[i].name, domain, "");
		thread.nr--;
		for (; i < thread.nr; i++)
			thread.range[i] = thread.range[i + 1];
		break;
	}
	return (int)level;
}

WITHOUT_DOMAIN(int, push, domain_push)

static int pop(void)
{
	return domain_pop(NULL);
}

/* ---- start and end: any thread may end what another started ---- */

/* A free place that is now this thread's; NULL: it has told of its most, or there is no place. */
static struct started_range *take_place(void)
{
	struct started_range *free_place = NULL;
	pid_t self = (pid_t)syscall(SYS_gettid), none = 0;
	unsigned mine = 0;

	for (struct started_range *r = started; r < started + STARTED; r++) {
		pid_t owner = __atomic_load_n(&r->thread, __ATOMIC_RELAXED);

		mine += owner == self;
		if (!owner && !free_place)
			free_place = r;
	}
	if (mine >= TOLD_MOST || !free_place)
		return NULL;
	/* Another thread may be faster: then this range is left out. */
	return __atomic_compare_exchange_n(
		       &free_place->thread, &none, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
		? free_place
		: NULL;
}

/* The number of its place is part of an id; STARTED: it has none. */
static uint64_t domain_start(const void *domain, const struct nvtx_event *event)
{
	uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED) << 16;
	struct started_range *range = take_place();
	char number[40];

	if (!range) {
		leave_out();
		return id | STARTED;
	}
	id |= (uint64_t)(range - started);
	event_text(event, range->name);
	event_number(event, number, sizeof(number));
	say("begin ", range->name, domain_of(domain), number);
	__atomic_store_n(&range->id, id, __ATOMIC_RELEASE);
	return id;
}

static void domain_end(const void *domain, uint64_t id)
{
	struct started_range *range = started + (id & 0xffff);

	if ((id & 0xffff) >= STARTED ||
		!__atomic_compare_exchange_n(&range->id, &id, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	say("end ", range->name, domain_of(domain), "");
	__atomic_store_n(&range->thread, 0, __ATOMIC_RELEASE);
}

WITHOUT_DOMAIN(uint64_t, start, domain_start)

static void end(uint64_t id)
{
	domain_end(NULL, id);
}

/* ---- domains and registered texts ---- */

static const void *register_a(const void *domain, const char *text)
{
	char copy[NAME_MOST];

	(void)domain;
	copy_bytes(copy, sizeof(copy), text);
	return keep_text(copy);
}

static const void *register_w(const void *domain, const wchar_t *text)
{
	char copy[NAME_MOST];

	(void)domain;
	copy_wide(copy, sizeof(copy), text);
	return keep_text(copy);
}

/* A domain that is created again is the same one: threads' depths are kept by it. */
static void *domain_named(const char *name)
{
	unsigned nr = __atomic_load_n(&nr_domains, __ATOMIC_ACQUIRE), at;

	for (unsigned i = 1; i < nr && i < DOMAINS; i++)
		if (!strcmp(domains[i].name, name))
			return &domains[i];
	at = __atomic_fetch_add(&nr_domains, 1, __ATOMIC_ACQ_REL);
	if (at >= DOMAINS - 1) {
		__atomic_store_n(&nr_domains, DOMAINS, __ATOMIC_RELEASE);
		return &domains[DOMAINS - 1];
	}
	copy_bytes(domains[at].name, sizeof(domains[at].name), name);
	return &domains[at];
}

static void *domain_create_a(const char *text)
{
	char name[sizeof(domains[0].name)];

	copy_bytes(name, sizeof(name), text);
	return domain_named(name);
}

static void *domain_create_w(const wchar_t *text)
{
	char name[sizeof(domains[0].name)];

	copy_wide(name, sizeof(name), text);
	return domain_named(name);
}

static void domain_destroy(void *domain)
{
	(void)domain; /* its slot stays: the same name gets it again */
}

/* ---- the start ---- */

struct handler {
	unsigned number;
	nvtx_function *function;
};
#define HANDLER(number, function)                              \
	{                                                      \
		number, (nvtx_function *)(uintptr_t)(function) \
	}

static const struct handler core[] = {
	HANDLER(NVTX_MARK_EX, mark_ex),
	HANDLER(NVTX_MARK_A, mark_a),
	HANDLER(NVTX_MARK_W, mark_w),
	HANDLER(NVTX_START_EX, start_ex),
	HANDLER(NVTX_START_A, start_a),
	HANDLER(NVTX_START_W, start_w),
	HANDLER(NVTX_END, end),
	HANDLER(NVTX_PUSH_EX, push_ex),
	HANDLER(NVTX_PUSH_A, push_a),
	HANDLER(NVTX_PUSH_W, push_w),
	HANDLER(NVTX_POP, pop),
};

static const struct handler core2[] = {
	HANDLER(NVTX_DOMAIN_MARK_EX, domain_mark),
	HANDLER(NVTX_DOMAIN_START_EX, domain_start),
	HANDLER(NVTX_DOMAIN_END, domain_end),
	HANDLER(NVTX_DOMAIN_PUSH_EX, domain_push),
	HANDLER(NVTX_DOMAIN_POP, domain_pop),
	HANDLER(NVTX_DOMAIN_REGISTER_A, register_a),
	HANDLER(NVTX_DOMAIN_REGISTER_W, register_w),
	HANDLER(NVTX_DOMAIN_CREATE_A, domain_create_a),
	HANDLER(NVTX_DOMAIN_CREATE_W, domain_create_w),
	HANDLER(NVTX_DOMAIN_DESTROY, domain_destroy),
};

static void put_handlers(
	const struct nvtx_callbacks *callbacks, int module, const struct handler *handler, size_t nr)
{
	nvtx_table table = NULL;
	unsigned size = 0;

	if (!callbacks->module_table(module, &table, &size) || !table)
		return;
	for (size_t i = 0; i < nr; i++)
		if (handler[i].number < size && table[handler[i].number])
			*table[handler[i].number] = handler[i].function;
}

/* Called by NVTX; 0: this program is not served, and NVTX does nothing. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*table_of)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*table_of)(uint32_t id))
{
	static int asked;
	const struct nvtx_callbacks *callbacks = table_of ? table_of(NVTX_TABLE_CALLBACKS) : NULL;
	const char *path = getenv("TACHO_SOCKET");

	if (!path || !*path || !callbacks || callbacks->size < sizeof(*callbacks))
		return 0;
	if (!__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED))
		pthread_atfork(NULL, NULL, after_fork);
	put_handlers(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	put_handlers(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return 1;
}
