/* The balance of a run: a line of the summary, and a list of its JSON. */
#include "text/balance.h"

#include "text/words.h"

#include <math.h>
#include <string.h>

void balance_line(const struct summary *s, bool utf8, struct buf *out)
{
	size_t before = out->len;
	struct balance b;

	if (balance_make(s, &b) < 0) {
		out->err = -ENOMEM;
		return;
	}
	for (unsigned k = 0; b.nr && b.row[0].name == NULL && k < NR_BALANCE; k++) {
		const struct balance_value *v = &b.row[0].value[k];
		double ratio = balance_ratio(v);

		if (isnan(ratio))
			continue;
		buf_addf(out, "%s%s %.0f %%",
			out->len == before ? ""
				: utf8	   ? " · "
					   : ", ",
			balance_column[k].title, 100 * ratio);
		if (k != BALANCE_CPU || v->most == v->least)
			continue;
		buf_adds(out, " (least: ");
		add_text(out, v->least_on, strlen(v->least_on), utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		buf_adds(out, ", most: ");
		add_text(out, v->most_on, strlen(v->most_on), utf8 ? LETTERS_UTF8 : LETTERS_ASCII);
		buf_addch(out, ')');
	}
	balance_release(&b);
}

static void add_value(struct json *j, unsigned column, const struct balance_value *v)
{
	json_object(j, balance_column[column].name);
	json_uint(j, "count", v->nr);
	json_num(j, "ratio", balance_ratio(v));
	json_num(j, "mean", v->mean);
	json_num(j, "most", v->most);
	json_name(j, "most_on", v->most_on);
	json_num(j, "least", v->least);
	json_name(j, "least_on", v->least_on);
	json_end_object(j);
}

void json_balance(struct json *j, const struct summary *s)
{
	struct balance b;

	if (balance_make(s, &b) < 0) {
		j->out->err = -ENOMEM;
		return;
	}
	json_array(j, "balance");
	for (size_t i = 0; i < b.nr; i++) {
		json_object(j, NULL);
		json_str(j, "of", b.row[i].of);
		json_name(j, "name", b.row[i].name);
		json_str(j, "over", b.row[i].over);
		for (unsigned k = 0; k < NR_BALANCE; k++)
			if (b.row[i].value[k].nr >= 2)
				add_value(j, k, &b.row[i].value[k]);
		json_end_object(j);
	}
	json_end_array(j);
	balance_release(&b);
}
