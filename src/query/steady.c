/* Each instance has an offset, by which it begins at nothing and goes on where it was; what it contributed
 * stays behind when it leaves. */
#include "query/steady.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

int steady_reserve(struct steady *s, uint32_t nr_rows)
{
	struct steady_occupant *more;

	if (nr_rows <= s->nr)
		return 0;
	more = array_reach(s->occupant, &s->nr, nr_rows - 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->occupant = more;
	return 0;
}

void steady_release(struct steady *s)
{
	free(s->occupant);
	*s = (struct steady){0};
}

static void occupant_value(struct steady_occupant *occupant, double value)
{
	if (isnan(value))
		return;
	if (occupant->in && occupant->known && value < occupant->last)
		occupant->offset += occupant->last - value;
	occupant->last = value;
	occupant->known = true;
}

double steady_step(struct steady *s, const struct steady_turn *turn)
{
	struct steady_occupant *occupant = &s->occupant[turn->row];

	if (occupant->id && occupant->id != turn->id) {
		if (occupant->in)
			s->kept += occupant->offset + (turn->inherited ? 0 : occupant->last);
		*occupant = (struct steady_occupant){0};
	}
	if (!turn->id)
		return NAN;
	if (occupant->in && !turn->inside) {
		s->kept += occupant->last + occupant->offset;
		occupant->in = false;
	}
	if (turn->inside && !occupant->in && !isnan(turn->value)) {
		double past = occupant->known && turn->before < turn->value ? turn->before : turn->value;

		occupant->offset = turn->from_zero && !occupant->known ? 0 : -past;
		occupant->in = true;
		occupant->last = turn->value;
	}
	occupant->id = turn->id;
	occupant_value(occupant, turn->value);
	return occupant->in ? occupant->last + occupant->offset : NAN;
}
