/* Cards of sys/class/drm and their files.
 *
 * Everything of a card is found once and read through open handles. A suspended card is not read: most
 * drivers wake it to read its clocks, which costs seconds and watts. So its runtime status is read first, and
 * while it sleeps only constant values are given.
 *
 * The PCI address is in the device's uevent; where that is hidden, in one of the links that lead to the card.
 * Partitions of a card have cards of their own with no PCI device below them: they are no cards here. */
#include "collect/gpu_card.h"

#include "base/str.h"
#include "read/value.h"

#include <stdio.h>
#include <string.h>

#define DRM "sys/class/drm"
#define CHANNELS_MAX 16

static const char asleep_reason[] = "the GPU is suspended, and is not woken to be read";

static bool is_hex(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdefABCDEF") >= n;
}

/* "0000:03:00.0" */
static bool is_pci(const char *s, size_t len)
{
	const char *colon = memchr(s, ':', len);
	size_t domain = colon ? (size_t)(colon - s) : 0;

	return domain >= 4 && domain <= 8 && len == domain + 8 && is_hex(s, domain) && is_hex(colon + 1, 2) &&
		colon[3] == ':' && is_hex(colon + 4, 2) && colon[6] == '.' && is_hex(colon + 7, 1);
}

/* The last part of a path that is an address. */
static bool pci_of_path(const char *path, char *out, size_t size)
{
	bool found = false;

	for (const char *part = path; *part; part += strspn(part, "/")) {
		size_t len = strcspn(part, "/");

		if (is_pci(part, len) && len < size) {
			memcpy(out, part, len);
			out[len] = 0;
			found = true;
		}
		part += len;
	}
	return found;
}

static bool pci_of_uevent(const char *text, char *out, size_t size)
{
	static const char key[] = "PCI_SLOT_NAME=";
	const char *at = strstr(text, key);
	size_t len;

	if (!at)
		return false;
	at += sizeof(key) - 1;
	len = strcspn(at, "\n");
	if (!is_pci(at, len) || len >= size)
		return false;
	memcpy(out, at, len);
	out[len] = 0;
	return true;
}

static bool pci_of_card(struct env *env, const char *dir, char *out, size_t size)
{
	static const char *const below[] = {"/device", ""};
	char path[64], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/device/uevent", dir);
	if (env_peek(env, path, text, sizeof(text)) > 0 && pci_of_uevent(text, out, size))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, below[i]);
		n = env_readlink(env, path, text, sizeof(text) - 1);
		text[MAX(n, 0)] = 0;
		if (n > 0 && pci_of_path(text, out, size))
			return true;
	}
	return false;
}

/* "card0", not its connectors "card0-DP-1". */
static int card_number(const char *name)
{
	int64_t number;

	if (!str_starts(name, "card") || !parse_i64n(name + 4, strlen(name + 4), &number) || number < 0 ||
		number > 999)
		return -EINVAL;
	return (int)number;
}

struct gpu_card_search {
	struct env *env;
	const char *vendor;
	unsigned nr;
	struct gpu_card_found {
		char pci[32], dir[32], id[16];
		int number;
	} found[GPU_DEVICES_MAX];
};

static bool is_of_vendor(struct env *env, const char *dir, const char *vendor)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "%s/device/vendor", dir);
	return value_get_text(env, path, text, sizeof(text)) > 0 && !strcmp(text, vendor);
}

static int add_found(void *arg, const char *name)
{
	struct gpu_card_search *s = arg;
	struct gpu_card_found new = {.number = card_number(name)}, *place;
	char path[64], text[16] = "";

	if (new.number < 0 || s->nr == GPU_DEVICES_MAX)
		return 0;
	snprintf(new.dir, sizeof(new.dir), DRM "/card%d", new.number);
	if (!is_of_vendor(s->env, new.dir, s->vendor) ||
		!pci_of_card(s->env, new.dir, new.pci, sizeof(new.pci)))
		return 0;
	snprintf(path, sizeof(path), "%s/device/device", new.dir);
	value_get_text(s->env, path, text, sizeof(text));
	snprintf(new.id, sizeof(new.id), "%.4s:%.8s", s->vendor + 2, str_starts(text, "0x") ? text + 2 : "?");
	/* In the order of their addresses, as the makers' tools count. */
	for (place = &s->found[s->nr]; place > s->found && strcmp(place[-1].pci, new.pci) > 0; place--)
		*place = place[-1];
	*place = new;
	s->nr++;
	return 0;
}

