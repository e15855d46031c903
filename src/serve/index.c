/* The list of recordings, and the few words of pages that say why there is nothing else. All of it is HTML
 * that needs no script. */
#include "serve/internal.h"

#include "base/units.h"
#include "document/document.h"
#include "text/words.h"

#include <math.h>
#include <string.h>

#define ROWS 100 /* on one page */

void waiting_page(const char *title, const char *text, unsigned seconds, struct buf *out)
{
	struct buf head;

	buf_init(&head, 1 << 20);
	page_served_head(&head, title, "notice");
	if (head.err)
		out->err = head.err;
	/* Before the end of the head. */
	if (seconds) {
		char *end = strstr((char *)head.data, "<style>");
		size_t before = end ? (size_t)(end - (char *)head.data) : 0;

		buf_add(out, head.data, before);
		buf_addf(out, "<meta http-equiv=\"refresh\" content=\"%u\">\n", seconds);
		buf_add(out, head.data + before, head.len - before);
	} else {
		buf_add(out, head.data, head.len);
	}
	buf_release(&head);
	add_element(out, "<main>\n<h1>", title, "</h1>\n");
	add_element(
		out, "<p role=\"status\" aria-live=\"polite\">", text, "</p>\n</main>\n</body>\n</html>\n");
}

/* ---- a row ---- */

static const char *class_of(const struct listed *l)
{
	static const char *const name[NR_LISTED_STATES] = {
		"complete", "unfinished", "recording", "incomplete", "damaged", "unreadable"};

	return name[l->state];
}

static const char *word_of(const struct listed *l)
{
	return l->state == LISTED_WRITING ? "in progress" : listed_state_name[l->state];
}

static void add_escaped(struct buf *out, const char *open, const char *text, size_t len, const char *close)
{
	struct buf shown;

	buf_init(&shown, 1 << 20);
	add_text(&shown, text, len, LETTERS_UTF8);
	clip(&shown, 0, 200, true);
	add_element(out, open, (char *)shown.data, close);
	buf_release(&shown);
}

static void add_command_of(struct buf *out, const struct catalog_item *item)
{
	const struct meta_item *command = meta_find(&item->about.meta, "command");
	struct buf shown;

	buf_init(&shown, 1 << 20);
	if (command && command->len)
		add_command(&shown, command->value, command->len, LETTERS_UTF8);
	else
		add_text(&shown, item->name, strlen(item->name), LETTERS_UTF8);
	clip(&shown, 0, 200, true);
	buf_addf(out, "<td class=\"command\"><a href=\"run/%s/\">", item->id);
	add_html(out, (char *)shown.data);
	buf_adds(out, "</a>");
	buf_release(&shown);
	add_escaped(out, " <span class=\"sub\">", item->name, strlen(item->name), "</span>");
	buf_adds(out, "</td>");
}

static void add_state(struct buf *out, const struct listed *l)
{
	bool failed = l->signal >= 0 || l->exit_code > 0;

	buf_addf(out, "<td class=\"state %s%s\">%s", class_of(l), failed ? " failed" : "", word_of(l));
	if (l->signal >= 0)
		buf_addf(out, ", %s", format_signal(SHOWN, l->signal));
	else if (l->exit_code > 0)
		buf_addf(out, ", exit %d", l->exit_code);
	buf_adds(out, "</td>");
}

/* Of one in progress up to now; of one that was cut off its end is not known without reading it. */
static double length_of(const struct listed *l)
{
	struct timespec now;

	if (!isnan(l->wall_s) || l->state != LISTED_WRITING || l->nodes || l->start_ns <= 0)
		return l->wall_s;
	clock_gettime(CLOCK_REALTIME, &now);
	return MAX((double)now.tv_sec - (double)l->start_ns / 1e9, 0);
}

/* To the minute, which is enough to find it. */
static void add_start(struct buf *out, int64_t start_ns)
{
	char text[UNITS_SIZE] = "";

	if (start_ns > 0)
		format_iso8601(text, start_ns);
	buf_addf(out, "<td><time datetime=\"%s\">%.10s %.5s</time></td>", text, text,
		*text ? text + strlen("2026-01-01T") : "");
}

