/* libtacho as a program in C uses it: by its header, through the functions of the streams, releasing in every
 * order that Arrow allows. Sanitizers and valgrind see what is left behind. */
#include "base/base.h"
#include "long_recording.h"

#include <tacho.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SECONDS 400
#define PROCESSES 40
#define BATCH_MOST 8192

static char file[] = "/tmp/test_libtacho_XXXXXX";

static int make_recording(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return long_recording_write(file,
		&(struct long_recording){
			.host = "n\xff", .seconds = SECONDS, .hz = 1, .processes = PROCESSES});
}

static int remove_recording(void **state)
{
	(void)state;
	return unlink(file);
}

static tacho_run *open_run(void)
{
	const char *path = file;
	tacho_run *run = NULL;

	if (tacho_open(&path, 1, &run) < 0)
		fail_msg("%s", tacho_error());
	return run;
}

static struct ArrowArrayStream open_stream(const tacho_run *run, const char *table)
{
	struct ArrowArrayStream s;

	if (tacho_stream(run, table, NULL, &s) < 0)
		fail_msg("%s", tacho_error());
	return s;
}

static int64_t child_of(const struct ArrowSchema *s, const char *name)
{
	for (int64_t i = 0; i < s->n_children; i++)
		if (!strcmp(s->children[i]->name, name))
			return i;
	fail_msg("no column %s", name);
	return -1;
}

static const char *text_of(const struct ArrowArray *a, int64_t row, char out[static 64])
{
	const struct ArrowArray *d = a->dictionary;
	const int32_t *index = a->buffers[1], *offset = d->buffers[1];
	int32_t at = index[row];

	assert_in_range(at, 0, d->length - 1);
	snprintf(out, 64, "%.*s", offset[at + 1] - offset[at], (const char *)d->buffers[2] + offset[at]);
	return out;
}

static void test_all_batches(void **state)
{
	tacho_run *run = open_run();
	struct ArrowArrayStream s = open_stream(run, "process");
	struct ArrowSchema schema;
	struct ArrowArray a;
	int64_t rows = 0, batches = 0, last = INT64_MIN, time_column, host;
	char text[64];

	(void)state;
	tacho_close(run); /* the stream has what it needs */
	assert_int_equal(s.get_schema(&s, &schema), 0);
	assert_string_equal(schema.format, "+s");
	time_column = child_of(&schema, "time");
	host = child_of(&schema, "host");
	assert_string_equal(schema.children[time_column]->format, "tsn:UTC");
	assert_string_equal(schema.children[host]->format, "i");
	assert_string_equal(schema.children[host]->dictionary->format, "u");
	for (; s.get_next(&s, &a) == 0 && a.release; a.release(&a), batches++) {
		const int64_t *time = a.children[time_column]->buffers[1];

		assert_int_equal(a.n_children, schema.n_children);
		assert_in_range(a.length, 1, BATCH_MOST);
		for (int64_t i = 0; i < a.length; i++) {
			assert_true(time[i] >= last);
			last = time[i];
		}
		assert_string_equal(text_of(a.children[host], a.length - 1, text), "n\\xff");
		rows += a.length;
	}
	assert_null(a.release);
	assert_true(batches > 1);
	assert_true(rows > SECONDS * PROCESSES / 2);
	assert_int_equal(s.get_next(&s, &a), 0); /* the end stays the end */
	assert_null(a.release);
	schema.release(&schema);
	assert_null(schema.release);
	s.release(&s);
	assert_null(s.release);
}

/* A column that is moved out lives on when the batch, the stream and the run are gone. */
static void test_columns_may_be_moved_out(void **state)
{
	tacho_run *run = open_run();
	struct ArrowArrayStream s = open_stream(run, "process");
	struct ArrowSchema schema, kept_schema;
	struct ArrowArray a, kept, dictionary;
	int64_t at;
	char text[64];

	(void)state;
	assert_int_equal(s.get_schema(&s, &schema), 0);
	assert_int_equal(s.get_next(&s, &a), 0);
	at = child_of(&schema, "host");
	kept = *a.children[at];
	a.children[at]->release = NULL;
	kept_schema = *schema.children[at];
	schema.children[at]->release = NULL;
	a.release(&a);
	schema.release(&schema);
	s.release(&s);
	tacho_close(run);
	assert_string_equal(kept_schema.name, "host");
	assert_string_equal(text_of(&kept, 0, text), "n\\xff");
	dictionary = *kept.dictionary;
	kept.dictionary->release = NULL;
	kept.release(&kept);
	assert_memory_equal(dictionary.buffers[2], "n\\xff", 5);
	dictionary.release(&dictionary);
	kept_schema.release(&kept_schema);
}

