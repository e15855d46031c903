/* Clients of DRM by fdinfo. See gpu_drm.h.
 *
 * Finding them costs a listing of descriptors, so it is done when something may have come: a process is new
 * (it opens its device in its first seconds, so it is looked at in several rounds), the number of its
 * descriptors has changed, or it has not been looked at for a while. Once found, a client is one read.
 *
 * Time comes in two ways: nanoseconds by engine, or (xe) cycles of the client beside all that passed, which
 * are turned into time by our own clock. A driver may give a smaller value than before for a moment; the
 * larger one is kept. Engines of one kind may work at the same time, so a process may use more than a second
 * a second.
 *
 * Memory is what is resident on the device. Buffers that clients share are listed by each of them, without
 * the other clients: such memory is counted for each. A GPU without memory of its own uses the host's, which
 * is in the process's RSS: no memory is recorded for it here.
 *
 * A map of all clients of the machine was rejected: it would need to read every process's descriptors. */
#include "collect/gpu_drm.h"

#include "base/str.h"
#include "base/text.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define LOOKS_WHEN_NEW 12
#define REST_ROUNDS 4 /* of the medium kind */
#define FDS_MAX 4096  /* of one process that are looked at */

/* ---- text ---- */

/* clang-format off */
static const struct {
	const char *name;
	enum drm_use use;
} engine[] = {
	{"gfx", DRM_BUSY}, {"compute", DRM_BUSY}, {"render", DRM_BUSY},
	{"dma", DRM_COPY}, {"copy", DRM_COPY},
	{"dec", DRM_VIDEO}, {"enc", DRM_VIDEO}, {"enc_1", DRM_VIDEO}, {"jpeg", DRM_VIDEO}, {"vpe", DRM_VIDEO},
	{"video", DRM_VIDEO}, {"video-enhance", DRM_VIDEO},
};

/* Engines that count cycles, by class. */
static const struct {
	const char *name;
	enum drm_use use;
} cycles_class[DRM_CLASSES] = {
	{"rcs", DRM_BUSY}, {"ccs", DRM_BUSY}, {"bcs", DRM_COPY}, {"vcs", DRM_VIDEO}, {"vecs", DRM_VIDEO},
};

/* Kinds of memory counts, the better first. */
static const char *const memory_key[] = {"drm-resident-", "drm-memory-", "drm-total-"};
/* clang-format on */

