/* The report as Markdown, in the flavour that GitHub and GitLab show: head, findings, advice, plots, tables.
 *
 * Names and command lines come from the user of the job, so every character that Markdown or HTML could take
 * for its own is escaped, also where it would do no harm: a rule without exceptions can be checked. */
#include "document/document.h"

#include "base/str.h"
#include "document/mermaid.h"
#include "text/words.h"
#include "analysis/axis.h"
#include "analysis/outline.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

struct markdown_page {
	const struct analysis *s;
	const struct charts *charts;
	const struct outline *o;
	const char *picture;
	struct buf *out;
};

/* ---- escaping ---- */

static void add_md(struct buf *out, const char *text)
{
	if (*text && strchr("+-=", *text)) /* at the beginning they would be a list or a heading */
		buf_addch(out, '\\');
	add_markdown(out, text);
}

/* A block of lines as they are; the fence is longer than any that is in them. */
static void add_code(struct buf *out, const char *language, char *const *line, size_t nr)
{
	size_t fence = 3;

	for (size_t i = 0; i < nr; i++) {
		for (const char *p = line[i]; (p = strchr(p, '`'));) {
			size_t run = strspn(p, "`");

			fence = MAX(fence, run + 1);
			p += run;
		}
	}
	for (size_t i = 0; i < fence; i++)
		buf_addch(out, '`');
	buf_addf(out, "%s\n", language);
	for (size_t i = 0; i < nr; i++) {
		size_t from = out->len;

		buf_adds(out, line[i]);
		for (size_t at = from; at < out->len; at++)
			if (out->data[at] == '\n' || out->data[at] == '\r')
				out->data[at] = ' ';
		buf_addch(out, '\n');
	}
	for (size_t i = 0; i < fence; i++)
		buf_addch(out, '`');
	buf_adds(out, "\n\n");
}

void markdown_picture(struct buf *out, const struct chart *c, const char *pattern)
{
	buf_adds(out, "![");
	add_md(out, c->title);
	buf_adds(out, "](");
	for (const char *p = pattern; *p; p++) {
		unsigned char letter = (unsigned char)*p;

		if (letter == '%' && p[1] == 's') {
			buf_adds(out, c->id);
			p++;
		} else if (isalnum(letter) || strchr("._-/", letter)) {
			buf_addch(out, letter);
		} else {
			buf_addf(out, "%%%02X", letter);
		}
	}
	buf_adds(out, ")\n\n");
}

/* ---- the parts ---- */

static void add_pair(struct markdown_page *p, const char *name, const char *value, const char *detail)
{
	if (!*value)
		return;
	buf_addf(p->out, "| %s | ", name);
	add_md(p->out, value);
	if (*detail) {
		buf_adds(p->out, " (");
		add_md(p->out, detail);
		buf_addch(p->out, ')');
	}
	buf_adds(p->out, " |\n");
}

static void head(struct markdown_page *p)
{
	char *command[] = {p->o->title};

	buf_adds(p->out, "# Resource report\n\n");
	add_code(p->out, "", command, 1);
	if (*p->o->window) {
		add_md(p->out, p->o->window);
		buf_adds(p->out, "\n\n");
	}
	buf_adds(p->out, "| | |\n|---|---|\n");
	add_pair(p, "Message", p->o->message, "");
	add_pair(p, "Job", p->o->job, "");
	add_pair(p, "User", p->o->user, "");
	add_pair(p, "Nodes", p->o->nodes, "");
	add_pair(p, "Date", p->o->date, "");
	for (size_t i = 0; i < p->o->nr_facts; i++)
		add_pair(p, p->o->fact[i].name, p->o->fact[i].value, p->o->fact[i].detail);
	buf_addch(p->out, '\n');
}

static void add_evidence(struct markdown_page *p, const struct finding *f)
{
	char number[UNITS_SIZE];

	for (size_t i = 0; i < f->nr_evidence; i++) {
		const struct finding_evidence *e = &f->evidence[i];

		if (isnan(e->value))
			continue;
		buf_adds(p->out, i ? ", `" : " `");
		buf_adds(p->out, e->name);
		buf_adds(p->out, "` ");
		add_md(p->out, format_value(number, e->value, e->unit, e->per_second));
	}
}

static void findings(struct markdown_page *p)
{
	const struct findings *f = p->s->findings;

	buf_addf(p->out, "## Findings%s\n\n", p->s->part ? " of the whole run" : "");
	if (!f || !f->nr)
		buf_addf(p->out, "%s\n\n", findings_none(p->s));
	for (size_t i = 0; f && i < f->nr; i++) {
		buf_addf(p->out, "- **%s: ", finding_weight_name(f->item[i].weight));
		add_md(p->out, f->item[i].title);
		buf_adds(p->out, ".** ");
		add_md(p->out, f->item[i].text);
		add_evidence(p, &f->item[i]);
		buf_adds(p->out, i + 1 < f->nr ? "\n" : "\n\n");
	}
}

