/* The colours of every picture, here once: drawings (draw/), the page and the reports take them from this
 * list.
 *
 * Twelve hues, each in two shades: for white paper and for a dark screen. They were chosen so that the
 * nearest two of the first four, six, eight... stay apart by lightness as well as by hue, for people who see
 * all colours and under simulated protanopia, deuteranopia and tritanopia (distances in OKLab); each stands
 * out from its paper by a contrast of 2.4 or more. Blue and vermilion come first because no reader confuses
 * them. Known palettes were the starting point and were left where they fail on one of the two papers: yellow
 * on white, indigo on black. Everything without a name of its own ("others") is grey.
 *
 * Heat is a scale whose lightness changes evenly, so that it also reads in grey: on dark from deep blue over
 * green to yellow, on white from ivory over green to deep blue. What is idle fades into the paper on both.
 * Stops are evenly spaced and joined by straight lines in sRGB. */
#ifndef ANALYSIS_PALETTE_H
#define ANALYSIS_PALETTE_H

/* X(name, on white, on dark) */
/* clang-format off */
#define PALETTE(X) \
	X(blue,      0x1660c8, 0x4a8de7) \
	X(vermilion, 0xe64a19, 0xf0652a) \
	X(green,     0x009f85, 0x26c79a) \
	X(purple,    0x9a2c84, 0xcc5cab) \
	X(amber,     0xd99400, 0xe3c62e) \
	X(sky,       0x56b0e4, 0x92e3fa) \
	X(olive,     0x658b3a, 0xb0b03e) \
	X(indigo,    0x332288, 0x7c6cff) \
	X(pink,      0xf0639a, 0xffa4bf) \
	X(brown,     0x7a4a1e, 0xc8936a) \
	X(wine,      0x6b1f3f, 0xe0627f) \
	X(teal,      0x39a0a8, 0x4fc3d9)

/* What is no curve. */
#define PALETTE_PAPER(X) \
	X(paper,  0xffffff, 0x16191f) \
	X(text,   0x1c2128, 0xe6e9ee) \
	X(quiet,  0x5d6673, 0x9aa4b2) /* axes, subtitles, notes: still 4.5:1 */ \
	X(grid,   0xe7eaee, 0x2a303a) \
	X(axis,   0xb4bcc6, 0x4c5563) \
	X(others, 0x9aa1ab, 0x7b8491) \
	X(band,   0x1660c8, 0x4a8de7) /* phases, as a tint */ \
	X(mark,   0x5d6673, 0x9aa4b2) /* events */ \
	X(level,  0xb3261e, 0xff8a80) /* limits */

/* From nothing to full. */
#define PALETTE_HEAT(X) \
	X(0x151b56) X(0x1e356f) X(0x225188) X(0x2a7097) X(0x369197) X(0x51b18d) X(0x85cb87) X(0xc6df81) X(0xfcf483)
#define PALETTE_HEAT_WHITE(X) \
	X(0xf3f6df) X(0xc7dfc4) X(0x94c9ad) X(0x69b09f) X(0x47939c) X(0x2d7498) X(0x21568a) X(0x213775) X(0x1b1a5d)
/* clang-format on */

#define PALETTE_ONE_(name, white, dark) +1
#define PALETTE_SIZE (0 PALETTE(PALETTE_ONE_))
#endif