static struct text strip(struct text t)
{
	while (t.len && (*t.p == ' ' || *t.p == '\t'))
		t = text_from(t, 1);
	while (t.len && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t' || t.p[t.len - 1] == '\r'))
		t.len--;
	return t;
}

static void keep(char *out, size_t size, struct text t)
{
	if (t.len < size) {
		memcpy(out, t.p, t.len);
		out[t.len] = 0;
	}
}

/* "1234 KiB" */
static bool read_bytes(struct text value, int64_t *ret)
{
	const char *p = value.p, *end = value.p + value.len;
	struct text unit;
	unsigned shift = 0;

	if (!read_number(&p, end, ret) || *ret < 0)
		return false;
	unit = strip((struct text){p, (size_t)(end - p)});
	if (text_is(unit, "KiB") || text_is(unit, "kB"))
		shift = 10;
	else if (text_is(unit, "MiB"))
		shift = 20;
	else if (text_is(unit, "GiB"))
		shift = 30;
	else if (unit.len)
		return false;
	if (*ret > INT64_C(1) << (62 - shift))
		return false;
	*ret <<= shift;
	return true;
}

static bool is_device_memory(struct text region)
{
	return text_starts(region, "vram") || text_starts(region, "local");
}

struct parsing {
	struct drm_info *info;
	int64_t memory[ARRAY_SIZE(memory_key)];
	bool has_memory[ARRAY_SIZE(memory_key)];
};

static void parse_memory(struct parsing *s, struct text key, struct text value)
{
	for (size_t i = 0; i < ARRAY_SIZE(memory_key); i++) {
		int64_t bytes;

		if (!text_starts(key, memory_key[i]) ||
			!is_device_memory(text_from(key, strlen(memory_key[i]))) ||
			!read_bytes(value, &bytes) || bytes > INT64_MAX / 2 - s->memory[i])
			continue;
		s->memory[i] += bytes;
		s->has_memory[i] = true;
	}
}

static void parse_engine(struct drm_info *info, struct text name, struct text value)
{
	const char *p = value.p;
	int64_t ns;

	if (!read_number(&p, value.p + value.len, &ns) || ns < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(engine); i++) {
		int64_t *sum = &info->time_ns[engine[i].use];

		if (!text_is(name, engine[i].name) || ns > INT64_MAX / 2 - *sum)
			continue;
		*sum += ns;
		info->has_time = true;
	}
}

static void parse_cycles(struct drm_info *info, uint64_t *into, struct text name, struct text value)
{
	const char *p = value.p;
	int64_t cycles;

	for (size_t i = 0; i < DRM_CLASSES; i++)
		if (text_is(name, cycles_class[i].name) && read_number(&p, value.p + value.len, &cycles)) {
			into[i] = (uint64_t)cycles;
			info->has_cycles = true;
		}
}

static void parse_line(struct parsing *s, struct text key, struct text value)
{
	static const char engine_key[] = "drm-engine-", cycles_key[] = "drm-cycles-",
			  total_key[] = "drm-total-cycles-";
	struct drm_info *info = s->info;
	const char *p = value.p;
	int64_t number;

	if (text_is(key, "drm-driver"))
		keep(info->driver, sizeof(info->driver), value);
	else if (text_is(key, "drm-pdev") || (text_is(key, "pdev") && !info->pdev[0]))
		keep(info->pdev, sizeof(info->pdev), value);
	else if (text_is(key, "drm-client-id") || (text_is(key, "pasid") && !info->has_client)) {
		info->has_client = read_number(&p, value.p + value.len, &number);
		info->client = info->has_client ? (uint64_t)number : 0;
	} else if (text_starts(key, total_key))
		parse_cycles(info, info->total, text_from(key, sizeof(total_key) - 1), value);
	else if (text_starts(key, cycles_key))
		parse_cycles(info, info->cycles, text_from(key, sizeof(cycles_key) - 1), value);
	else if (text_starts(key, engine_key))
		parse_engine(info, text_from(key, sizeof(engine_key) - 1), value);
	else if (text_is(key, "vram mem")) /* amdgpu of Linux 5.14 to 5.18 */
		s->has_memory[1] = read_bytes(value, &s->memory[1]);
	else
		parse_memory(s, key, value);
}

bool drm_parse(const char *text, size_t len, struct drm_info *ret)
{
	struct text rest = {text, len};
	struct parsing s = {.info = ret};

	*ret = (struct drm_info){.driver = ""};
	while (rest.len) {
		struct text value = text_cut(&rest, '\n'), key = strip(text_cut(&value, ':'));

		parse_line(&s, key, strip(value));
	}
	for (size_t i = ARRAY_SIZE(memory_key); i--;)
		if (s.has_memory[i]) {
			ret->memory = s.memory[i];
			ret->has_memory = true;
		}
	/* amdgpu leaves out engines that were not used; it reports times in all versions that give the
	 * driver's name. */
	ret->has_time |= !strcmp(ret->driver, "amdgpu");
	if (!ret->driver[0] && ret->pdev[0] && ret->has_memory)
		snprintf(ret->driver, sizeof(ret->driver), "amdgpu");
	return ret->driver[0] != 0;
}

/* ---- clients ---- */

static bool is_driver(const struct drm_clients *d, const char *name)
{
	for (const char *const *driver = d->driver; *driver; driver++)
		if (!strcmp(*driver, name))
			return true;
	return false;
}

static int read_info(struct env *env, int handle, struct drm_info *ret)
{
	char text[4096];
	ssize_t n = env_read(env, handle, text, sizeof(text));

	if (n < 0)
		return (int)n;
	return drm_parse(text, (size_t)n, ret) ? 0 : -ENOENT;
}

static bool is_same(const struct drm_client *c, const struct gpu_card *card, const struct drm_info *info)
{
	return c->card == card && c->info.has_client && info->has_client && c->info.client == info->client;
}

static struct drm_client *find_client(
	struct drm_clients *d, const struct gpu_card *card, const struct drm_info *info)
{
	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle >= 0 && is_same(&d->client[i], card, info))
			return &d->client[i];
	return NULL;
}

