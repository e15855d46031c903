/* How evenly a run is spread, for people and for programs. */
#ifndef TEXT_BALANCE_H
#define TEXT_BALANCE_H

#include "base/json.h"
#include "query/balance.h"

/* "CPU 57 % (least: n1) · memory 95 %": the whole run over its nodes. Nothing where there is nothing to
 * compare. */
void balance_line(const struct summary *s, bool utf8, struct buf *out);
/* "balance": a list of objects. */
void json_balance(struct json *j, const struct summary *s);
#endif
