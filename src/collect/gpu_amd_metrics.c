/* The file gpu_metrics of amdgpu: a binary table that the firmware fills, in one of a dozen layouts.
 *
 * Its header has size, format and content revision; a row below has the place of each field in that layout,
 * and a field that does not lie within the table that was read is not there. Fields that the chip does not
 * fill are all ones. Layouts are the driver's interface to programs (kgd_pp_interface.h of the kernel): a new
 * one gets a new number, so a layout that is not listed is not read. */
#include "collect/gpu_amd.h"

#include <string.h>

struct gpu_amd_metrics_field {
	uint8_t bytes; /* 0: the layout has none */
	uint16_t offset;
};

/* clang-format off */
static const struct gpu_amd_metrics_layout {
	uint8_t format, content;
	struct gpu_amd_metrics_field field[NR_AMD_FIELDS];
} layout[] = {
	{1, 0, {[AMD_TEMPERATURE] = {2, 16}, [AMD_TEMPERATURE_MEMORY] = {2, 20}, [AMD_GFX_ACTIVITY] = {2, 28},
		[AMD_UMC_ACTIVITY] = {2, 30}, [AMD_POWER] = {2, 34}, [AMD_ENERGY] = {4, 36}, [AMD_GFXCLK] = {2, 54},
		[AMD_UCLK] = {2, 58}, [AMD_THROTTLE] = {4, 68}}},
#define V1_1 [AMD_TEMPERATURE] = {2, 4}, [AMD_TEMPERATURE_MEMORY] = {2, 8}, [AMD_GFX_ACTIVITY] = {2, 16}, \
		[AMD_UMC_ACTIVITY] = {2, 18}, [AMD_POWER] = {2, 22}, [AMD_ENERGY] = {8, 24}, [AMD_GFXCLK] = {2, 54}, \
		[AMD_UCLK] = {2, 58}, [AMD_THROTTLE] = {4, 68}
	{1, 1, {V1_1}},
	{1, 2, {V1_1}},
	{1, 3, {V1_1, [AMD_THROTTLE_COMMON] = {8, 112}}},
#define V1_4 [AMD_TEMPERATURE] = {2, 4}, [AMD_TEMPERATURE_MEMORY] = {2, 6}, [AMD_POWER] = {2, 10}, \
		[AMD_GFX_ACTIVITY] = {2, 12}, [AMD_UMC_ACTIVITY] = {2, 14}
	{1, 4, {V1_4, [AMD_ENERGY] = {8, 24}, [AMD_THROTTLE] = {4, 40}, [AMD_GFXCLK] = {2, 240}, [AMD_UCLK] = {2, 280}}},
	{1, 5, {V1_4, [AMD_ENERGY] = {8, 88}, [AMD_THROTTLE] = {4, 104}, [AMD_GFXCLK] = {2, 312}, [AMD_UCLK] = {2, 352}}},
	{1, 6, {V1_4, [AMD_ENERGY] = {8, 16}, [AMD_CYCLES] = {4, 32}, [AMD_CYCLES_POWER] = {4, 40}, [AMD_CYCLES_THERMAL] = {4, 44}}},
	{1, 7, {V1_4, [AMD_ENERGY] = {8, 24}, [AMD_CYCLES] = {4, 40}, [AMD_CYCLES_POWER] = {4, 48}, [AMD_CYCLES_THERMAL] = {4, 52}}},
	{1, 8, {V1_4, [AMD_ENERGY] = {8, 24}, [AMD_CYCLES] = {4, 40}, [AMD_CYCLES_POWER] = {4, 48}, [AMD_CYCLES_THERMAL] = {4, 52}}},
	/* Of processors with graphics: units of the other fields differ from chip to chip. */
	{2, 0, {[AMD_THROTTLE] = {4, 112}}},
	{2, 1, {[AMD_THROTTLE] = {4, 108}}},
	{2, 2, {[AMD_THROTTLE] = {4, 108}, [AMD_THROTTLE_COMMON] = {8, 120}}},
	{2, 3, {[AMD_THROTTLE] = {4, 108}, [AMD_THROTTLE_COMMON] = {8, 120}}},
	{2, 4, {[AMD_THROTTLE] = {4, 108}, [AMD_THROTTLE_COMMON] = {8, 120}}},
};
/* clang-format on */

/* Little endian, as the hardware; false when it does not lie within, or is all ones. */
static bool field_read(const uint8_t *bytes, size_t len, struct gpu_amd_metrics_field f, uint64_t *ret)
{
	uint64_t value = 0, none = f.bytes == 8 ? UINT64_MAX : (UINT64_C(1) << f.bytes * 8) - 1;

	if (!f.bytes || (size_t)f.offset + f.bytes > len)
		return false;
	for (unsigned i = f.bytes; i--;)
		value = value << 8 | bytes[f.offset + i];
	*ret = value;
	return value != none;
}

int amd_metrics_parse(const void *bytes, size_t len, struct amd_metrics *ret)
{
	const uint8_t *b = bytes;
	size_t size = len >= 4 ? (size_t)(b[0] | b[1] << 8) : 0;

	*ret = (struct amd_metrics){.valid = 0};
	if (size < 16)
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(layout); i++) {
		if (layout[i].format != b[2] || layout[i].content != b[3])
			continue;
		for (int k = 0; k < NR_AMD_FIELDS; k++)
			if (field_read(b, MIN(size, len), layout[i].field[k], &ret->value[k]))
				ret->valid |= UINT32_C(1) << k;
		return 0;
	}
	return -EOPNOTSUPP;
}
