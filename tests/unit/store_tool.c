/* Makes recordings for the end-to-end tests of the store, from the invented machine of store_world.h. The
 *same seed gives the same life, so that what a killed writer left can be compared with what it would have
 *written.
 *
 *	store_tool write SEED TICKS FILE	a whole recording, short segments
 *	store_tool busy SEED TICKS FILE		the same with nearly every cell changing at every tick
 *	store_tool small SEED TICKS FILE	the same with few processes
 *	store_tool ever SEED TICKS FILE		as write, and after every flush "N BYTES" on stdout: N ticks
 *were recorded, the file has so many bytes; no end mark */
#include "store_world.h"

#include "store/limits.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct world world;

static void live(unsigned ticks, bool talk, bool paced)
{
	for (unsigned i = 1; i <= ticks && (!paced || getchar() != EOF); i++) {
		world_live(&world, 1, 1);
		buf_reset(&world.log);
		if (!talk)
			continue;
		printf("%u %llu\n", i, (unsigned long long)store_bytes(world.w));
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	static const struct store_limits limits = {
		.segment_ns = 10 * NSEC_PER_SEC,
		.segment_bytes = 1 << 20,
		.segment_max_ns = 60 * NSEC_PER_SEC,
		.block_bytes = 256 << 10,
		.pending_bytes = 256 << 10,
	};
	bool ever, paced;

	if (argc != 5)
		return 2;
	paced = !strcmp(argv[1], "paced");
	ever = paced || !strcmp(argv[1], "ever");
	signal(SIGXFSZ, SIG_IGN);
	world_init(&world, strtoull(argv[2], NULL, 10), argv[4]);
	store_set_limits(world.w, &limits);
	world.busy = !strcmp(argv[1], "busy");
	if (!strcmp(argv[1], "small"))
		world.rows = 4;
	live((unsigned)strtoul(argv[3], NULL, 10), ever, paced);
	if (!ever)
		world_finish(&world);
	world_release(&world);
	return 0;
}