static struct drm_client *find_descriptor(struct drm_clients *d, pid_t pid, int fd)
{
	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle >= 0 && d->client[i].pid == pid && d->client[i].fd == fd)
			return &d->client[i];
	return NULL;
}

static struct drm_client *free_client(struct drm_clients *d)
{
	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle < 0)
			return &d->client[i];
	return d->nr_clients < DRM_CLIENTS_MAX ? &d->client[d->nr_clients++] : NULL;
}

static struct drm_process *process_of(struct drm_clients *d, pid_t pid, struct gpu_card *card)
{
	for (unsigned i = 0; i < GPU_PROCESSES_MAX; i++) {
		struct drm_process *p = &d->process[i];

		if (!p->pid)
			*p = (struct drm_process){.pid = pid, .card = card};
		if (p->pid == pid && p->card == card)
			return p;
	}
	return NULL;
}

/* What is in the client's times and was not used by its present process. */
static void take_over(struct drm_clients *d, struct drm_client *c)
{
	for (unsigned i = 0; i < DRM_ENDED_MAX; i++)
		if (d->ended[i].card == c->card && c->info.has_client && d->ended[i].id == c->info.client)
			memcpy(c->before_ns, d->ended[i].time_ns, sizeof(c->before_ns));
}

/* Cycles become time by the share of all that passed since the last reading. */
static void add_cycles(struct drm_client *c, const struct drm_info *info, int64_t passed_ns)
{
	for (size_t i = 0; i < DRM_CLASSES; i++) {
		uint64_t own = info->cycles[i] - c->info.cycles[i], all = info->total[i] - c->info.total[i];

		/* A device that slept counts from another place. */
		if (info->cycles[i] < c->info.cycles[i] || info->total[i] <= c->info.total[i])
			continue;
		c->time_ns[cycles_class[i].use] +=
			(int64_t)((double)passed_ns * (double)MIN(own, all) / (double)all);
	}
}

static void account(struct drm_client *c, const struct drm_info *info, int64_t now_ns)
{
	if (info->has_cycles && c->read_ns)
		add_cycles(c, info, now_ns - c->read_ns);
	else if (!info->has_cycles)
		for (int i = 0; i < NR_DRM_USES; i++)
			c->time_ns[i] = MAX(c->time_ns[i], info->time_ns[i]);
	c->info = *info;
	c->read_ns = now_ns;
}

/* Members mostly come in the same order: the search begins where the last one was found. */
static struct drm_seen *seen_before(struct drm_clients *d, pid_t pid, unsigned *at)
{
	struct drm_seen *old = d->seen[d->turn];

	for (unsigned i = 0; i < d->nr_seen; i++) {
		unsigned k = (*at + i) % d->nr_seen;

		if (old[k].pid == pid) {
			*at = k + 1;
			return &old[k];
		}
	}
	return NULL;
}

static void drop_client(struct drm_clients *d, struct env *env, struct drm_client *c)
{
	struct drm_process *p = process_of(d, c->pid, c->card);
	unsigned at = d->nr_ended++ % DRM_ENDED_MAX, from = 0;
	struct drm_seen *seen = seen_before(d, c->pid, &from);

	/* Another may have come in its place. */
	if (seen) {
		seen->nr_files = -1;
		seen->looks = MAX(seen->looks, 1);
	}

	for (int i = 0; p && i < NR_DRM_USES; i++)
		p->gone_ns[i] += c->time_ns[i] - c->before_ns[i];
	d->ended[at].card = c->card;
	d->ended[at].id = c->info.client;
	memcpy(d->ended[at].time_ns, c->time_ns, sizeof(c->time_ns));
	env_close(env, c->handle);
	c->handle = -1;
	d->look_again |= d->shared;
}

struct gpu_drm_look {
	struct drm_clients *d;
	struct env *env;
	pid_t pid;
	int64_t now_ns;
	unsigned nr;
};

static void add_client(struct gpu_drm_look *l, int fd, int handle)
{
	struct drm_info info;
	struct gpu_card *card = NULL;
	struct drm_client *c;

	if (read_info(l->env, handle, &info) == 0 && is_driver(l->d, info.driver))
		card = gpu_card_at(l->d->cards, info.pdev);
	c = card ? find_client(l->d, card, &info) : NULL;
	l->d->shared |= c && c->pid != l->pid;
	if (!card || c || !(c = free_client(l->d))) {
		l->d->full |= card && !c;
		env_close(l->env, handle);
		return;
	}
	*c = (struct drm_client){.pid = l->pid, .fd = fd, .handle = handle, .card = card};
	account(c, &info, l->now_ns);
	take_over(l->d, c);
}