static void add_user(struct buf *out, const struct meta *m)
{
	const char *user = meta_text(m, "user");
	const struct meta_item *known;
	int64_t uid;

	if (*user || !meta_num(m, "uid", &uid)) {
		add_escaped(out, "<td>", user, strlen(user), "</td>");
		return;
	}
	known = meta_user(m, uid);
	if (known)
		add_escaped(out, "<td>", known->value, known->len, "</td>");
	else
		buf_addf(out, "<td>%lld</td>", (long long)uid);
}

static void add_row(struct buf *out, const struct catalog_item *item)
{
	const struct listed *l = &item->about;
	const char *host = meta_text(&l->meta, "host");
	double length = length_of(l);

	buf_addf(out, "<tr id=\"run-%s\">", item->id);
	add_state(out, l);
	add_command_of(out, item);
	buf_addf(out,
		"<td class=\"curve\"><img src=\"run/%s/curve.svg\" alt=\"\" width=\"160\" height=\"32\" "
		"loading=\"lazy\"></td>",
		item->id);
	add_user(out, &l->meta);
	if (l->nodes > 1)
		buf_addf(out, "<td>%zu nodes</td>", l->nodes);
	else
		add_escaped(out, "<td>", host, strlen(host), "</td>");
	add_start(out, l->start_ns);
	buf_addf(out, "<td class=\"number\">%s</td>", isnan(length) ? "" : format_duration(SHOWN, length));
	buf_addf(out, "<td class=\"number\">%s</td>", format_bytes(SHOWN, (double)l->bytes));
	buf_addf(out,
		"<td class=\"links\"><a href=\"run/%s/recording\">recording</a> "
		"<a href=\"run/%s/report.html\">HTML</a> <a href=\"run/%s/report.pdf\">PDF</a> "
		"<a href=\"run/%s/export/csv\">CSV</a></td></tr>\n",
		item->id, item->id, item->id, item->id);
}

/* ---- the page ---- */

static void add_pages(struct buf *out, size_t from, size_t nr)
{
	if (nr <= ROWS)
		return;
	buf_addf(out, "<nav aria-label=\"Pages\"><span>%zu–%zu of %s</span>", from + 1, MIN(from + ROWS, nr),
		format_count(SHOWN, (double)nr));
	if (from)
		buf_addf(out, " <a rel=\"prev\" href=\"?from=%zu\">newer</a>", from > ROWS ? from - ROWS : 0);
	if (from + ROWS < nr)
		buf_addf(out, " <a rel=\"next\" href=\"?from=%zu\">older</a>", from + ROWS);
	buf_adds(out, "</nav>\n");
}

int index_page(struct serve *s, size_t from, struct buf *out)
{
	const struct serve_catalog *c = &s->catalog;

	from = from < c->nr ? from : 0;
	page_served_head(out, "Recordings", "index");
	buf_adds(out, "<header><h1>Recordings</h1><p class=\"sub\">");
	add_count(out, (double)c->nr, "recording", "recordings");
	buf_addf(out, ", %zu in progress</p></header>\n<main>\n", c->nr_running);
	add_pages(out, from, c->nr);
	buf_adds(out,
		"<table>\n<thead><tr><th>State</th><th>Command</th><th>Cores</th><th>User</th><th>Host</th>"
		"<th>Start, UTC</th><th>Length</th><th>Size</th><th>Download</th></tr></thead>\n<tbody>\n");
	for (size_t i = from; i < c->nr && i < from + ROWS; i++)
		add_row(out, c->item[i]);
	buf_adds(out, "</tbody>\n</table>\n");
	if (!c->nr)
		buf_adds(out,
			"<p>There is no recording here yet. <code>tacho run -- COMMAND</code> makes "
			"one.</p>\n");
	add_pages(out, from, c->nr);
	buf_adds(out, "</main>\n");
	page_served_script(out);
	buf_adds(out, "</body>\n</html>\n");
	return out->err;
}
