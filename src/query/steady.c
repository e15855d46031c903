/* Each instance has an offset, by which it begins at nothing and goes on where it was; what it contributed
 * stays behind when it leaves. */
#include "query/steady.h"

#include "base/owned.h"

#include <math.h>
#include <string.h>

int steady_reserve(struct steady *s, uint32_t nr_rows)
{
	struct steady_seat *more;

	if (nr_rows <= s->nr)
		return 0;
	more = array_reach(s->seat, &s->nr, nr_rows - 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->seat = more;
	return 0;
}

void steady_release(struct steady *s)
{
	free(s->seat);
	*s = (struct steady){0};
}

static void seat_value(struct steady_seat *seat, double value)
{
	if (isnan(value))
		return;
	if (seat->in && seat->known && value < seat->last)
		seat->offset += seat->last - value;
	seat->last = value;
	seat->known = true;
}

double steady_step(struct steady *s, const struct steady_turn *turn)
{
	struct steady_seat *seat = &s->seat[turn->row];

	if (seat->id && seat->id != turn->id) {
		if (seat->in)
			s->kept += seat->offset + (turn->inherited ? 0 : seat->last);
		*seat = (struct steady_seat){0};
	}
	if (!turn->id)
		return NAN;
	if (seat->in && !turn->inside) {
		s->kept += seat->last + seat->offset;
		seat->in = false;
	}
	if (turn->inside && !seat->in && !isnan(turn->value)) {
		double past = seat->known && turn->before < turn->value ? turn->before : turn->value;

		seat->offset = turn->from_zero && !seat->known ? 0 : -past;
		seat->in = true;
		seat->last = turn->value;
	}
	seat->id = turn->id;
	seat_value(seat, turn->value);
	return seat->in ? seat->last + seat->offset : NAN;
}