static void test_buffers_are_aligned(void **state)
{
	tacho_run *run = open_run();
	struct ArrowArrayStream s = open_stream(run, "node");
	struct ArrowArray a;

	(void)state;
	assert_int_equal(s.get_next(&s, &a), 0);
	for (int64_t i = 0; i < a.n_children; i++)
		for (int64_t k = 0; k < a.children[i]->n_buffers; k++) {
			const void *buffer = a.children[i]->buffers[k];

			assert_int_equal((uintptr_t)buffer % 64, 0);
			assert_true(buffer || (k == 0 && !a.children[i]->null_count));
		}
	a.release(&a);
	s.release(&s);
	tacho_close(run);
}

/* A stream that nobody reads, or not to its end, leaves nothing behind. */
static void test_every_table_may_be_left(void **state)
{
	tacho_run *run = open_run();

	(void)state;
	assert_true(tacho_nr_frames(run) > 5);
	for (size_t i = 0; i < tacho_nr_frames(run); i++) {
		struct ArrowArrayStream unread = open_stream(run, tacho_frame(run, i)->name);
		struct ArrowArrayStream begun = open_stream(run, tacho_frame(run, i)->name);
		struct ArrowSchema schema;
		struct ArrowArray a;

		unread.release(&unread);
		assert_int_equal(begun.get_schema(&begun, &schema), 0);
		assert_int_equal(schema.n_children, tacho_frame(run, i)->nr_fields);
		for (int64_t k = 0; k < schema.n_children; k++)
			assert_string_equal(schema.children[k]->name, tacho_field(run, i, (size_t)k)->name);
		assert_int_equal(begun.get_next(&begun, &a), 0);
		begun.release(&begun);
		if (a.release)
			a.release(&a);
		schema.release(&schema);
	}
	tacho_close(run);
}

static void test_failures(void **state)
{
	const char *nowhere = "/nowhere.tacho";
	tacho_run *run = NULL;
	struct ArrowArrayStream s;
	struct tacho_options bad = {.size = sizeof(bad), .from = -1};

	(void)state;
	assert_true(tacho_open(&nowhere, 1, &run) < 0);
	assert_null(run);
	assert_non_null(strstr(tacho_error(), nowhere));
	assert_int_equal(tacho_open(NULL, 0, &run), -EINVAL);
	run = open_run();
	assert_int_equal(tacho_stream(run, "nothing", NULL, &s), -ENOENT);
	assert_non_null(strstr(tacho_error(), "nothing"));
	assert_int_equal(tacho_stream(run, "node", &bad, &s), -EINVAL);
	tacho_close(run);
	tacho_close(NULL);
}

/* One that knows fewer options than we do. */
static void test_old_callers(void **state)
{
	tacho_run *run = open_run();
	struct tacho_options old = {
		.size = offsetof(struct tacho_options, raw), .to = 10, .raw = 1, .nr_metrics = 1000};
	struct ArrowArrayStream s;
	struct ArrowArray a;

	(void)state;
	assert_int_equal(tacho_stream(run, "node", &old, &s), 0);
	assert_int_equal(s.get_next(&s, &a), 0);
	assert_in_range(a.length, 1, 11);
	a.release(&a);
	s.release(&s);
	tacho_close(run);
}

static void *read_all(void *arg)
{
	tacho_run *run = arg ? arg : open_run();
	struct ArrowArrayStream s = open_stream(run, "node");
	struct ArrowArray a;
	intptr_t rows = 0;

	while (s.get_next(&s, &a) == 0 && a.release) {
		rows += a.length;
		a.release(&a);
	}
	s.release(&s);
	if (!arg)
		tacho_close(run);
	return (void *)rows;
}

static void test_threads(void **state)
{
	tacho_run *shared = open_run();
	pthread_t thread[4];
	void *rows, *truth = read_all(NULL);

	(void)state;
	assert_true((intptr_t)truth > 100);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all, i % 2 ? shared : NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++) {
		assert_int_equal(pthread_join(thread[i], &rows), 0);
		assert_ptr_equal(rows, truth);
	}
	tacho_close(shared);
}

/* ---- a recording that grows ---- */

struct growing {
	char path[40];
	uint8_t *bytes;
	size_t size, written;
	int fd;
};

/* Its file has the beginning only, and a lock as a recorder holds one. */
static void growing_begin(struct growing *g, size_t first)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int from = open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;

	snprintf(g->path, sizeof(g->path), "/tmp/test_libtacho_g_XXXXXX");
	g->fd = mkstemp(g->path);
	assert_true(from >= 0 && g->fd >= 0 && fstat(from, &st) == 0);
	assert_int_equal(fcntl(g->fd, F_OFD_SETLK, &lock), 0);
	g->size = (size_t)st.st_size;
	g->bytes = malloc(g->size);
	assert_int_equal(read(from, g->bytes, g->size), g->size);
	close(from);
	assert_int_equal(write(g->fd, g->bytes, first), first);
	g->written = first;
}

static void growing_more(struct growing *g, size_t n)
{
	n = MIN(n, g->size - g->written);
	assert_int_equal(write(g->fd, g->bytes + g->written, n), n);
	g->written += n;
}

