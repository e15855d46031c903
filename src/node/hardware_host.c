/* The system that runs on the machine: distribution, maker of the machine, hypervisor, container, boot.
 *
 * Hypervisor and container are recognised by signs, each one row. Asking the hypervisor itself (CPUID's leaf
 * 0x40000000) was rejected: the clock sources it offers say the same, and a captured machine has them too. */
#include "node/facts.h"

#include "base/str.h"
#include "base/units.h"

#include <string.h>
#include <sys/timex.h>

struct sign {
	const char *found; /* what to look for */
	const char *name;  /* what it means */
};

/* Clock sources that only a hypervisor offers. */
static const struct sign clock_sign[] = {
	{"kvm-clock", "KVM"},
	{"xen", "Xen"},
	{"hyperv_clocksource_tsc_page", "Hyper-V"},
	{"hyperv_clocksource_msr", "Hyper-V"},
};

/* Anywhere in the maker's and the machine's name, or in the device tree's. */
static const struct sign machine_sign[] = {
	{"VMware", "VMware"},
	{"VirtualBox", "VirtualBox"},
	{"innotek", "VirtualBox"},
	{"Virtual Machine", "Hyper-V"},
	{"Xen", "Xen"},
	{"xen,", "Xen"},
	{"KVM", "KVM"},
	{"linux,kvm", "KVM"},
	{"Amazon EC2", "KVM"}, /* Nitro; its predecessor was Xen and is named so */
	{"Google Compute Engine", "KVM"},
	{"OpenStack", "KVM"},
	{"Parallels", "Parallels"},
	{"BHYVE", "bhyve"},
	{"Apple Virtualization", "Apple"},
	{"QEMU", "QEMU"},
	{"linux,dummy-virt", "QEMU"},
};

/* Texts of firmware whose maker filled in nothing. */
static const char *const placeholder[] = {"To be filled by O.E.M.", "Default string", "System manufacturer",
	"System Product Name", "Not Specified", "Not Applicable", "Unknown", "None"};

enum container_clue { CLUE_VARIABLE, CLUE_FILE, CLUE_CGROUP, CLUE_MANAGER };

/* The inmost first: Apptainer may run inside Kubernetes, and Kubernetes runs containers that look like
 * Docker's. */
static const struct {
	enum container_clue clue;
	const char *found, *name;
} container_sign[] = {
	{CLUE_VARIABLE, "APPTAINER_CONTAINER", "apptainer"},
	{CLUE_VARIABLE, "APPTAINER_NAME", "apptainer"},
	{CLUE_VARIABLE, "SINGULARITY_CONTAINER", "singularity"},
	{CLUE_VARIABLE, "SINGULARITY_NAME", "singularity"},
	{CLUE_VARIABLE, "CH_RUNNING", "charliecloud"},
	{CLUE_VARIABLE, "SHIFTER_RUNTIME", "shifter"},
	{CLUE_VARIABLE, "KUBERNETES_SERVICE_HOST", "kubernetes"},
	{CLUE_CGROUP, "kubepods", "kubernetes"},
	{CLUE_FILE, "run/.containerenv", "podman"},
	{CLUE_FILE, ".dockerenv", "docker"},
	{CLUE_CGROUP, "/docker", "docker"},
	{CLUE_CGROUP, "libpod", "podman"},
	{CLUE_CGROUP, "/lxc", "lxc"},
	{CLUE_MANAGER, "lxc", "lxc"},
	{CLUE_MANAGER, "lxc-libvirt", "lxc"},
	{CLUE_MANAGER, "systemd-nspawn", "systemd-nspawn"},
	{CLUE_MANAGER, "podman", "podman"},
	{CLUE_MANAGER, "docker", "docker"},
	{CLUE_MANAGER, "oci", "oci"},
	{CLUE_MANAGER, "wsl", "wsl"},
};

/* os-release quotes as a shell does; what stands behind a backslash is meant as it is. */
static void unquote(char *text)
{
	char quote = *text == '"' || *text == '\'' ? *text : 0;
	char *from = text + (quote != 0), *to = text;

	for (; *from && *from != quote; from++) {
		if (*from == '\\' && quote != '\'' && from[1])
			from++;
		*to++ = *from;
	}
	*to = 0;
}

static void say_distribution(struct facts *f)
{
	char text[4096], name[256] = "";

	if (fact_read(f, text, sizeof(text), "etc/os-release") <= 0)
		fact_read(f, text, sizeof(text), "usr/lib/os-release");
	if (!text_value(text, "PRETTY_NAME", '=', name, sizeof(name)))
		text_value(text, "NAME", '=', name, sizeof(name));
	unquote(name);
	fact_text(f, "distribution", name);
}

static void clear_placeholder(char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(placeholder); i++)
		if (!strcasecmp(text, placeholder[i]))
			*text = 0;
}

