/* `tacho run --nvtx`: finds the library that NVTX loads into the job. Beside the executable first, as in a
 * build, then where an installation has it. */
#include "cmd/nvtx.h"

#include "cmd/cmd.h"
#include "cmd/external.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE "NVTX_INJECTION64_PATH"

bool nvtx_find(char *out, size_t size)
{
	static const char *const place[] = {"libtacho-nvtx.so", "../" TACHO_LIBDIR "/libtacho-nvtx.so"};
	char self[PATH_MAX], path[PATH_MAX];
	char *slash = external_self(self, sizeof(self)) ? strrchr(self, '/') : NULL;

	for (size_t i = 0; slash && i < ARRAY_SIZE(place); i++) {
		int len = snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, place[i]);

		if (len > 0 && (size_t)len < sizeof(path) && (size_t)len < size && access(path, R_OK) == 0) {
			memcpy(out, path, (size_t)len + 1);
			return true;
		}
	}
	return false;
}

char *nvtx_variable(void)
{
	const char *other = getenv(VARIABLE);
	char path[PATH_MAX], *text;

	if (other && *other) {
		warning("--nvtx: %s is %s already: NVTX serves one tool, so its ranges are not recorded",
			VARIABLE, other);
		return NULL;
	}
	if (!nvtx_find(path, sizeof(path))) {
		warning("--nvtx: libtacho-nvtx.so is not installed with this tacho: NVTX ranges are not "
			"recorded");
		return NULL;
	}
	return asprintf(&text, VARIABLE "=%s", path) < 0 ? NULL : text;
}