static void growing_end(struct growing *g)
{
	close(g->fd);
	unlink(g->path);
	free(g->bytes);
}

static struct ArrowArrayStream follow(const char *path, const char *table)
{
	const struct tacho_options options = {.size = sizeof(options), .wait = 0.001};
	struct ArrowArrayStream s;
	tacho_run *run;

	assert_int_equal(tacho_open(&path, 1, &run), 0);
	if (tacho_follow(run, table, &options, &s) < 0)
		fail_msg("%s", tacho_error());
	tacho_close(run);
	return s;
}

/* Rows that have come; true when the recording has ended. */
static bool take_news(struct ArrowArrayStream *s, int64_t *rows)
{
	struct ArrowArray a;
	int64_t nr;

	do {
		assert_int_equal(s->get_next(s, &a), 0);
		if (!a.release)
			return true;
		nr = a.length;
		*rows += nr;
		a.release(&a);
	} while (nr);
	return false;
}

static int64_t rows_of(const char *table)
{
	tacho_run *run = open_run();
	struct ArrowArrayStream s = open_stream(run, table);
	int64_t rows = 0;

	assert_true(take_news(&s, &rows));
	s.release(&s);
	tacho_close(run);
	return rows;
}

static void test_follow(void **state)
{
	static const char *const table[] = {"tree", "process", "cpu", "group"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct ArrowArrayStream s;
		int64_t rows = 0, before;
		struct growing g;

		growing_begin(&g, 40000);
		s = follow(g.path, table[i]);
		assert_false(take_news(&s, &rows));
		assert_true(rows > 0);
		while (g.written < g.size - 2000) {
			before = rows;
			growing_more(&g, 40000); /* blocks are torn, too */
			if (g.written == g.size)
				break;
			assert_false(take_news(&s, &rows));
			assert_true(rows > before);
		}
		growing_more(&g, g.size);
		assert_true(take_news(&s, &rows));
		assert_int_equal(rows, rows_of(table[i]));
		s.release(&s);
		growing_end(&g);
	}
}

/* Its lock goes, and it has no end mark. */
static void test_follow_to_a_killed_recorder(void **state)
{
	struct ArrowArrayStream s;
	struct growing g;
	int64_t rows = 0;

	(void)state;
	growing_begin(&g, 100000);
	s = follow(g.path, "tree");
	assert_false(take_news(&s, &rows));
	close(g.fd);
	while (!take_news(&s, &rows))
		;
	s.release(&s);
	g.fd = -1;
	growing_end(&g);
}

static void test_what_cannot_be_followed(void **state)
{
	struct ArrowArrayStream s;
	tacho_run *run;
	struct growing g;
	const char *path[2] = {file, g.path};

	(void)state;
	growing_begin(&g, 60); /* no schema yet */
	assert_int_equal(tacho_open(&path[1], 1, &run), 0);
	assert_int_equal(tacho_follow(run, "tree", NULL, &s), -EAGAIN);
	tacho_close(run);
	assert_int_equal(tacho_open(path, 2, &run), 0);
	assert_int_equal(tacho_follow(run, "tree", NULL, &s), -EINVAL);
	tacho_close(run);
	run = open_run();
	assert_int_equal(tacho_follow(run, "processes", NULL, &s), -EINVAL);
	assert_int_equal(tacho_follow(run, "nothing", NULL, &s), -ENOENT);
	tacho_close(run);
	growing_end(&g);
}

/* Both are whole objects of JSON, and each call reads anew. */
static void test_texts(void **state)
{
	tacho_run *run = open_run();
	char *text = NULL, *again = NULL;

	(void)state;
	assert_int_equal(tacho_summary(run, &text), 0);
	assert_int_equal(tacho_summary(run, &again), 0);
	assert_non_null(strstr(text, "\"wall_s\": "));
	assert_string_equal(text, again);
	tacho_free(text);
	tacho_free(again);
	assert_int_equal(tacho_findings(run, &text), 0);
	assert_int_equal(strncmp(text, "{\"findings\":[", strlen("{\"findings\":[")), 0);
	assert_non_null(strstr(text, "\"unmeasured\":["));
	tacho_free(text);
	tacho_free(NULL);
	assert_true(tacho_summary(NULL, &text) < 0);
	assert_true(tacho_findings(run, NULL) < 0);
	assert_non_null(strstr(tacho_error(), "a place for the text"));
	tacho_close(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_batches),
		cmocka_unit_test(test_columns_may_be_moved_out),
		cmocka_unit_test(test_buffers_are_aligned),
		cmocka_unit_test(test_every_table_may_be_left),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_old_callers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_follow),
		cmocka_unit_test(test_follow_to_a_killed_recorder),
		cmocka_unit_test(test_what_cannot_be_followed),
	};

	return cmocka_run_group_tests(tests, make_recording, remove_recording);
}