static int stop_at_card(void *arg, const char *name)
{
	struct gpu_card_search *s = arg;
	char dir[32];
	int number = card_number(name);

	snprintf(dir, sizeof(dir), DRM "/card%d", number);
	return number >= 0 && is_of_vendor(s->env, dir, s->vendor);
}

int gpu_cards_probe(struct env *env, const char *vendor)
{
	struct gpu_card_search s = {.env = env, .vendor = vendor};
	int r = env_list(env, DRM, stop_at_card, &s);

	return r == 1 ? 0 : is_refused(r) ? -EACCES : -ENOENT;
}

struct gpu_card *gpu_card_at(struct gpu_cards *c, const char *pci)
{
	for (unsigned i = 0; i < c->nr; i++)
		if (!strcmp(c->card[i].pci, pci))
			return &c->card[i];
	return NULL;
}

int gpu_card_text(const struct gpu_card *card, struct env *env, const char *file, char *out, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", card->dir, file);
	return value_get_text(env, path, out, size);
}

static void close_card(struct gpu_card *card, struct env *env)
{
	for (unsigned i = 0; card->opened && i < GPU_FILES_MAX; i++)
		env_close(env, card->handle[i]);
	env_close(env, card->power);
	card->power = -1;
	card->opened = card->present = false;
	card->has = 0;
	card->at = -1;
	card->device.valid = 0;
}

static void take_in(struct gpu_cards *c, struct env *env, const struct gpu_card_found *found)
{
	struct gpu_card *card = gpu_card_at(c, found->pci);
	char path[64];

	if (!card && c->nr == GPU_DEVICES_MAX)
		return;
	if (!card) {
		card = &c->card[c->nr];
		*card = (struct gpu_card){.power = -1, .at = -1, .device.index = (int)c->nr++};
		snprintf(card->device.name, sizeof(card->device.name), "%s-%d", c->maker, card->device.index);
	}
	card->seen = true;
	if (card->present)
		return;
	/* The number of a card that came back may be another. */
	memcpy(card->pci, found->pci, sizeof(card->pci));
	memcpy(card->dir, found->dir, sizeof(card->dir));
	memcpy(card->id, found->id, sizeof(card->id));
	memcpy(card->device.pci, found->pci, sizeof(card->device.pci));
	card->device.minor = card->number = found->number;
	snprintf(path, sizeof(path), "%s/device/power/runtime_status", card->dir);
	card->power = env_open(env, path);
	card->present = true;
}

int gpu_cards_find(struct gpu_cards *c, struct env *env)
{
	struct gpu_card_search s = {.env = env, .vendor = c->vendor};
	int r = env_list(env, DRM, add_found, &s), nr = 0;

	for (unsigned i = 0; i < c->nr; i++)
		c->card[i].seen = false;
	for (unsigned i = 0; i < s.nr; i++)
		take_in(c, env, &s.found[i]);
	for (unsigned i = 0; i < c->nr; i++) {
		if (!c->card[i].seen && c->card[i].present)
			close_card(&c->card[i], env);
		nr += c->card[i].present;
	}
	return nr ? nr : MIN(r, 0);
}

/* ---- files ---- */

struct gpu_why gpu_why_of(int error, bool reading)
{
	if (error == -EACCES || (error == -EPERM && !reading))
		return (struct gpu_why){FORBIDDEN, "the GPU's files in /sys may not be read", "run as root"};
	if (error == -EPERM || error == -EBUSY)
		return (struct gpu_why){FAILED, "the driver is resetting the GPU", NULL};
	if (error == -EMFILE || error == -ENFILE)
		return (struct gpu_why){FAILED, "too many files are open", "ulimit -n 65536"};
	if (error == -ENOENT || error == -EOPNOTSUPP || error == -ENODEV)
		return (struct gpu_why){ABSENT, "the driver of this GPU does not report it", NULL};
	return (struct gpu_why){FAILED, "the driver gave no sensible answer", NULL};
}

static int keep_first(void *arg, const char *name)
{
	char *out = arg;

	if (str_starts(name, "hwmon") && strlen(name) < 24)
		snprintf(out, 24, "%s", name);
	return *out != 0;
}

