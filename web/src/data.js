/* All that the page knows, behind one small interface: nobody else looks into the JSON (docs/page-data.md).
 *
 * open(text) gives the whole; lines are unpacked when they are drawn for the first time. A page that follows a
 * running job gives another text to update() and everybody who asked by onUpdate() draws again: that is all
 * that is different there.
 */

const NOTHING = 65535;
const MOST = 65534;

/* {at, n, lo, hi, q, every}: 16-bit numbers in base64, each for `every` points, to an array of `length` with null where
 * there is nothing. */
export function unpack(packed, length) {
	const values = new Array(length).fill(null);
	if (!packed || !packed.n)
		return values;
	const bytes = atob(packed.q);
	const step = (packed.hi - packed.lo) / MOST;
	const every = packed.every ?? 1;
	const numbers = Math.min(packed.n, bytes.length >> 1);
	for (let i = 0; i < numbers; i++) {
		const q = bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8);
		const from = packed.at + i * every;
		if (q !== NOTHING)
			values.fill(packed.lo + q * step, from, Math.min(from + every, length));
	}
	return values;
}

export function unpackTimes(times) {
	if (!times)
		return [];
	if (times.values)
		return times.values;
	return Array.from({length: times.n}, (_, i) => times.from + i * times.step);
}

export function open(text) {
	const listeners = [];
	let raw, times, lines;

	const data = {
		update(newer) {
			raw = JSON.parse(newer);
			times = raw.nodes.map(() => null);
			lines = new Map();
			for (const tell of listeners)
				tell();
		},
		onUpdate(tell) {
			listeners.push(tell);
		},
		get title() { return raw.title; },
		get note() { return raw.note; },
		get phases() { return raw.phases ?? []; },
		get events() { return raw.events ?? []; },
		get panels() { return raw.panels ?? []; },
		get processes() { return raw.processes ?? {columns: [], rows: []}; },
		/* The recordings; several have one more behind them that stands for all. */
		get nodes() { return raw.nodes; },
		get nrHosts() { return raw.nodes.length > 1 ? raw.nodes.length - 1 : raw.nodes.length; },
		/* Of the time axis: a page may be of a part of the run. */
		get part() { return Boolean(raw.window); },
		get begin() { return raw.window?.from_s ?? 0; },
		/* Times may be rounded: the last point is in it. */
		get end() {
			if (raw.window)
				return raw.window.to_s;
			return Math.max(0.001, ...raw.nodes.map((node, i) => Math.max(node.end_s ?? 0, data.times(i).at(-1) ?? 0)));
		},
		times(node) {
			return (times[node] ??= unpackTimes(raw.nodes[node]?.times));
		},
		/* {times, mean, low, high}: low and high are mean itself where nothing was reduced. */
		line(panel, i) {
			const key = panel.lines[i];
			let line = lines.get(key);
			if (line)
				return line;
			const own = data.times(key.node);
			const mean = unpack(key.mean, own.length);
			line = {
				times: own,
				mean,
				low: key.low ? unpack(key.low, own.length) : mean,
				high: key.high ? unpack(key.high, own.length) : mean,
			};
			lines.set(key, line);
			return line;
		},
		/* Of areas that are means: the most that they came to together, by the times of the first line; or null. */
		totalHigh(panel) {
			const own = panel.lines[0] && panel.total_high ? data.times(panel.lines[0].node) : null;
			return own && unpack(panel.total_high, own.length);
		},
	};
	data.update(text);
	return data;
}