static void advice(struct markdown_page *p)
{
	const struct findings *f = p->s->findings;

	if (!f || (!f->nr_advice && !f->why_no_advice))
		return;
	buf_adds(p->out, "## For the next job script\n\n");
	if (!f->nr_advice) {
		add_md(p->out, f->why_no_advice);
		buf_adds(p->out, "\n\n");
		return;
	}
	for (size_t i = 0; i < f->nr_advice; i++)
		add_code(p->out, "sh", f->advice[i].line, f->advice[i].nr_lines);
	if (f->headroom) {
		add_md(p->out, f->headroom);
		buf_adds(p->out, "\n\n");
	}
}

static void plots(struct markdown_page *p)
{
	if (!p->picture || !p->charts->nr)
		return;
	buf_adds(p->out, "## Plots\n\n");
	for (size_t i = 0; i < p->charts->nr; i++) {
		const struct chart *c = &p->charts->item[i];

		buf_adds(p->out, "### ");
		add_md(p->out, c->title);
		buf_adds(p->out, "\n\n");
		if (c->subtitle && *c->subtitle) {
			add_md(p->out, c->subtitle);
			buf_adds(p->out, "\n\n");
		}
		markdown_picture(p->out, c, p->picture);
	}
}

static void table(struct markdown_page *p, const char *level, const struct text_table *t)
{
	buf_addf(p->out, "%s %s\n\n", level, t->title);
	table_write(t, &(struct text_style){.form = FORM_MARKDOWN}, p->out);
	buf_addch(p->out, '\n');
	if (t->note) {
		add_md(p->out, t->note);
		buf_adds(p->out, "\n\n");
	}
}

static void tables(struct markdown_page *p)
{
	if (p->o->nr_tables <= p->o->has_phases)
		return;
	buf_adds(p->out, "## Statistics\n\n");
	for (size_t i = p->o->has_phases; i < p->o->nr_tables; i++)
		table(p, "###", &p->o->table[i]);
}

static void sentences(struct markdown_page *p, const char *title, char *const *sentence, size_t nr)
{
	if (!nr)
		return;
	buf_addf(p->out, "## %s\n\n", title);
	for (size_t i = 0; i < nr; i++) {
		buf_adds(p->out, "- ");
		add_md(p->out, sentence[i]);
		buf_addch(p->out, '\n');
	}
	buf_addch(p->out, '\n');
}

static void foot(struct markdown_page *p)
{
	buf_adds(p->out, "---\n\nMade by tacho " TACHO_VERSION " from");
	for (size_t i = 0; i < MIN(p->s->run->nr, 8u); i++) {
		const char *path = p->s->run->path[i], *slash = strrchr(path, '/');
		struct buf name;

		buf_init(&name, 1 << 16);
		path = slash ? slash + 1 : path;
		escape_bytes(&name, path, strlen(path));
		buf_adds(p->out, i ? ", " : " ");
		add_md(p->out, (char *)name.data);
		buf_release(&name);
	}
	if (p->s->run->nr > 8)
		buf_addf(p->out, " and %zu more", p->s->run->nr - 8);
	buf_adds(p->out, ".\n");
}

int markdown_report(const struct analysis *s, const struct charts *f, const char *picture, struct buf *out)
{
	struct outline *o = NULL;
	struct markdown_page page = {.s = s, .charts = f, .picture = picture, .out = out};
	int r = outline_make(s, &o);

	if (r < 0)
		return r;
	page.o = o;
	head(&page);
	findings(&page);
	advice(&page);
	if (o->has_phases)
		table(&page, "##", &o->table[0]);
	plots(&page);
	tables(&page);
	sentences(&page, "About these numbers", s->summary->note, s->summary->nr_notes);
	if (s->findings)
		sentences(&page, "Not measured", s->findings->unmeasured, s->findings->nr_unmeasured);
	foot(&page);
	outline_free(o);
	return out->err;
}

int markdown_note(const struct analysis *s, struct buf *out)
{
	struct outline *o = NULL;
	struct markdown_page page = {.s = s, .out = out};
	int r = outline_make(s, &o);

	if (r < 0)
		return r;
	page.o = o;
	head(&page);
	findings(&page);
	advice(&page);
	foot(&page);
	outline_free(o);
	return out->err;
}

/* ---- for GitHub ---- */

#define COMMAND_MOST 4000

/* A part is taken whole, or left out where there is no room for it: GitHub shows nothing of what is too
 * long. */
struct github {
	struct markdown_page page; /* out: the part that is being made */
	struct buf part;
	struct buf *out;
	size_t most, left_out;
	bool no_room; /* not even for its head */
};

