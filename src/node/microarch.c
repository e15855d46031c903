/* Vendor, family, model and stepping to a name.
 *
 * Names are those of the kernel's own lists (asm/intel-family.h, asm/cputype.h) in small letters; the server
 * core of a generation that has a client core too ends in "-x". They are for ever: event files are called
 * after them.
 *
 * A table rather than CPUID's own strings: no machine names its micro-architecture, and the brand names
 * ("Gold 6248") follow no rule. What is not listed has no name; a guess from a similar model would count
 * wrong events. */
#include "node/microarch.h"

#include <string.h>

#define INTEL "GenuineIntel"
#define AMD "AuthenticAMD"
#define HYGON "HygonGenuine"
#define ARM "ARM"
#define ANY (-1) /* family */

/* clang-format off */
static const struct microarch {
	const char *vendor;
	int16_t family;
	uint16_t model, model_last;
	uint8_t stepping, stepping_last;
	const char *name;
} microarch[] = {
	/* vendor      family  models       steppings  name */
	{INTEL,         0x6, 0x0f, 0x0f,    0, 15, "merom"},
	{INTEL,         0x6, 0x16, 0x16,    0, 15, "merom"},
	{INTEL,         0x6, 0x17, 0x17,    0, 15, "penryn"},
	{INTEL,         0x6, 0x1d, 0x1d,    0, 15, "dunnington"},
	{INTEL,         0x6, 0x1e, 0x1f,    0, 15, "nehalem"},
	{INTEL,         0x6, 0x1a, 0x1a,    0, 15, "nehalem-ep"},
	{INTEL,         0x6, 0x2e, 0x2e,    0, 15, "nehalem-ex"},
	{INTEL,         0x6, 0x25, 0x25,    0, 15, "westmere"},
	{INTEL,         0x6, 0x2c, 0x2c,    0, 15, "westmere-ep"},
	{INTEL,         0x6, 0x2f, 0x2f,    0, 15, "westmere-ex"},
	{INTEL,         0x6, 0x2a, 0x2a,    0, 15, "sandybridge"},
	{INTEL,         0x6, 0x2d, 0x2d,    0, 15, "sandybridge-x"},
	{INTEL,         0x6, 0x3a, 0x3a,    0, 15, "ivybridge"},
	{INTEL,         0x6, 0x3e, 0x3e,    0, 15, "ivybridge-x"},
	{INTEL,         0x6, 0x3c, 0x3c,    0, 15, "haswell"},
	{INTEL,         0x6, 0x45, 0x46,    0, 15, "haswell"},
	{INTEL,         0x6, 0x3f, 0x3f,    0, 15, "haswell-x"},
	{INTEL,         0x6, 0x3d, 0x3d,    0, 15, "broadwell"},
	{INTEL,         0x6, 0x47, 0x47,    0, 15, "broadwell"},
	{INTEL,         0x6, 0x4f, 0x4f,    0, 15, "broadwell-x"},
	{INTEL,         0x6, 0x56, 0x56,    0, 15, "broadwell-d"},
	{INTEL,         0x6, 0x4e, 0x4e,    0, 15, "skylake"},
	{INTEL,         0x6, 0x5e, 0x5e,    0, 15, "skylake"},
	{INTEL,         0x6, 0x55, 0x55,    0,  4, "skylake-x"},
	{INTEL,         0x6, 0x55, 0x55,    5,  7, "cascadelake-x"},
	{INTEL,         0x6, 0x55, 0x55,    8, 15, "cooperlake-x"},
	{INTEL,         0x6, 0x8e, 0x8e,    0,  9, "kabylake"},
	{INTEL,         0x6, 0x8e, 0x8e,   10, 10, "coffeelake"},
	{INTEL,         0x6, 0x8e, 0x8e,   11, 15, "whiskeylake"},
	{INTEL,         0x6, 0x9e, 0x9e,    0,  9, "kabylake"},
	{INTEL,         0x6, 0x9e, 0x9e,   10, 15, "coffeelake"},
	{INTEL,         0x6, 0xa5, 0xa6,    0, 15, "cometlake"},
	{INTEL,         0x6, 0x66, 0x66,    0, 15, "cannonlake"},
	{INTEL,         0x6, 0x7d, 0x7e,    0, 15, "icelake"},
	{INTEL,         0x6, 0x9d, 0x9d,    0, 15, "icelake"},
	{INTEL,         0x6, 0x6a, 0x6a,    0, 15, "icelake-x"},
	{INTEL,         0x6, 0x6c, 0x6c,    0, 15, "icelake-d"},
	{INTEL,         0x6, 0xa7, 0xa7,    0, 15, "rocketlake"},
	{INTEL,         0x6, 0x8c, 0x8d,    0, 15, "tigerlake"},
	{INTEL,         0x6, 0x8a, 0x8a,    0, 15, "lakefield"},
	{INTEL,         0x6, 0x97, 0x97,    0, 15, "alderlake"},
	{INTEL,         0x6, 0x9a, 0x9a,    0, 15, "alderlake"},
	{INTEL,         0x6, 0xb7, 0xb7,    0, 15, "raptorlake"},
	{INTEL,         0x6, 0xba, 0xba,    0, 15, "raptorlake"},
	{INTEL,         0x6, 0xbf, 0xbf,    0, 15, "raptorlake"},
	{INTEL,         0x6, 0xaa, 0xaa,    0, 15, "meteorlake"},
	{INTEL,         0x6, 0xac, 0xac,    0, 15, "meteorlake"},
	{INTEL,         0x6, 0xb5, 0xb5,    0, 15, "arrowlake"},
	{INTEL,         0x6, 0xc5, 0xc6,    0, 15, "arrowlake"},
	{INTEL,         0x6, 0xbd, 0xbd,    0, 15, "lunarlake"},
	{INTEL,         0x6, 0xcc, 0xcc,    0, 15, "pantherlake"},
	{INTEL,         0x6, 0x8f, 0x8f,    0, 15, "sapphirerapids"},
	{INTEL,         0x6, 0xcf, 0xcf,    0, 15, "emeraldrapids"},
	{INTEL,         0x6, 0xad, 0xae,    0, 15, "graniterapids"},
	{INTEL,        0x13, 0x01, 0x01,    0, 15, "diamondrapids"},
	{INTEL,         0x6, 0xaf, 0xaf,    0, 15, "sierraforest"},
	{INTEL,         0x6, 0xdd, 0xdd,    0, 15, "clearwaterforest"},
	{INTEL,         0x6, 0xb6, 0xb6,    0, 15, "grandridge"},
	{INTEL,         0x6, 0x1c, 0x1c,    0, 15, "bonnell"},
	{INTEL,         0x6, 0x26, 0x26,    0, 15, "bonnell"},
	{INTEL,         0x6, 0x27, 0x27,    0, 15, "saltwell"},
	{INTEL,         0x6, 0x35, 0x36,    0, 15, "saltwell"},
	{INTEL,         0x6, 0x37, 0x37,    0, 15, "silvermont"},
	{INTEL,         0x6, 0x4a, 0x4a,    0, 15, "silvermont"},
	{INTEL,         0x6, 0x4d, 0x4d,    0, 15, "silvermont"},
	{INTEL,         0x6, 0x4c, 0x4c,    0, 15, "airmont"},
	{INTEL,         0x6, 0x5c, 0x5c,    0, 15, "goldmont"},
	{INTEL,         0x6, 0x5f, 0x5f,    0, 15, "goldmont"},
	{INTEL,         0x6, 0x7a, 0x7a,    0, 15, "goldmont-plus"},
	{INTEL,         0x6, 0x86, 0x86,    0, 15, "tremont"},
	{INTEL,         0x6, 0x96, 0x96,    0, 15, "tremont"},
	{INTEL,         0x6, 0x9c, 0x9c,    0, 15, "tremont"},
	{INTEL,         0x6, 0xbe, 0xbe,    0, 15, "gracemont"},
	{INTEL,         0x6, 0x57, 0x57,    0, 15, "knl"},
	{INTEL,         0x6, 0x85, 0x85,    0, 15, "knm"},
	{INTEL,         0xb, 0x01, 0x01,    0, 15, "knc"},
	{INTEL,         0xf, 0x00, 0xff,    0, 15, "netburst"},
	/* The ranges of Zen are the ones of the kernel's arch/x86/kernel/cpu/amd.c; Zen+ is Zen with a new process. */
	{AMD,           0xf, 0x00, 0xff,    0, 15, "k8"},
	{AMD,          0x10, 0x00, 0xff,    0, 15, "k10"},
	{AMD,          0x12, 0x00, 0xff,    0, 15, "k10"},
	{AMD,          0x14, 0x00, 0xff,    0, 15, "bobcat"},
	{AMD,          0x15, 0x02, 0x02,    0, 15, "piledriver"},
	{AMD,          0x15, 0x00, 0x0f,    0, 15, "bulldozer"},
	{AMD,          0x15, 0x10, 0x1f,    0, 15, "piledriver"},
	{AMD,          0x15, 0x30, 0x3f,    0, 15, "steamroller"},
	{AMD,          0x15, 0x60, 0x7f,    0, 15, "excavator"},
	{AMD,          0x16, 0x00, 0x2f,    0, 15, "jaguar"},
	{AMD,          0x16, 0x30, 0x3f,    0, 15, "puma"},
	{AMD,          0x17, 0x08, 0x08,    0, 15, "zen+"},
	{AMD,          0x17, 0x18, 0x18,    0, 15, "zen+"},
	{AMD,          0x17, 0x00, 0x2f,    0, 15, "zen1"},
	{AMD,          0x17, 0x50, 0x5f,    0, 15, "zen1"},
	{AMD,          0x17, 0x30, 0x4f,    0, 15, "zen2"},
	{AMD,          0x17, 0x60, 0x7f,    0, 15, "zen2"},
	{AMD,          0x17, 0x90, 0x91,    0, 15, "zen2"},
	{AMD,          0x17, 0xa0, 0xaf,    0, 15, "zen2"},
	{AMD,          0x19, 0x00, 0x0f,    0, 15, "zen3"},
	{AMD,          0x19, 0x20, 0x5f,    0, 15, "zen3"},
	{AMD,          0x19, 0x10, 0x1f,    0, 15, "zen4"},
	{AMD,          0x19, 0x60, 0xaf,    0, 15, "zen4"},
	{AMD,          0x1a, 0x00, 0x2f,    0, 15, "zen5"},
	{AMD,          0x1a, 0x40, 0x4f,    0, 15, "zen5"},
	{AMD,          0x1a, 0x60, 0x7f,    0, 15, "zen5"},
	{AMD,          0x1a, 0x50, 0x5f,    0, 15, "zen6"},
	{AMD,          0x1a, 0x80, 0xaf,    0, 15, "zen6"},
	{AMD,          0x1a, 0xc0, 0xcf,    0, 15, "zen6"},
	{HYGON,        0x18, 0x00, 0xff,    0, 15, "dhyana"},
	/* ARM: the model is the part number, the stepping the revision, the family is not used. */
	{ARM,           ANY, 0xb76, 0xb76,  0, 15, "arm1176"},
	{ARM,           ANY, 0xc07, 0xc07,  0, 15, "cortex-a7"},
	{ARM,           ANY, 0xc08, 0xc08,  0, 15, "cortex-a8"},
	{ARM,           ANY, 0xc09, 0xc09,  0, 15, "cortex-a9"},
	{ARM,           ANY, 0xc0f, 0xc0f,  0, 15, "cortex-a15"},
	{ARM,           ANY, 0xd03, 0xd03,  0, 15, "cortex-a53"},
	{ARM,           ANY, 0xd04, 0xd04,  0, 15, "cortex-a35"},
	{ARM,           ANY, 0xd05, 0xd05,  0, 15, "cortex-a55"},
	{ARM,           ANY, 0xd07, 0xd07,  0, 15, "cortex-a57"},
	{ARM,           ANY, 0xd08, 0xd08,  0, 15, "cortex-a72"},
	{ARM,           ANY, 0xd09, 0xd09,  0, 15, "cortex-a73"},
	{ARM,           ANY, 0xd0a, 0xd0a,  0, 15, "cortex-a75"},
	{ARM,           ANY, 0xd0b, 0xd0b,  0, 15, "cortex-a76"},
	{ARM,           ANY, 0xd0c, 0xd0c,  0, 15, "neoverse-n1"},
	{ARM,           ANY, 0xd0d, 0xd0d,  0, 15, "cortex-a77"},
	{ARM,           ANY, 0xd40, 0xd40,  0, 15, "neoverse-v1"},
	{ARM,           ANY, 0xd41, 0xd41,  0, 15, "cortex-a78"},
	{ARM,           ANY, 0xd42, 0xd42,  0, 15, "cortex-a78ae"},
	{ARM,           ANY, 0xd44, 0xd44,  0, 15, "cortex-x1"},
	{ARM,           ANY, 0xd46, 0xd46,  0, 15, "cortex-a510"},
	{ARM,           ANY, 0xd47, 0xd47,  0, 15, "cortex-a710"},
	{ARM,           ANY, 0xd48, 0xd48,  0, 15, "cortex-x2"},
	{ARM,           ANY, 0xd49, 0xd49,  0, 15, "neoverse-n2"},
	{ARM,           ANY, 0xd4a, 0xd4a,  0, 15, "neoverse-e1"},
	{ARM,           ANY, 0xd4d, 0xd4d,  0, 15, "cortex-a715"},
	{ARM,           ANY, 0xd4e, 0xd4e,  0, 15, "cortex-x3"},
	{ARM,           ANY, 0xd4f, 0xd4f,  0, 15, "neoverse-v2"},
	{ARM,           ANY, 0xd80, 0xd80,  0, 15, "cortex-a520"},
	{ARM,           ANY, 0xd81, 0xd81,  0, 15, "cortex-a720"},
	{ARM,           ANY, 0xd82, 0xd82,  0, 15, "cortex-x4"},
	{ARM,           ANY, 0xd84, 0xd84,  0, 15, "neoverse-v3"},
	{ARM,           ANY, 0xd85, 0xd85,  0, 15, "cortex-x925"},
	{ARM,           ANY, 0xd87, 0xd87,  0, 15, "cortex-a725"},
	{ARM,           ANY, 0xd8e, 0xd8e,  0, 15, "neoverse-n3"},
	{"Broadcom",    ANY, 0x516, 0x516,  0, 15, "thunderx2"},
	{"Cavium",      ANY, 0x0a0, 0x0a3,  0, 15, "thunderx"},
	{"Cavium",      ANY, 0x0af, 0x0af,  0, 15, "thunderx2"},
	{"Fujitsu",     ANY, 0x001, 0x001,  0, 15, "a64fx"},
	{"HiSilicon",   ANY, 0xd01, 0xd01,  0, 15, "tsv110"},
	{"NVIDIA",      ANY, 0x004, 0x004,  0, 15, "carmel"},
	{"APM",         ANY, 0x000, 0x000,  0, 15, "x-gene"},
	{"Qualcomm",    ANY, 0xc00, 0xc00,  0, 15, "falkor"},
	{"Qualcomm",    ANY, 0x001, 0x001,  0, 15, "oryon"},
	{"Apple",       ANY, 0x022, 0x022,  0, 15, "icestorm"},
	{"Apple",       ANY, 0x023, 0x023,  0, 15, "firestorm"},
	{"Apple",       ANY, 0x024, 0x024,  0, 15, "icestorm"},
	{"Apple",       ANY, 0x025, 0x025,  0, 15, "firestorm"},
	{"Apple",       ANY, 0x028, 0x028,  0, 15, "icestorm"},
	{"Apple",       ANY, 0x029, 0x029,  0, 15, "firestorm"},
	{"Apple",       ANY, 0x032, 0x032,  0, 15, "blizzard"},
	{"Apple",       ANY, 0x033, 0x033,  0, 15, "avalanche"},
	{"Phytium",     ANY, 0x660, 0x660,  0, 15, "ftc660"},
	{"Phytium",     ANY, 0x661, 0x661,  0, 15, "ftc661"},
	{"Phytium",     ANY, 0x662, 0x662,  0, 15, "ftc662"},
	{"Phytium",     ANY, 0x663, 0x663,  0, 15, "ftc663"},
	{"Ampere",      ANY, 0xac3, 0xac3,  0, 15, "ampere1"},
	{"Ampere",      ANY, 0xac4, 0xac4,  0, 15, "ampere1a"},
	{"Ampere",      ANY, 0xac5, 0xac5,  0, 15, "ampere1b"},
};

static const struct {
	uint8_t id;
	const char *name;
} implementer[] = {
	{0x41, ARM},         {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x46, "Fujitsu"}, {0x48, "HiSilicon"},
	{0x4e, "NVIDIA"},    {0x50, "APM"},      {0x51, "Qualcomm"}, {0x53, "Samsung"}, {0x56, "Marvell"},
	{0x61, "Apple"},     {0x70, "Phytium"},  {0xc0, "Ampere"},
};
/* clang-format on */

/* The first row counts: single models stand before the ranges they are taken from. */
const char *microarch_name(const struct cpu_identity *cpu)
{
	for (size_t i = 0; i < ARRAY_SIZE(microarch); i++) {
		const struct microarch *m = &microarch[i];

		if (!strcmp(m->vendor, cpu->vendor) && (m->family == ANY || m->family == cpu->family) &&
			cpu->model >= m->model && cpu->model <= m->model_last &&
			cpu->stepping >= m->stepping && cpu->stepping <= m->stepping_last)
			return m->name;
	}
	return NULL;
}

const char *arm_vendor(int64_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(implementer); i++)
		if (implementer[i].id == id)
			return implementer[i].name;
	return NULL;
}
