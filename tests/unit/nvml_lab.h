/* The fake NVML under the maker of NVIDIA's GPUs: values from a text, an env that opens the fake by its path.
 */
#ifndef TESTS_NVML_LAB_H
#define TESTS_NVML_LAB_H

#include "film_text.h"

#include "collect/gpu.h"

#include <dlfcn.h>
#include <fcntl.h>

/* A machine with an NVIDIA driver, in the first PID namespace, and time that passes. */
#define NVIDIA_FILM             \
	"clock monotonic 100\n" \
	"file dev/nvidiactl\n"  \
	"link proc/self/ns/pid pid:[4026531836]\n"
#define FRAMES "frame 1\nframe 2\nframe 3\nframe 4\nframe 5\nframe 6\nframe 7\nframe 8\nframe 9\n"

#define GPU0                              \
	"0.name NVIDIA FAKE-100\n"        \
	"0.uuid GPU-00000000-0000-0000\n" \
	"0.pci 0 3b 0\n"                  \
	"0.minor 3\n"                     \
	"0.util 37\n0.memutil 12\n"       \
	"0.mem_total 40000\n0.mem_used 1000\n0.mem_reserved 500\n"
#define GPU1                              \
	"1.name NVIDIA FAKE-200\n"        \
	"1.uuid GPU-11111111-1111-1111\n" \
	"1.pci 1 5e 0\n"                  \
	"1.util 99\n1.memutil 50\n"       \
	"1.mem_total 80000\n1.mem_used 70000\n"

static const char *nvml_variant; /* library of the fake, NULL: there is none */
static struct env_ops nvml_ops;
static char nvml_path[64], nvml_log_path[80];

static inline void *open_fake(struct env *env, const char *name, const char **reterr)
{
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 100);

	(void)env;
	(void)reterr;
	if (!nvml_variant || strcmp(name, "libnvidia-ml.so.1"))
		return NULL;
	assert_true(len > 0);
	path[len] = 0;
	*strrchr(path, '/') = 0;
	snprintf(strrchr(path, '/'), 100, "/fakes/%s", nvml_variant);
	return dlopen(*nvml_variant == '/' ? nvml_variant : path, RTLD_NOW | RTLD_LOCAL);
}

static inline void *find_symbol(struct env *env, void *library, const char *name)
{
	(void)env;
	return dlsym(library, name);
}

/* What the fake says from now on; a thread that reads meanwhile finds the values before or those after. */
static inline void set_values(const char *text)
{
	char next[sizeof(nvml_path) + 4];
	FILE *f;

	snprintf(next, sizeof(next), "%s.new", nvml_path);
	f = fopen(next, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	fclose(f);
	assert_int_equal(rename(next, nvml_path), 0);
}

/* A machine with the fake; every test has a file of its own, so that the fake begins anew. */
static inline struct env *nvml_env(const char *film, const char *values)
{
	struct env *env = film_text(film);
	int fd;

	snprintf(nvml_path, sizeof(nvml_path), "/tmp/fake-nvml-XXXXXX");
	fd = mkstemp(nvml_path);
	assert_true(fd >= 0);
	close(fd);
	snprintf(nvml_log_path, sizeof(nvml_log_path), "%s.log", nvml_path);
	set_values(values);
	setenv("FAKE_NVML", nvml_path, 1);
	setenv("FAKE_NVML_LOG", nvml_log_path, 1);
	unsetenv("FAKE_NVML_STRIDE");
	nvml_variant = "libnvidia-ml.so.1";
	nvml_ops = *env->ops;
	nvml_ops.library = open_fake;
	nvml_ops.symbol = find_symbol;
	env->ops = &nvml_ops;
	return env;
}

static inline void nvml_clean(struct env *env)
{
	unlink(nvml_path);
	unlink(nvml_log_path);
	env_free(env);
}

/* How often a call was made since the last asking. */
static inline unsigned calls_made(const char *name)
{
	FILE *f = fopen(nvml_log_path, "r");
	unsigned nr = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		nr += !strcmp(line, name);
	}
	if (f)
		fclose(f);
	return nr;
}
#endif