static void find_hwmon(struct gpu_card *card, struct env *env)
{
	char path[64], name[24] = "";

	snprintf(path, sizeof(path), "%s/device/hwmon", card->dir);
	env_list(env, path, keep_first, name);
	card->hwmon[0] = 0;
	if (*name)
		snprintf(card->hwmon, sizeof(card->hwmon), "%s/%s", path, name);
}

/* "temp#_input" of the channel that is called so: its number, or 0. */
static int labelled(const struct gpu_card *card, struct env *env, const char *file, const char *label)
{
	int prefix = (int)strcspn(file, "#");

	for (int i = 1; i <= CHANNELS_MAX; i++) {
		char path[160], text[32];
		int n;

		snprintf(path, sizeof(path), "%s/%.*s%d_label", card->hwmon, prefix, file, i);
		n = value_get_text(env, path, text, sizeof(text));
		if (n > 0 && !strcmp(text, label))
			return i;
	}
	return 0;
}

/* Opens it; where the channel has a label, the one that has it. */
static int open_file(const struct gpu_card *card, struct env *env, const struct gpu_file *f)
{
	const char *below = strstr(f->path, "hwmon/") == f->path ? f->path + 6 : NULL;
	const char *hash = strchr(f->path, '#');
	char path[192];
	int channel;

	if (below && !card->hwmon[0])
		return -ENOENT;
	if (!below) {
		snprintf(path, sizeof(path), "%s/%s", card->dir, f->path);
	} else if (!hash) {
		snprintf(path, sizeof(path), "%s/%s", card->hwmon, below);
	} else {
		channel = labelled(card, env, below, f->label);
		if (!channel)
			return -ENOENT;
		snprintf(path, sizeof(path), "%s/%.*s%d%s", card->hwmon, (int)(hash - below), below, channel,
			hash + 1);
	}
	return env_open(env, path);
}

static bool is_asleep(const struct gpu_card *card, struct env *env)
{
	char text[16];

	return card->power >= 0 && value_read_text(env, card->power, text, sizeof(text)) > 0 &&
		str_starts(text, "suspend");
}

/* The number of a line "2: 1700Mhz *"; false when it has none. */
static bool level_of(const char *line, const char *end, int64_t *ret)
{
	const char *p = memchr(line, ':', (size_t)(end - line));

	if (!p)
		return false;
	for (p++; p < end && *p == ' '; p++)
		;
	return read_number(&p, end, ret);
}

static int read_levels(const char *text, const char *end, enum gpu_file_kind kind, int64_t *ret)
{
	int r = -EBADMSG;

	for (const char *line = text; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		bool wanted;

		stop = stop ? stop : end;
		wanted = kind == FILE_LEVELS || memchr(line, '*', (size_t)(stop - line));
		if (wanted && level_of(line, stop, ret))
			r = 0;
		line = stop + 1;
	}
	return r;
}

static int read_file(struct env *env, int handle, const struct gpu_file *f, int64_t *ret)
{
	char text[1024];
	ssize_t n;
	int r = -EBADMSG;

	if (f->kind == FILE_NUMBER) {
		r = value_read(env, handle, ret);
	} else {
		n = env_read(env, handle, text, sizeof(text));
		if (n < 0)
			return (int)n;
		if (f->kind == FILE_KEY)
			r = read_key(text, text + n, f->label, ret) ? 0 : -EBADMSG;
		else
			r = read_levels(text, text + n, f->kind, ret);
	}
	if (r == 0 && (*ret < 0 || *ret > INT64_MAX / 1024))
		r = -EBADMSG;
	if (r == 0 && f->div)
		*ret = (int64_t)((__int128)*ret * f->mul / f->div);
	return r;
}

void gpu_device_set(struct gpu_device *device, enum gpu_row row, int64_t value)
{
	device->valid |= UINT64_C(1) << row;
	device->value[row] = value;
}

static bool passes(int error)
{
	return error == -EPERM || error == -EBUSY || error == -EAGAIN || error == -EIO;
}

