/* Tables, for people and for programs: aligned text for terminals, CSV, JSON, Markdown, HTML.
 *
 * A table is a list of columns and a function that gives the cells of a row, from left to right. Each column
 * gets its cell in every row; what the form that is written does not have is passed over. */
#ifndef TEXT_TABLE_H
#define TEXT_TABLE_H

#include "base/json.h"
#include "text/words.h"

enum text_form { FORM_TEXT, FORM_CSV, FORM_JSON, FORM_MARKDOWN, FORM_HTML };

struct text_style {
	enum text_form form;
	unsigned width; /* of the screen; 0: lines as long as they are */
	bool utf8, color;
};

struct text_column {
	const char *title; /* for people; NULL: they do not get it */
	const char *name;  /* in CSV and JSON; NULL: for people only */
	const char *group; /* "exit" of "code": "exit_code" in CSV, an object in JSON, with its neighbours */
	enum { OF_PROGRAMS, OF_CSV, OF_JSON } only;
	enum number_look look;
	bool numbers;	 /* stands at the right */
	bool whole;	 /* an integer in JSON */
	bool blank;	 /* what is not there is no dash: nothing is missing */
	bool keeps_end;	 /* where a text is too long, its end stays */
	bool prose;	 /* sentences: on paper they get the room that is left, and several lines */
	unsigned gap;	 /* spaces before it */
	unsigned width;	 /* 0: as wide as its widest cell; left out when all are empty */
	unsigned most;	 /* of those; 0: no limit */
	double length_s; /* of the run, for LOOK_MOMENT */
};

struct table_writer;

struct text_table {
	const char *id, *title;
	char *note; /* what was left out, what a column means; may be NULL */
	struct text_column *column;
	size_t nr_columns, nr_rows;
	void (*row)(struct table_writer *w, const struct text_table *t, size_t row); /* NULL: cell[] */
	const void *of;								     /* the row function's */
	char **cell; /* [nr_rows][nr_columns]: texts; "" where nothing is known */
};

#define TABLE_MEASURED 64 /* columns among which some have no width of their own */

struct table_writer {
	const struct text_table *t;
	struct text_style style;
	enum letters letters; /* how texts are to be given */
	struct buf *out;
	struct json *json;
	const char *key;	     /* JSON: of a row's object; NULL in a list */
	size_t wide[TABLE_MEASURED]; /* columns of terminal text that have no width of their own; 0: left out
				      */
	/* Of the row that is written. */
	size_t at, line;
	bool measuring, any, strong;
	const char *group, *color;
	unsigned nr_paints;
	struct table_paint {
		size_t from, to;
		const char *color;
	} paint[TABLE_MEASURED];
	struct buf cell;
};

/* All of it; JSON is table_json(). Terminal text: columns that find no room are cut off. */
void table_write(const struct text_table *t, const struct text_style *style, struct buf *out);
/* The rows as objects: into a list that is open, or of that key into an object. */
void table_json(const struct text_table *t, struct json *j, const char *key);

/* Piece by piece: begin, measure (where a column has no width; `wide` may be changed then), heading, and for
 * each row its cells between table_begin_row() and table_end_row(). */
void table_begin(
	struct table_writer *w, const struct text_table *t, const struct text_style *style, struct buf *out);
void table_measure(struct table_writer *w);
void table_heading(struct table_writer *w);
void table_rows(struct table_writer *w);
void table_begin_row(struct table_writer *w);
void table_end_row(struct table_writer *w);
void table_end(struct table_writer *w);

/* The next cell. NAN and NULL: not known. */
void cell_number(struct table_writer *w, double value);
void cell_bound(struct table_writer *w, const char *mark, double value); /* "≥" before it, for people */
void cell_flag(struct table_writer *w, bool value);
void cell_text(struct table_writer *w, const char *text, size_t len); /* bytes, as recorded */
void cell_words(struct table_writer *w, const char *words);	      /* our own; "" is not known */
/* One that is made of pieces: a buffer for it, in the letters of `w`; NULL when the form does not have it,
 * and then that was all. cell_close() ends it; `known` as of NULL. */
struct buf *cell_open(struct table_writer *w);
void cell_close(struct table_writer *w, bool known);
/* JSON that is no single value: where to write it, under *ret_key. NULL in other forms. */
struct json *cell_json(struct table_writer *w, const char **ret_key);
/* Of the next cell: strong in documents; a colour in the terminal. */
void cell_strong(struct table_writer *w);
void cell_color(struct table_writer *w, const char *color);
#endif
