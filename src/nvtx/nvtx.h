/* The part of NVTX version 3 that a library in the job needs: own declarations of its public binary interface
 * (the numbers are those of NVTX's nvtxDetail/nvtxTypes.h and nvToolsExt.h, and never change).
 *
 * A program that uses NVTX loads the library that NVTX_INJECTION64_PATH names at its first call, and hands
 * InitializeInjectionNvtx2() a function that gives tables: places where the addresses of handlers are put. */
#ifndef NVTX_NVTX_H
#define NVTX_NVTX_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* Places by number; each is the address of a function pointer of the program. */
typedef void nvtx_function(void);
typedef nvtx_function ***nvtx_table;

enum { NVTX_TABLE_CALLBACKS = 1 };
struct nvtx_callbacks {
	size_t size;
	int (*module_table)(int module, nvtx_table *ret_table, unsigned *ret_size);
};

enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_START_EX,
	NVTX_START_A,
	NVTX_START_W,
	NVTX_END,
	NVTX_PUSH_EX,
	NVTX_PUSH_A,
	NVTX_PUSH_W,
	NVTX_POP
};

enum nvtx_core2 {
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_START_EX,
	NVTX_DOMAIN_END,
	NVTX_DOMAIN_PUSH_EX,
	NVTX_DOMAIN_POP,
	NVTX_DOMAIN_REGISTER_A = 10,
	NVTX_DOMAIN_REGISTER_W,
	NVTX_DOMAIN_CREATE_A,
	NVTX_DOMAIN_CREATE_W,
	NVTX_DOMAIN_DESTROY
};

enum { NVTX_TEXT_A = 1, NVTX_TEXT_W, NVTX_TEXT_REGISTERED };
enum { NVTX_U64 = 1, NVTX_I64, NVTX_DOUBLE, NVTX_U32, NVTX_I32, NVTX_FLOAT };

struct nvtx_event {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t text_type;
	union {
		const char *a;
		const wchar_t *w;
		const void *registered;
	} text;
};

/* What push and pop return where there is no level. */
enum { NVTX_NO_LEVEL = -2 };
#endif
