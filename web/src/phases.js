/* Phases as bands behind curves: as src/analysis/bands.c makes them of drawings, but for the range in view. */

const LANES = 3; /* rows of names: phases within others stand below them */
const NARROW = 24; /* CSS pixels: there is no room for a name */

/* [{…phase, lane}] of phases by time; those in too many others are left out. */
export function withLanes(phases) {
	const free = new Array(LANES).fill(-Infinity);
	const laned = [];
	for (const phase of phases) {
		const lane = free.findIndex((from) => from <= phase.time_s);
		if (lane < 0)
			continue;
		free[lane] = phase.end_s ?? Infinity;
		laned.push({...phase, lane});
	}
	return laned;
}

export const nrLanes = (laned) => laned.reduce((most, phase) => Math.max(most, phase.lane + 1), 0);

const keyOf = (name) => name.replace(/\d+/g, "#");
const general = (name) => name.replace(/[\s_\-#:=/.]*\d+$/, "") || name;

function nameOf(band) {
	if (band.count < 2)
		return band.label;
	if (band.mixed)
		return `${band.count} phases`;
	return `${band.same ? band.label : general(band.label)} ×${band.count}`;
}

/* What is to be painted: {from, to, lane, odd, name} in pixels of the canvas. Neighbours that are too narrow for their names are one. */
export function bandsIn(laned, at, left, right, px) {
	const bands = [], last = new Array(LANES).fill(null);
	for (const phase of laned) {
		const from = Math.max(at(phase.time_s), left), to = Math.min(some(phase.end_s) ? at(phase.end_s) : right, right);
		if (to < left || from > right)
			continue;
		const before = last[phase.lane];
		if (before && to - from < NARROW * px && from - before.to < NARROW * px && (before.count > 1 || before.to - before.from < NARROW * px)) {
			before.mixed ||= keyOf(before.label) !== keyOf(phase.label);
			before.same &&= before.label === phase.label;
			before.count++;
			before.to = Math.max(before.to, to);
			continue;
		}
		last[phase.lane] = {from, to, lane: phase.lane, odd: before ? !before.odd : false, label: phase.label, count: 1, mixed: false, same: true};
		bands.push(last[phase.lane]);
	}
	return bands.map((band) => ({...band, name: nameOf(band)}));
}

const some = (value) => value !== null && value !== undefined;

/* "epoch 5 › backward" */
export function phasesAt(laned, time) {
	return laned.filter((phase) => phase.time_s <= time && (phase.end_s ?? Infinity) >= time).sort((a, b) => a.lane - b.lane)
		.map((phase) => phase.label).join(" › ");
}