/* What SMBIOS says of it, else the device tree. */
static void read_machine(struct facts *f, char *out, size_t size)
{
	char vendor[128], product[128];

	fact_read(f, vendor, sizeof(vendor), "sys/class/dmi/id/sys_vendor");
	fact_read(f, product, sizeof(product), "sys/class/dmi/id/product_name");
	clear_placeholder(vendor);
	clear_placeholder(product);
	/* Some products begin with their maker's name. */
	if (*vendor && str_starts(product, vendor))
		*vendor = 0;
	snprintf(out, size, "%s%s%s", vendor, *vendor && *product ? " " : "", product);
	if (!*out)
		fact_read(f, out, size, "proc/device-tree/model");
}

static const char *sign_in(const char *text, const struct sign *sign, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strstr(text, sign[i].found))
			return sign[i].name;
	return NULL;
}

/* On x86 a flag of the CPU says for sure whether there is a hypervisor, elsewhere only the signs of one do.
 */
static const char *hypervisor_of(struct facts *f, const char *machine)
{
	const char *name;
	char text[512];

	if (f->is_x86 && !text_has_word(f->cpu_flags, "hypervisor"))
		return "none";
	if (fact_read(f, text, sizeof(text), "sys/hypervisor/type") > 0 && !strcmp(text, "xen"))
		return "Xen";
	fact_read(f, text, sizeof(text), "sys/devices/system/clocksource/clocksource0/available_clocksource");
	for (size_t i = 0; i < ARRAY_SIZE(clock_sign); i++)
		if (text_has_word(text, clock_sign[i].found))
			return clock_sign[i].name;
	name = sign_in(machine, machine_sign, ARRAY_SIZE(machine_sign));
	if (name || f->is_x86)
		return name ? name : "unknown";
	if (fact_read(f, text, sizeof(text), "proc/device-tree/hypervisor/compatible") <= 0)
		fact_read(f, text, sizeof(text), "proc/device-tree/compatible");
	name = sign_in(text, machine_sign, ARRAY_SIZE(machine_sign));
	return name ? name : "";
}

/* What the container's manager passed to the first process ("container=lxc"), and systemd wrote down. It is
 * also in proc/1/environ, with all the secrets that a container is given: that file is not opened, so that a
 * capture of a machine does not hold them. */
static void read_manager(struct facts *f, char *out, size_t size)
{
	const char *value = env_getenv(f->env, "container");

	if (value)
		snprintf(out, size, "%s", value);
	else
		fact_read(f, out, size, "run/systemd/container");
}

static bool is_there(struct facts *f, const char *path)
{
	int r = env_try(f->env, path);

	return r == 0 || r == -EACCES;
}

static void say_container(struct facts *f)
{
	char cgroup[4096], manager[64];

	fact_read(f, cgroup, sizeof(cgroup), "proc/self/cgroup");
	read_manager(f, manager, sizeof(manager));
	for (size_t i = 0; i < ARRAY_SIZE(container_sign); i++) {
		const char *found = container_sign[i].found;
		bool yes = false;

		switch (container_sign[i].clue) {
		case CLUE_VARIABLE:
			yes = env_getenv(f->env, found) != NULL;
			break;
		case CLUE_FILE:
			yes = is_there(f, found);
			break;
		case CLUE_CGROUP:
			yes = strstr(cgroup, found) != NULL;
			break;
		case CLUE_MANAGER:
			yes = !strcmp(manager, found);
			break;
		}
		if (yes) {
			fact_text(f, "container", container_sign[i].name);
			return;
		}
	}
}

/* One word of the kernel's command line; the rest is private and not recorded. */
static void say_mitigations(struct facts *f)
{
	char line[4096], *word;

	fact_read(f, line, sizeof(line), "proc/cmdline");
	word = str_starts(line, "mitigations=") ? line : strstr(line, " mitigations=");
	if (!word)
		return;
	word = strchr(word, '=') + 1;
	word[strcspn(word, " \n")] = 0;
	fact_text(f, "mitigations", word);
}

static void say_boot(struct facts *f)
{
	int64_t boot_ns = env_now(f->env, ENV_REALTIME) - env_now(f->env, ENV_BOOTTIME);
	char text[UNITS_SIZE];

	/* To the second: the two clocks are not read at the same time. */
	if (boot_ns > 0)
		fact_text(f, "boot_time",
			format_iso8601(text, (boot_ns + NSEC_PER_SEC / 2) / NSEC_PER_SEC * NSEC_PER_SEC));
}

/* What the kernel knows of its clock: whether something keeps it right, and how wrong it may be. Nodes of a
 * run are aligned by their clocks. */
static void say_clock(struct facts *f)
{
	struct timex clock = {0};

	if (!f->env->live || adjtimex(&clock) < 0)
		return;
	fact_text(f, "clock_synchronized", clock.status & STA_UNSYNC ? "no" : "yes");
	if (!(clock.status & STA_UNSYNC))
		fact_number(f, "clock_error_us", clock.maxerror);
}

void hardware_host(struct facts *f)
{
	char machine[300];

	say_distribution(f);
	read_machine(f, machine, sizeof(machine));
	fact_text(f, "machine", machine);
	fact_text(f, "virtualization", hypervisor_of(f, machine));
	say_container(f);
	say_mitigations(f);
	say_boot(f);
	say_clock(f);
}