static int look_at_descriptor(void *arg, const char *name)
{
	struct gpu_drm_look *l = arg;
	char path[64], target[64];
	int64_t fd;
	ssize_t n;
	int handle;

	if (++l->nr > FDS_MAX || !parse_i64n(name, strlen(name), &fd) || fd < 0 || fd > INT32_MAX)
		return l->nr > FDS_MAX;
	if (find_descriptor(l->d, l->pid, (int)fd))
		return 0;
	snprintf(path, sizeof(path), "proc/%d/fd/%d", (int)l->pid, (int)fd);
	n = env_readlink(l->env, path, target, sizeof(target) - 1);
	target[MAX(n, 0)] = 0;
	if (n < 0 || !strstr(target, "/dri/"))
		return 0;
	snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", (int)l->pid, (int)fd);
	handle = env_open(l->env, path);
	if (handle >= 0)
		add_client(l, (int)fd, handle);
	else
		l->d->hidden |= is_refused(handle);
	return 0;
}

/* How many descriptors it has; 0: this kernel does not give it. */
static int64_t count_files(struct env *env, pid_t pid)
{
	char path[32];
	int64_t nr;
	int handle;

	snprintf(path, sizeof(path), "proc/%d/fd", (int)pid);
	handle = env_open(env, path);
	if (handle < 0)
		return handle;
	nr = env_size(env, handle);
	env_close(env, handle);
	return nr;
}

static void look_at(struct drm_clients *d, struct env *env, struct drm_seen *s, int64_t now_ns)
{
	struct gpu_drm_look l = {.d = d, .env = env, .pid = s->pid, .now_ns = now_ns};
	int64_t nr = count_files(env, s->pid);
	char path[32];

	d->hidden |= is_refused(nr);
	if (nr < 0 || (nr > 0 && nr == s->nr_files && s->rest && !d->look_again))
		return;
	s->nr_files = nr;
	s->rest = REST_ROUNDS;
	snprintf(path, sizeof(path), "proc/%d/fd", (int)s->pid);
	env_list(env, path, look_at_descriptor, &l);
}

/* ---- rounds ---- */

static void look_at_members(
	struct drm_clients *d, struct env *env, const struct gpu_request *request, int64_t now_ns)
{
	struct drm_seen *new = d->seen[!d->turn];
	unsigned nr = MIN(request->nr_members, (unsigned)GPU_MEMBERS_MAX), at = 0;
	bool all = request->medium || d->look_again;

	d->looked = false;
	for (unsigned i = 0; i < nr; i++) {
		struct drm_seen *old = seen_before(d, request->member[i], &at);

		new[i] = old ? *old
			     : (struct drm_seen){
				       .pid = request->member[i], .looks = LOOKS_WHEN_NEW, .nr_files = -1};
		if (!new[i].looks && !all)
			continue;
		if (new[i].looks)
			new[i].looks--;
		if (request->medium && new[i].rest)
			new[i].rest--;
		look_at(d, env, &new[i], now_ns);
		d->looked = true;
	}
	d->look_again = false;
	d->nr_seen = nr;
	d->turn = !d->turn;
}

static void read_clients(struct drm_clients *d, struct env *env, int64_t now_ns)
{
	for (unsigned i = 0; i < d->nr_clients; i++) {
		struct drm_client *c = &d->client[i];
		struct drm_info info;

		if (c->handle < 0 || c->read_ns == now_ns)
			continue;
		/* The number may be another file's by now. */
		if (read_info(env, c->handle, &info) < 0 || gpu_card_at(d->cards, info.pdev) != c->card ||
			(info.has_client && info.client != c->info.client))
			drop_client(d, env, c);
		else
			account(c, &info, now_ns);
	}
}

