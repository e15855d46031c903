/* All that the page knows, behind one small interface: nobody else looks into the JSON (docs/page-data.md).
 *
 * open(text) gives the whole; lines are unpacked when they are drawn for the first time. Of a job that runs, append()
 * takes what is new (docs/serve.md) and update() a whole newer text. What append() has added since the last text is bounded:
 * when it becomes too much, neighbours of it become one point. */

const NOTHING = 65535;
const MOST = 65534;
const MOST_ADDED = 6000; /* points of a node since the last text */
const MOST_EVENTS = 5000;
const ROUNDED_S = 0.0005; /* times may be milliseconds */

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
		if (q === NOTHING)
			continue;
		if (every === 1 && from < length)
			values[from] = packed.lo + q * step;
		else
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

const keyOf = (line) => `${line.node} ${line.process ?? ""} ${line.name}`;
/* Not by push(...): there may be more than a call takes. */
const add = (values, more) => {
	for (const value of more)
		values.push(value);
};
const pad = (values, length) => {
	while (values.length < length)
		values.push(null);
};

/* ---- what was added to a line: {mean, low, high}, low and high are mean itself where nothing was reduced ---- */

function apart(line) {
	if (line.low === line.mean)
		line.low = line.mean.slice();
	if (line.high === line.mean)
		line.high = line.mean.slice();
}

function push(line, mean, low, high) {
	if (line.low === line.mean && (low !== mean || high !== mean))
		apart(line);
	add(line.mean, mean);
	if (line.low !== line.mean)
		add(line.low, low);
	if (line.high !== line.mean)
		add(line.high, high);
}

function padLine(line, length) {
	pad(line.mean, length);
	if (line.low !== line.mean)
		pad(line.low, length);
	if (line.high !== line.mean)
		pad(line.high, length);
}

/* From index `from` on two points become one. */
function halve(values, from, fold) {
	let to = from;
	for (let i = from; i < values.length; i += 2) {
		const a = values[i], b = i + 1 < values.length ? values[i + 1] : null;
		values[to++] = a === null ? b : b === null ? a : fold(a, b);
	}
	values.length = to;
}

const middle = (a, b) => (a + b) / 2;

function halveLine(line, from) {
	apart(line);
	halve(line.mean, from, middle);
	halve(line.low, from, Math.min);
	halve(line.high, from, Math.max);
}

/* ---- all of it ---- */

export function open(text) {
	let raw, times, lines, added, known, index;

	function addTimes(nodes, after) {
		return nodes.map((node, i) => {
			if (!raw.nodes[i])
				return null;
			const own = data.times(i), from = own.length;
			const fresh = unpackTimes(node.times);
			let skip = 0;
			/* What is there already. */
			while (skip < fresh.length && (fresh[skip] <= after + ROUNDED_S || fresh[skip] <= (own.at(-1) ?? -Infinity)))
				skip++;
			add(own, fresh.slice(skip));
			raw.nodes[i].end_s = Math.max(raw.nodes[i].end_s ?? 0, node.end_s ?? 0);
			return {from, skip, length: fresh.length};
		});
	}

	/* Lines by what they are of, to find them again. */
	function linesOf(panel) {
		index ??= new Map(data.panels.map((own) => [own.id, own]));
		const own = index.get(panel.id);
		if (!own)
			return null;
		return own.byKey ??= new Map(own.lines.map((line) => [keyOf(line), line]));
	}

	function addLine(key, line, place) {
		const values = (packed) => unpack(packed, place.length).slice(place.skip);
		const fresh = values(line.mean);
		const drawn = lines.get(key);
		let to = drawn, at = place.from;
		if (!drawn) {
			to = added.get(key) ?? {low: null, mean: []};
			to.low ??= to.high = to.mean;
			added.set(key, to);
			at -= known[key.node];
		}
		padLine(to, at);
		push(to, fresh, line.low ? values(line.low) : fresh, line.high ? values(line.high) : fresh);
	}

	function addPhases(own, fresh) {
		const all = own.slice();
		for (const phase of fresh ?? []) {
			const at = all.findLastIndex((p) => p.time_s === phase.time_s && p.label === phase.label && p.node === phase.node && p.kind === phase.kind);
			if (at >= 0)
				all[at] = phase;
			else if (all.length < MOST_EVENTS)
				all.push(phase);
		}
		return all.sort((a, b) => a.time_s - b.time_s);
	}

	function thin(node) {
		const from = known[node];
		const own = data.times(node);
		if (own.length - from <= MOST_ADDED)
			return;
		halve(own, from, middle);
		for (const [key, line] of lines)
			if (key.node === node)
				halveLine(line, from);
		for (const [key, line] of added)
			if (key.node === node)
				halveLine(line, 0);
		data.version++;
	}

	const data = {
		/* Changes when points that were there already change; not when some are added. */
		version: 0,
		update(newer) {
			raw = JSON.parse(newer);
			times = raw.nodes.map(() => null);
			lines = new Map();
			added = new Map();
			known = raw.nodes.map((node) => node.times?.n ?? node.times?.values?.length ?? 0);
			index = null;
			data.version++;
		},
		/* What is new, as the event `data` has it; of this only what is behind `after`. */
		append(news, after = -Infinity) {
			const places = addTimes(news.nodes ?? [], after);
			for (const panel of news.panels ?? []) {
				const byKey = linesOf(panel);
				for (const line of panel.lines ?? []) {
					const key = byKey?.get(keyOf(line));
					if (key && places[line.node])
						addLine(key, line, places[line.node]);
				}
			}
			for (const [key, line] of lines)
				padLine(line, data.times(key.node).length);
			if (news.phases?.length)
				raw.phases = addPhases(data.phases, news.phases);
			if (news.events?.length)
				raw.events = addPhases(data.events, news.events);
			places.forEach((place, node) => place && thin(node));
		},
		/* Whether points were added behind those of the text. */
		hasMore(node) { return Boolean(times[node]) && times[node].length > known[node]; },
		/* How many points are kept, of all lines: for tests that nothing grows. */
		get size() {
			let sum = times.reduce((n, own) => n + (own?.length ?? 0), 0);
			for (const of of [lines, added])
				for (const line of of.values())
					sum += line.mean.length + (line.low === line.mean ? 0 : line.low.length) + (line.high === line.mean ? 0 : line.high.length);
			return sum;
		},
		get live() { return raw.live ?? null; },
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
			return raw.nodes.reduce((end, node, i) => Math.max(end, node.end_s ?? 0, data.times(i).at(-1) ?? 0), 0.001);
		},
		times(node) {
			return (times[node] ??= unpackTimes(raw.nodes[node]?.times));
		},
		/* {times, mean, low, high}: low and high are mean itself where nothing was reduced. Points that are added later are
		 * added to these. */
		line(panel, i) {
			const key = panel.lines[i];
			let line = lines.get(key);
			if (line)
				return line;
			const own = data.times(key.node);
			const length = Math.min(known[key.node] ?? 0, own.length);
			const mean = unpack(key.mean, length);
			line = {
				times: own,
				mean,
				low: key.low ? unpack(key.low, length) : mean,
				high: key.high ? unpack(key.high, length) : mean,
			};
			const more = added.get(key);
			if (more)
				push(line, more.mean, more.low, more.high);
			added.delete(key);
			padLine(line, own.length);
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