/* Opens it and reads it once. Some files exist but have no value: then the next file of the row is tried. */
static void try_file(struct gpu_cards *c, struct gpu_card *card, struct env *env, unsigned i)
{
	const struct gpu_file *f = &c->file[i];
	int handle = open_file(card, env, f), r = MIN(handle, 0);
	int64_t value = 0;

	if (handle >= 0)
		r = read_file(env, handle, f, &value);
	if (r == 0)
		gpu_device_set(&card->device, f->row, value);
	else
		c->why[f->row] = gpu_why_of(r, handle >= 0);
	if (r == 0 || (handle >= 0 && passes(r)))
		card->has |= UINT64_C(1) << f->row;
	else
		env_close(env, handle);
	card->handle[i] = handle >= 0 && (r == 0 || passes(r)) ? handle : -1;
	if (r == 0 && f->flags & FILE_CONSTANT) {
		env_close(env, handle);
		card->handle[i] = -1;
	}
}

static void open_card(
	struct gpu_cards *c, struct gpu_card *card, struct env *env, const struct gpu_request *request)
{
	find_hwmon(card, env);
	for (unsigned i = 0; i < GPU_FILES_MAX; i++)
		card->handle[i] = -1;
	for (unsigned i = 0; i < c->nr_files; i++)
		if ((request->rows & ~card->has) >> c->file[i].row & 1)
			try_file(c, card, env, i);
	card->opened = true;
	c->describe(card, env);
}

/* 0, or the error of the first file when none could be read. */
static int read_card(struct gpu_cards *c, struct gpu_card *card, struct env *env, bool medium)
{
	int first = 0;
	bool any = false;

	for (unsigned i = 0; i < c->nr_files; i++) {
		const struct gpu_file *f = &c->file[i];
		int64_t value = 0;
		int r;

		if (card->handle[i] < 0 || (f->flags & FILE_SLOW && !medium))
			continue;
		r = read_file(env, card->handle[i], f, &value);
		if (r == 0) {
			gpu_device_set(&card->device, f->row, value);
			any = true;
			continue;
		}
		card->device.valid &= ~(UINT64_C(1) << f->row);
		c->why[f->row] = gpu_why_of(r, true);
		first = first ? first : r;
	}
	return any ? 0 : first;
}

/* Only what cannot change is known of a card that sleeps. */
static void forget_present(struct gpu_cards *c, struct gpu_card *card)
{
	uint64_t constant = 0;

	for (unsigned i = 0; i < c->nr_files; i++)
		if (c->file[i].flags & FILE_CONSTANT)
			constant |= UINT64_C(1) << c->file[i].row;
	for (unsigned i = 0; i < NR_GPU_ROWS; i++)
		if (!(constant >> i & 1))
			c->why[i] = (struct gpu_why){FAILED, asleep_reason, NULL};
	card->device.valid &= constant;
}

/* False: it is not there any more. */
static bool look_at_card(
	struct gpu_cards *c, struct gpu_card *card, struct env *env, const struct gpu_request *request)
{
	bool was_opened = card->opened;
	int r = 0;

	card->asleep = is_asleep(card, env);
	card->device.lost = NULL;
	if (card->asleep) {
		forget_present(c, card);
		if (!card->device.model[0])
			c->describe(card, env);
		return true;
	}
	if (!was_opened)
		open_card(c, card, env, request);
	else
		r = read_card(c, card, env, request->medium);
	if (r == -ENODEV || r == -ENXIO) {
		close_card(card, env);
		return false;
	}
	if (r == -EPERM || r == -EBUSY)
		card->device.lost = "the driver is resetting it";
	else if (r == -EIO || r == -ETIMEDOUT)
		card->device.lost = "its driver cannot reach it";
	return true;
}

void gpu_cards_read(
	struct gpu_cards *c, struct env *env, const struct gpu_request *request, struct gpu_reading *ret)
{
	for (unsigned i = 0; i < c->nr; i++) {
		struct gpu_card *card = &c->card[i];

		card->at = -1;
		if (!card->present || !look_at_card(c, card, env, request))
			continue;
		card->at = (int)ret->nr_devices;
		ret->device[ret->nr_devices++] = card->device;
	}
	for (unsigned row = 0; row < NR_GPU_ROWS; row++)
		for (unsigned i = 0; i < ret->nr_devices; i++)
			if (!gpu_device_has(&ret->device[i], (enum gpu_row)row))
				ret->why[row] = c->why[row];
}

void gpu_cards_close(struct gpu_cards *c, struct env *env)
{
	for (unsigned i = 0; i < c->nr; i++)
		if (c->card[i].present)
			close_card(&c->card[i], env);
}