/* Those of processes that are no members any more make room; the others close up. */
static void forget_processes(struct drm_clients *d, struct env *env)
{
	unsigned at = 0, nr = 0;

	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle >= 0 && !seen_before(d, d->client[i].pid, &at))
			drop_client(d, env, &d->client[i]);
	at = 0;
	for (unsigned i = 0; i < GPU_PROCESSES_MAX && d->process[i].pid; i++)
		if (seen_before(d, d->process[i].pid, &at))
			d->process[nr++] = d->process[i];
	for (; nr < GPU_PROCESSES_MAX && d->process[nr].pid; nr++)
		d->process[nr].pid = 0;
}

struct gpu_process *gpu_process_of(struct gpu_reading *ret, const struct gpu_card *card, int64_t pid)
{
	struct gpu_process *p;

	if (card->at < 0)
		return NULL;
	for (unsigned i = 0; i < ret->nr_processes; i++) {
		p = &ret->process[i];
		if (p->pid == pid && p->device == (unsigned)card->at)
			return p;
	}
	if (ret->nr_processes == GPU_PROCESSES_MAX)
		return NULL;
	p = &ret->process[ret->nr_processes++];
	*p = (struct gpu_process){.device = (unsigned)card->at, .pid = pid};
	return p;
}

static void add_to(struct gpu_process *out, enum gpu_process_row row, int64_t value)
{
	gpu_process_set(out, row, (out->valid >> row & 1 ? out->value[row] : 0) + value);
}

static void tell_client(struct drm_clients *d, struct drm_client *c, struct gpu_reading *ret)
{
	static const enum gpu_process_row row[] = {GPU_PROCESS_BUSY, GPU_PROCESS_COPY, GPU_PROCESS_VIDEO};
	struct gpu_process *out = gpu_process_of(ret, c->card, c->pid);
	struct drm_process *p = process_of(d, c->pid, c->card);

	if (!out || !p)
		return;
	if (c->info.has_memory)
		add_to(out, GPU_PROCESS_MEMORY, c->info.memory);
	for (int i = 0; (c->info.has_time || c->info.has_cycles) && i < NR_DRM_USES; i++)
		/* What closed clients used is in the sum once. */
		add_to(out, row[i],
			c->time_ns[i] - c->before_ns[i] + (out->valid >> row[i] & 1 ? 0 : p->gone_ns[i]));
}

static void explain(const struct drm_clients *d, struct gpu_reading *ret)
{
	static const struct gpu_why hidden = {FORBIDDEN,
		"descriptors of processes of other users may not be looked at",
		"record as that user, or as root"};
	static const struct gpu_why full = {FAILED, "more device files are open than are looked at", NULL};
	static const struct gpu_why no_memory = {ABSENT,
		"the GPU has no memory of its own, or its driver does not report it by process", NULL};
	static const struct gpu_why no_time = {
		ABSENT, "the driver reports no time by process: that came with Linux 5.19", NULL};
	static const struct gpu_why no_share = {
		ABSENT, "the driver reports no share by process, but times of its engines", NULL};

	for (int i = 0; i < NR_GPU_PROCESS_ROWS; i++) {
		bool missing = !ret->nr_processes;

		for (unsigned k = 0; k < ret->nr_processes; k++)
			missing |= !(ret->process[k].valid >> i & 1);
		if (!missing)
			continue;
		if (d->hidden)
			ret->process_why[i] = hidden;
		else if (ret->nr_processes && i == GPU_PROCESS_MEMORY)
			ret->process_why[i] = no_memory;
		else if (ret->nr_processes)
			ret->process_why[i] = i >= GPU_PROCESS_BUSY ? no_time : no_share;
	}
	/* Some have a value, but not all. */
	if (d->full)
		ret->process_why[GPU_PROCESS_MEMORY] = full;
}

void drm_clients_read(
	struct drm_clients *d, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	int64_t now_ns = env_now(env, ENV_MONOTONIC);

	if (!request->process_rows)
		return;
	read_clients(d, env, now_ns);
	look_at_members(d, env, request, now_ns);
	forget_processes(d, env);
	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle >= 0)
			tell_client(d, &d->client[i], ret);
	explain(d, ret);
}

void drm_clients_close(struct drm_clients *d, struct env *env)
{
	for (unsigned i = 0; i < d->nr_clients; i++)
		if (d->client[i].handle >= 0) {
			env_close(env, d->client[i].handle);
			d->client[i].handle = -1;
		}
}