static void take_part(struct github *g)
{
	if (g->part.err || g->part.len > g->most - MIN(g->most, g->out->len))
		g->left_out++;
	else
		buf_add(g->out, g->part.data, g->part.len);
	buf_reset(&g->part);
}

/* A command may be as long as a file; a line of it says enough. */
static void cut_command(char *text)
{
	size_t len = strlen(text), at = COMMAND_MOST;

	if (len < COMMAND_MOST + sizeof("…"))
		return;
	while (at && (text[at] & 0xc0) == 0x80)
		at--;
	memcpy(text + at, "…", sizeof("…"));
}

static void github_phases(struct github *g)
{
	const struct analysis *s = g->page.s;
	_cleanup_(freep) const char **host = calloc(s->nr_nodes + 1, sizeof(*host));

	if (!host || !s->events)
		return;
	for (size_t i = 0; i < s->nr_nodes; i++)
		host[i] = s->summary->nr_nodes ? s->summary->node[i].host : s->summary->host;
	for (size_t i = 0; i < s->nr_nodes; i++)
		host[i] = host[i] && *host[i] ? host[i] : "?";
	if (g->page.o->has_phases) {
		table(&g->page, "##", &g->page.o->table[0]);
		take_part(g);
	}
	if (mermaid_phases(s->events, s->nr_nodes > 1 ? host : NULL, s->to_s, &g->part))
		take_part(g);
	buf_reset(&g->part);
}

/* The first of each section, of the whole run: a page of charts is what the other formats are for. */
static void github_charts(struct github *g)
{
	const struct charts *charts = g->page.charts;
	const char *section = "tools"; /* they show once more what other sections do */
	bool any = false;

	for (size_t i = 0; i < charts->nr; i++) {
		const struct chart *c = &charts->item[i];
		const char *own = charts->panel[i]->row->section;

		if (!strcmp(own, section) || !strcmp(own, "tools") ||
			(charts->node[i] >= 0 && g->page.s->nr_nodes > 1))
			continue;
		buf_adds(&g->part, any ? "### " : "## Plots\n\n### ");
		add_md(&g->part, c->title);
		buf_adds(&g->part, "\n\n");
		if (c->subtitle && *c->subtitle) {
			add_md(&g->part, c->subtitle);
			buf_adds(&g->part, "\n\n");
		}
		if (mermaid_curves(c, &g->part)) {
			take_part(g);
			section = own;
			any = true;
		}
		buf_reset(&g->part);
	}
}

/* Folded, since a summary of a job has little room on the screen. */
static void github_tables(struct github *g)
{
	for (size_t i = g->page.o->has_phases; i < g->page.o->nr_tables; i++) {
		const struct text_table *t = &g->page.o->table[i];

		buf_adds(&g->part, "<details><summary>");
		add_markdown(&g->part, t->title);
		buf_adds(&g->part, "</summary>\n\n");
		table_write(t, &(struct text_style){.form = FORM_MARKDOWN}, &g->part);
		buf_addch(&g->part, '\n');
		if (t->note) {
			add_md(&g->part, t->note);
			buf_adds(&g->part, "\n\n");
		}
		buf_adds(&g->part, "</details>\n\n");
		take_part(g);
	}
}

static void github_parts(struct github *g)
{
	const struct analysis *s = g->page.s;

	head(&g->page);
	take_part(g);
	g->no_room = g->left_out;
	findings(&g->page);
	take_part(g);
	advice(&g->page);
	take_part(g);
	github_phases(g);
	github_charts(g);
	github_tables(g);
	sentences(&g->page, "About these numbers", s->summary->note, s->summary->nr_notes);
	take_part(g);
	if (s->findings)
		sentences(&g->page, "Not measured", s->findings->unmeasured, s->findings->nr_unmeasured);
	take_part(g);
}

int github_report(const struct analysis *s, const struct charts *f, size_t most, struct buf *out)
{
	struct github g = {.page = {.s = s, .charts = f}, .out = out};
	struct outline *o = NULL;
	struct buf end;
	int r = outline_make(s, &o);

	if (r < 0)
		return r;
	buf_init(&end, SIZE_MAX / 2);
	buf_init(&g.part, SIZE_MAX / 2);
	cut_command(o->title);
	g.page.o = o;
	g.page.out = &end;
	foot(&g.page);
	g.page.out = &g.part;
	g.most = most - MIN(most, end.len + 200);
	github_parts(&g);
	if (g.left_out)
		buf_addf(out, "%zu parts are left out here: GitHub shows at most 1 MiB.\n\n", g.left_out);
	buf_add(out, end.data, end.len);
	if (end.err || g.no_room)
		r = end.err ? end.err : -ENOBUFS;
	buf_release(&g.part);
	buf_release(&end);
	outline_free(o);
	return r < 0 ? r : out->err;
}
