/* One panel: its canvas, drawn by uPlot and paint.js, and the legend beside it, which tells of each line the value
 * under the pointer and what it was in the range in view.
 *
 * All forms are uPlot charts, heat maps and timelines with no line in them: so axes, pointer and zoom are the same
 * everywhere. A panel is built when it comes near the screen, and drawn again only while it is there. */
import uPlot from "uplot";
import {el, lowerBound, nearest} from "./tools.js";
import {format, moment, momentIn, timeSteps, valueSteps} from "./units.js";
import {colors, heatColor, lineColor, withAlpha} from "./theme.js";
import {nrLanes, phasesAt, withLanes} from "./phases.js";
import * as paint from "./paint.js";

const AXIS_WIDTH = 68;
const MANY_ROWS = 256; // of a heat map: more are thinner, and have no legend
const AXIS_HEIGHT = 26;
const TOP = 8;
const RIGHT = 24; /* half a label of the time axis */
const LINES_HEIGHT = 178;
const WHEEL_STEP = 1.2;
const TIMELINE_ROWS = 24;
const SAME_MOMENT = 0.005; /* of the run: nodes' clocks differ */
const LEGEND_COLUMNS = ["mean", "min", "max"];

const some = (value) => value !== null && value !== undefined;

/* ---- numbers ---- */

/* Of the points in the range: the mean over time, the least of the least, the most of the most, the last. A point stands
 * for the time half way to its neighbours. */
export function rangeStatistics(line, from, to) {
	const {times, mean, low, high} = line;
	let seconds = 0, sum = 0, min = null, max = null, last = null;
	for (let i = lowerBound(times, from); i < times.length && times[i] <= to; i++) {
		if (mean[i] === null)
			continue;
		const own = ((times[i + 1] ?? times[i]) - (times[i - 1] ?? times[i])) / 2 || 1;
		seconds += own;
		sum += mean[i] * own;
		min = min === null ? low[i] : Math.min(min, low[i]);
		max = max === null ? high[i] : Math.max(max, high[i]);
		last = mean[i];
	}
	return {mean: seconds ? sum / seconds : null, min, max, last};
}

/* Lines of one axis added up, from where the sum ends; where none has a value there is none. */
function addUp(sum, lines) {
	const from = sum.mean.length;
	for (let i = from; i < lines[0].mean.length; i++)
		sum.mean.push(null);
	for (const {mean} of lines)
		for (let i = from; i < mean.length; i++)
			if (mean[i] !== null)
				sum.mean[i] = (sum.mean[i] ?? 0) + mean[i];
	return sum;
}

function sumOf(lines) {
	const mean = [];
	return addUp({times: lines[0].times, mean, low: mean, high: mean}, lines);
}

/* Each line upon those below it; where none of them has a value there is none. */
function stack(columns) {
	const sum = [];
	let below = null;
	for (const column of columns) {
		const upon = column.map((value, i) => {
			const base = below?.[i] ?? null;
			return value === null || value === undefined ? base : value + (base ?? 0);
		});
		sum.push(upon);
		below = upon;
	}
	/* Nothing at the bottom but something above is zero at the bottom. */
	return sum.map((column) => column.map((value, i) => value ?? (below[i] === null ? null : 0)));
}

function rowHeight(rows, least, most, room) {
	return Math.min(Math.max(room / Math.max(rows, 1), least), most);
}

/* The axis has room for a dozen letters; of several nodes in a row the first is told, and of a long name its end. */
function rowName(name) {
	const [first] = name.split(" – ");
	return first.length > 11 ? `…${first.slice(-10)}` : first;
}

/* ---- the panel ---- */

export class Panel {
	constructor(data, panel, view, figure) {
		this.data = data;
		this.panel = panel;
		this.view = view;
		this.figure = figure;
		this.hidden = new Set();
		this.moments = new WeakMap();
		this.laned = new WeakMap();
		this.near = false;
		this.stale = false;
		this.u = null;
		this.plot = figure.querySelector(".plot");
		this.makeCurves();
		figure.classList.add(panel.form);
		this.plot.tabIndex = 0;
		this.plot.setAttribute("role", "group");
		this.plot.setAttribute("aria-roledescription", "plot");
		this.setName();
	}

	setName() {
		this.plot.setAttribute("aria-label", [this.panel.title, this.panel.subtitle].filter(Boolean).join(", "));
	}

	get isStacked() { return this.panel.form === "stacked"; }
	get isHeat() { return this.panel.form === "heat"; }
	get isTimeline() { return this.panel.form === "timeline"; }
	get hasCurves() { return !this.isHeat && !this.isTimeline; }

	get lanes() {
		return 1 + Math.max(0, ...(this.panel.spans ?? []).map((span) => span.lane));
	}

	get top() {
		return TOP + nrLanes(this.phases) * paint.LANE_HEIGHT;
	}

	/* Phases in too many others: they have no band. */
	get unnamed() {
		return this.ofNode(this.data.phases).length - this.phases.length;
	}

	get phases() {
		const all = this.data.phases;
		if (!this.laned.has(all))
			this.laned.set(all, withLanes(this.ofNode(all)));
		return this.laned.get(all);
	}

	get height() {
		const frame = AXIS_HEIGHT + this.top;
		if (this.isHeat)
			return frame + Math.round(this.panel.lines.length * rowHeight(this.panel.lines.length, this.panel.lines.length > MANY_ROWS ? 1 : 3, 22, 240));
		if (this.isTimeline)
			return frame + Math.round(this.lanes * rowHeight(this.lanes, 2, 22, 420));
		return LINES_HEIGHT + this.top - TOP;
	}

	/* Those that belong to the panel's node; of the whole run all, but what several nodes told of the same time once. */
	ofNode(moments) {
		if (!this.moments.has(moments))
			this.moments.set(moments, this.findOfNode(moments));
		return this.moments.get(moments);
	}

	findOfNode(moments) {
		const own = moments.filter((m) => this.panel.node < 0 || !some(m.node) || m.node < 0 || m.node === this.panel.node)
			.sort((a, b) => a.time_s - b.time_s);
		const close = (this.view.end - this.view.begin) * SAME_MOMENT;
		const same = (a, b) => a.label === b.label && a.node !== b.node && Math.abs(a.time_s - b.time_s) <= close &&
			Math.abs((a.end_s ?? 0) - (b.end_s ?? 0)) <= close;
		const told = (m, i) => {
			for (let k = i - 1; k >= 0 && m.time_s - own[k].time_s <= close; k--)
				if (same(own[k], m))
					return true;
			return false;
		};
		return this.panel.node < 0 && this.data.nrHosts > 1 ? own.filter((m, i) => !told(m, i)) : own;
	}

	/* ---- curves: what is drawn of the lines ---- */

	/* Hundreds of processes may have lines: those without a colour are one curve together with the others, but for
	 * the one that is lit up. */
	makeCurves() {
		this.chooseCurves();
		this.buildLegend();
	}

	chooseCurves() {
		const {lines} = this.panel;
		const nameless = (key) => key.color < 0 && this.hasCurves;
		const apart = lines.findIndex((key) => nameless(key) && some(key.process) && key.process === this.view.light?.process);
		const folded = lines.map((_, i) => i).filter((i) => nameless(lines[i]) && i !== apart);
		this.curves = lines.map((key, i) => ({...key, of: [i]})).filter((_, i) => !folded.includes(i));
		if (folded.length)
			this.curves.push({...lines[folded[folded.length - 1]], name: "others", process: null, of: folded});
		this.apart = apart;
		this.lines = null;
	}

	/* All that legend and plot were built of; the numbers in them come later. */
	get shape() {
		return JSON.stringify([this.curves.map(({name, color, process, dashed, held, of}) => [name, color, process, dashed, held, of]), this.panel.unit,
			this.panel.form, this.isHeat && this.panel.y_most]);
	}

	/* Whether the lit process wants to be taken out of the others, or put back. */
	get hasOtherCurves() {
		const process = this.view.light?.process;
		const apart = this.hasCurves ? this.panel.lines.findIndex((key) => key.color < 0 && some(key.process) && key.process === process) : -1;
		return apart !== this.apart;
	}

	linesOf(curve) {
		return curve.of.map((i) => this.data.line(this.panel, i));
	}

	lineOf(curve) {
		const lines = this.linesOf(curve);
		return lines.length === 1 ? lines[0] : sumOf(lines);
	}

	/* Lines become longer by themselves, sums of them do not. */
	readLines() {
		if (this.version !== this.data.version)
			this.lines = null;
		this.version = this.data.version;
		if (!this.lines)
			this.lines = this.curves.map((curve) => this.lineOf(curve));
		else
			this.curves.forEach((curve, i) => curve.of.length > 1 && addUp(this.lines[i], this.linesOf(curve)));
	}

	colorOf(curve) {
		return curve.color < 0 && some(curve.process) ? this.look.text : lineColor(curve.color);
	}

	isHidden(i) {
		return this.hidden.has(this.curves[i].name);
	}

	get shown() {
		return this.curves.map((_, i) => i).filter((i) => !this.isHidden(i));
	}

	/* ---- data for uPlot ---- */

	load() {
		this.readLines();
		if (!this.hasCurves || !this.lines.length)
			return this.frame();
		const common = this.lines.every((line) => line.times === this.lines[0].times);
		const tables = this.lines.map((line) => [line.times, line.mean]);
		const joined = common ? [this.lines[0].times, ...this.lines.map((line) => line.mean)] :
			uPlot.join(tables, tables.map(() => [0, 1]));
		if (!this.isStacked)
			return joined;
		const {shown} = this;
		const upon = stack(shown.map((i) => joined[i + 1]));
		const columns = this.curves.map((_, i) => shown.includes(i) ? upon[shown.indexOf(i)] : joined[0].map(() => null));
		this.total = upon[upon.length - 1] ?? [];
		this.high = common && shown.length === this.curves.length ? this.highOf(this.total) : null;
		return [joined[0], ...columns];
	}

	/* What all came to at most, which their means do not show; of a part of them it is not known. */
	highOf(total) {
		this.totalHigh ??= this.data.totalHigh(this.panel);
		return this.totalHigh && total.map((value, i) => value === null ? null : Math.max(value, this.totalHigh[i] ?? value));
	}

	/* A chart without lines: all that uPlot needs are two moments. */
	frame() {
		return [[this.view.begin, this.view.end], [null, null]];
	}

	yRange() {
		if (this.isHeat)
			return [0, this.panel.lines.length];
		if (this.isTimeline)
			return [-this.lanes, 0];
		const {from, to} = this.view;
		let most = 0, least = 0;
		this.lines.forEach((line, i) => {
			if (this.isHidden(i))
				return;
			const s = rangeStatistics(line, from, to);
			most = Math.max(most, s.max ?? 0);
			least = Math.min(least, s.min ?? 0);
		});
		if (this.isStacked)
			most = this.stackMost(from, to);
		for (const level of this.panel.levels ?? [])
			if (level.stretch)
				most = Math.max(most, level.value);
		if (this.panel.y_most)
			most = this.panel.y_most;
		if (most <= least)
			most = least + (this.panel.unit === "bytes" ? 1024 : 1);
		return [least, most + (most - least) * 0.07];
	}

	stackMost(from, to) {
		const times = this.u ? this.u.data[0] : this.lines[0]?.times ?? [];
		let most = 0;
		for (let i = Math.max(lowerBound(times, from) - 1, 0); i < times.length && times[i] <= to; i++)
			most = Math.max(most, (this.high ?? this.total)[i] ?? 0);
		return most;
	}

	/* ---- what is lit up ---- */

	isLit(key, i) {
		const light = this.view.light;
		if (!light)
			return false;
		if (light.panel !== undefined)
			return light.panel === this.panel.id && light.line === i && !this.isTimeline;
		return light.process !== undefined ? key.process === light.process : key.group !== undefined && key.group === light.group;
	}

	get someLit() {
		const keys = this.isTimeline ? this.panel.spans : this.curves;
		return keys.some((key, i) => this.isLit(key, i));
	}

	applyLight() {
		const some = this.someLit;
		this.curves.forEach((key, i) => {
			const lit = this.isLit(key, i);
			const series = this.u?.series[i + 1];
			if (series && this.hasCurves) {
				series.alpha = some && !lit ? 0.18 : 1;
				series.width = lit && !this.isStacked ? 2.5 : this.isStacked ? 0.75 : 1.5;
			}
			this.rows[i]?.classList.toggle("lit", lit);
		});
		this.figure.classList.toggle("lit", some);
	}

	/* ---- building ---- */

	build() {
		this.look = colors();
		const data = this.load();
		this.u = new uPlot(this.options(), data, this.plot);
		this.u.over.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
		this.u.over.addEventListener("mouseleave", () => this.view.point(null, this));
		this.touch(this.u.over);
		this.applyLight();
		this.updateLegend();
		if (some(this.view.light))
			this.u.redraw(false);
	}

	destroy() {
		this.u?.destroy();
		this.u = null;
	}

	width() {
		return Math.max(Math.floor(this.plot.clientWidth), 160);
	}

	options() {
		return {
			width: this.width(),
			height: this.height,
			padding: [this.top, RIGHT, 0, 0],
			legend: {show: false},
			scales: {
				x: {time: false, range: () => [this.view.from, this.view.to]},
				y: {range: () => this.yRange()},
			},
			axes: [this.timeAxis(), this.valueAxis()],
			series: [{}, ...this.series()],
			bands: this.bands(),
			cursor: this.cursorOptions(),
			hooks: {
				drawClear: [() => this.paintBehind()],
				drawAxes: [() => this.paintForm()],
				draw: [() => this.paintAbove()],
				setSelect: [() => this.selected()],
				setCursor: [() => this.pointed()],
			},
		};
	}

	timeAxis() {
		const {muted, grid, axis, font} = this.look;
		return {
			stroke: muted, font: `11px ${font}`, size: AXIS_HEIGHT, gap: 4, space: 68, incrs: timeSteps,
			grid: {stroke: grid, width: 1, show: this.hasCurves}, ticks: {stroke: axis, width: 1, size: 4},
			border: {show: true, stroke: axis, width: 1},
			values: (u, splits, axisIndex, space, step) => splits.map((s) => moment(s, step)),
		};
	}

	valueAxis() {
		const {muted, grid, font} = this.look;
		const rows = this.panel.lines.length;
		const plain = {stroke: muted, font: `11px ${font}`, size: AXIS_WIDTH, gap: 6, ticks: {show: false}};
		if (this.isTimeline)
			return {...plain, grid: {show: false}, values: () => [], splits: () => []};
		if (this.isHeat) {
			const every = Math.max(1, Math.ceil(rows / Math.max(1, Math.floor(this.height / 16))));
			const marked = this.panel.lines.map((_, i) => i).filter((i) => i % every === 0);
			return {
				...plain, grid: {show: false}, splits: () => marked.map((i) => i + 0.5),
				values: () => marked.map((i) => rowName(this.panel.lines[i].name)),
			};
		}
		const isTime = this.panel.unit === "seconds" && !this.panel.per_second;
		return {
			...plain, space: 32, incrs: isTime ? timeSteps : valueSteps(this.panel), grid: {stroke: grid, width: 1},
			values: (u, splits, axisIndex, space, step) => splits.map((s) => isTime ? moment(s, step) : s === 0 ? "0" : format(s, this.panel)),
		};
	}

	series() {
		if (!this.hasCurves)
			return [{show: false}];
		const first = this.shown[0];
		return this.curves.map((key, i) => ({
			label: key.name,
			show: !this.isHidden(i),
			stroke: () => this.colorOf(key),
			width: this.isStacked ? 0.75 : 1.5,
			dash: key.dashed ? [6, 4] : undefined,
			paths: key.held ? uPlot.paths.stepped({align: 1}) : undefined,
			fill: this.isStacked && i === first ? () => this.fillColor(i) : undefined,
			points: {show: (u, s, from, to) => to - from < 60 && this.isLonely(i), size: 4},
			spanGaps: false,
		}));
	}

	/* Single points between gaps would be invisible as a line. */
	isLonely(i) {
		return !this.isStacked && this.lines[i].mean.filter((v) => v !== null).length < 3;
	}

	fillColor(i) {
		const key = this.curves[i];
		return withAlpha(this.colorOf(key), this.someLit && !this.isLit(key, i) ? 0.12 : 0.72);
	}

	bands() {
		if (!this.isStacked)
			return undefined;
		const {shown} = this;
		return shown.slice(1).map((i, k) => ({series: [i + 1, shown[k] + 1], fill: () => this.fillColor(i)}));
	}

	/* ---- painting ---- */

	paintBehind() {
		paint.paintPhases(this.u, this.phases, this.look);
		const focus = this.view.focus;
		if (focus && focus.panel === this.panel.id)
			paint.paintFocus(this.u, focus, this.look);
	}

	paintForm() {
		const {u, panel} = this;
		const someLit = this.someLit;
		if (this.isHeat)
			paint.paintHeat(u, this.lines, panel.y_most || 1);
		else if (this.isTimeline)
			paint.paintTimeline(u, panel.spans, (span) => this.lines[span.line], this.thickest(), this.look,
				(span) => someLit && !this.isLit(span));
		else if (this.isStacked)
			this.high && paint.paintRange(u, {times: u.data[0], low: this.total, high: this.high}, lineColor(-1), someLit);
		else
			this.lines.forEach((line, i) => this.isHidden(i) ||
				paint.paintRange(u, line, this.colorOf(this.curves[i]), someLit && !this.isLit(this.curves[i], i)));
	}

	/* Of one process: all others together would make each of them a hair. */
	thickest() {
		return Math.max(...this.panel.lines.filter((key) => some(key.process)).map((key) => key.most ?? 0), 1e-9);
	}

	paintAbove() {
		const {u, look} = this;
		paint.paintEvents(u, this.ofNode(this.data.events), look);
		paint.paintPhaseNames(u, this.phases, nrLanes(this.phases), look);
		if (!this.hasCurves)
			return;
		paint.paintLevels(u, this.panel.levels ?? [], look);
		paint.paintPeaks(u, this.panel.peaks ?? [], look);
	}

	/* ---- pointer ---- */

	cursorOptions() {
		return {
			y: false,
			points: {show: this.hasCurves && !this.isStacked && this.panel.lines.length <= 8, size: 6},
			drag: {x: true, y: false, setScale: false},
			bind: {
				dblclick: () => () => {
					this.view.reset();
					return null;
				},
				mousedown: (u, target, zoom) => (event) => {
					if (event.button === 0 && event.shiftKey)
						this.startPan(event);
					else if (event.button === 0)
						zoom(event);
					return null;
				},
			},
		};
	}

	selected() {
		const {left, width} = this.u.select;
		if (width < 4)
			return;
		const from = this.u.posToVal(left, "x"), to = this.u.posToVal(left + width, "x");
		this.u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
		this.view.show(from, to);
	}

	pointed() {
		if (this.quiet || !this.u)
			return;
		const {left, top} = this.u.cursor;
		if (left === undefined || left === null || left < 0)
			return;
		this.pointerTop = top;
		this.view.point(this.u.posToVal(left, "x"), this);
	}

	startPan(event) {
		const {from, to} = this.view;
		const perPixel = (to - from) / this.u.over.clientWidth;
		const move = (now) => {
			const by = (event.clientX - now.clientX) * perPixel;
			this.view.show(from + by, to + by);
		};
		const stop = () => {
			removeEventListener("mousemove", move);
			removeEventListener("mouseup", stop);
		};
		addEventListener("mousemove", move);
		addEventListener("mouseup", stop);
	}

	/* The plain wheel scrolls the page; with Ctrl it zooms, with Shift (or sideways) it pans. */
	wheel(event) {
		const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
		if (!event.ctrlKey && !event.metaKey && !sideways)
			return;
		/* One that belongs to a scroll in progress cannot be held back. */
		if (event.cancelable)
			event.preventDefault();
		if (sideways) {
			this.view.pan((event.deltaX || event.deltaY) / this.u.over.clientWidth);
			return;
		}
		const at = this.u.posToVal(event.clientX - this.u.over.getBoundingClientRect().left, "x");
		this.view.zoom(event.deltaY > 0 ? WHEEL_STEP : 1 / WHEEL_STEP, at);
	}

	/* One finger points, two zoom and pan; up and down the page scrolls. */
	touch(over) {
		let pinch = null;
		const timeAt = (touch) => this.u.posToVal(touch.clientX - over.getBoundingClientRect().left, "x");
		over.addEventListener("touchstart", (event) => {
			const [a, b] = event.touches;
			pinch = b ? [timeAt(a), timeAt(b)] : null;
			if (!b)
				this.view.point(timeAt(a));
		}, {passive: true});
		over.addEventListener("touchmove", (event) => {
			const [a, b] = event.touches;
			if (!b) {
				this.view.point(timeAt(a));
				return;
			}
			if (!pinch)
				return;
			if (event.cancelable)
				event.preventDefault();
			const box = over.getBoundingClientRect();
			const xa = (a.clientX - box.left) / box.width, xb = (b.clientX - box.left) / box.width;
			if (Math.abs(xa - xb) < 0.02)
				return;
			const length = (pinch[1] - pinch[0]) / (xb - xa);
			if (length > 0)
				this.view.show(pinch[0] - xa * length, pinch[0] + (1 - xa) * length);
		}, {passive: false});
	}

	/* ---- the legend ---- */

	buildLegend() {
		const legend = this.figure.querySelector(".legend");
		this.rows = [];
		this.cells = [];
		this.here = el("p", {class: "pointed"});
		this.hereHead = el("th", {scope: "col", class: "here-head"}, "last");
		const head = el("tr", {}, el("th", {scope: "col", class: "unit"}, this.panel.per_second ? "per second" : this.panel.quantity ?? ""), this.hereHead,
			...LEGEND_COLUMNS.map((name) => el("th", {scope: "col"}, name)));
		const body = el("tbody");
		this.legendOrder().forEach((i) => body.append(this.legendRow(i)));
		legend.replaceChildren();
		if (this.isHeat)
			legend.append(this.heatScale());
		const scroll = el("div", {class: "legend-scroll"}, el("table", {}, el("thead", {}, head), body));
		if (!this.hasCurves)
			scroll.style.maxHeight = `${Math.max(this.height - 30, 120)}px`;
		legend.append(...body.children.length ? [scroll] : [], this.here);
	}

	/* The first line of a stack is at the bottom, and so it is in the legend. Of lives, those with a colour. */
	legendOrder() {
		const order = this.curves.map((_, i) => i);
		if (this.isTimeline)
			return order.filter((i) => this.curves[i].color >= 0).slice(0, TIMELINE_ROWS);
		if (this.isHeat && order.length > MANY_ROWS)
			return []; // the pointer tells which row it is on
		return this.isStacked || this.isHeat ? order.reverse() : order;
	}

	/* What a row of the legend lights up: its process wherever it is drawn, else the line alone. */
	lightOf(i) {
		const {process} = this.curves[i];
		return some(process) ? {process, passing: true} : {panel: this.panel.id, line: i, passing: true};
	}

	legendRow(i) {
		const key = this.curves[i];
		const swatch = el("span", {class: key.dashed ? "swatch dashed" : "swatch"});
		const name = el("button", {type: "button", class: "line-name", "aria-pressed": "true", title: key.name}, swatch,
			el("span", {}, key.name));
		const cells = ["here", ...LEGEND_COLUMNS].map((kind) => el("td", {class: kind}));
		const row = el("tr", {}, el("th", {scope: "row"}, name), ...cells);
		this.rows[i] = row;
		this.cells[i] = {swatch, name, cells};
		this.showHidden(i);
		name.addEventListener("click", () => this.toggle(i));
		const {view} = this;
		row.addEventListener("mouseenter", () => view.light && !view.light.passing || view.shine(this.lightOf(i)));
		row.addEventListener("mouseleave", () => view.light?.passing && view.shine(null));
		return row;
	}

	showHidden(i) {
		this.cells[i].name.setAttribute("aria-pressed", String(!this.isHidden(i)));
		this.rows[i].classList.toggle("off", this.isHidden(i));
	}

	heatScale() {
		this.scale = el("canvas", {class: "heat-scale", width: 200, height: 1, role: "img", "aria-label": "colours from 0 to the most"});
		return el("p", {class: "heat-key"}, "0", this.scale, format(this.panel.y_most || 1, this.panel));
	}

	toggle(i) {
		if (!this.hasCurves)
			return;
		const {name} = this.curves[i];
		if (!this.hidden.delete(name))
			this.hidden.add(name);
		this.showHidden(i);
		this.rebuild();
	}

	paintSwatches() {
		this.cells.forEach(({swatch}, i) => {
			const color = this.colorOf(this.curves[i]);
			swatch.style.borderColor = color;
			swatch.style.background = this.curves[i].dashed ? "transparent" : color;
			swatch.hidden = this.isHeat;
		});
		const context = this.scale?.getContext("2d");
		for (let x = 0; context && x < 200; x++) {
			context.fillStyle = heatColor(x / 199);
			context.fillRect(x, 0, 1, 1);
		}
	}

	/* The legend says once that all is per second. */
	short(value) {
		return format(value, {...this.panel, per_second: false});
	}

	/* Of all of it the report knows mean and most better than the points: they are those of the title. */
	statisticsOf(line, key) {
		const seen = rangeStatistics(line, this.view.from, this.view.to);
		const known = this.view.whole && key.of.length === 1;
		/* What came since knows no better than its points; the most was known before. */
		if (known && this.data.hasMore(key.node))
			return {...seen, max: Math.max(key.most ?? seen.max, seen.max)};
		return known ? {...seen, mean: key.average ?? seen.mean, max: key.most ?? seen.max} : seen;
	}

	updateLegend() {
		this.paintSwatches();
		this.statistics = this.lines.map((line, i) => this.statisticsOf(line, this.curves[i]));
		this.cells.forEach(({cells}, i) => LEGEND_COLUMNS.forEach((kind, k) => {
			cells[k + 1].textContent = this.short(this.statistics[i]?.[kind]);
		}));
		this.updateHere();
	}

	/* The value of a line at a moment; null where it has none. */
	valueAt(i, time) {
		const {times, mean} = this.lines[i];
		const k = nearest(times, time);
		if (k < 0)
			return null;
		const step = this.data.nodes[this.curves[i].node]?.step_s || Infinity;
		return Math.abs(times[k] - time) > 2 * step ? null : mean[k];
	}

	updateHere() {
		const time = this.view.cursor;
		const length = this.view.to - this.view.from;
		this.hereHead.textContent = time === null ? "last" : momentIn(time, length);
		this.cells.forEach(({cells}, i) => {
			if (this.lines?.[i])
				cells[0].textContent = this.short(time === null ? this.statistics[i].last : this.valueAt(i, time));
		});
		this.here.textContent = time === null ? "" : this.hereText(time);
	}

	/* What is under the pointer that no line tells: an event, a row of the heat map, a process. */
	hereText(time) {
		const close = (this.view.to - this.view.from) * 6 / Math.max(this.width(), 1);
		const words = this.ofNode(this.data.events).filter((e) => Math.abs(e.time_s - time) < close).map((e) => e.label);
		const phase = phasesAt(this.phases, time);
		if (phase)
			words.unshift(phase);
		const own = this.view.pointer === this && this.pointerTop >= 0 && this.u;
		if (own && this.isHeat) {
			const row = Math.floor(this.u.posToVal(this.pointerTop, "y"));
			if (this.lines[row])
				words.unshift(`${this.curves[row].name}: ${format(this.valueAt(row, time), this.panel)}`);
		}
		if (own && this.isTimeline)
			words.unshift(...this.spansAt(time, -this.u.posToVal(this.pointerTop, "y")));
		return words.slice(0, 3).join(" · ");
	}

	spansAt(time, lane) {
		const close = (this.view.to - this.view.from) * 3 / Math.max(this.width(), 1);
		const span = this.panel.spans.find((s) => s.lane === Math.floor(lane) && s.from_s <= time + close &&
			(s.to_s ?? Infinity) >= time - close);
		if (!span)
			return [];
		const value = this.lines[span.line] ? `, ${format(this.valueAt(span.line, time), this.panel)}` : "";
		const ended = span.to_s === null || span.to_s === undefined ? "not ended" : momentIn(span.to_s, this.view.to - this.view.from);
		return [`${span.name}: ${momentIn(span.from_s, this.view.to - this.view.from)} – ${ended}${value}`];
	}

	/* ---- being told ---- */

	/* Draws again now when it is near the screen, else when it comes there. */
	refresh(how) {
		if (!this.near || this.figure.hidden) {
			this.stale = true;
			return;
		}
		if (this.hasOtherCurves) {
			this.makeCurves();
			how = "rebuild";
		}
		if (!this.u || how === "rebuild" || (how === "data" && this.u.height !== this.height)) {
			this.destroy();
			this.build();
		} else {
			if (how === "data")
				this.u.setData(this.load(), false);
			this.u.setScale("x", {min: this.view.from, max: this.view.to});
			this.applyLight();
			this.u.redraw(how !== "light");
			this.updateLegend();
		}
		this.stale = false;
	}

	/* The same panel out of a newer text. What somebody did to it stays: hidden lines, the pointer, focus, where its legend was scrolled to. */
	replace(panel) {
		const {shape} = this;
		this.panel = panel;
		this.totalHigh = undefined;
		this.moments = new WeakMap();
		this.laned = new WeakMap();
		this.setName();
		this.chooseCurves();
		if (this.shape === shape)
			return "data";
		this.keepingLegend(() => this.buildLegend());
		return "rebuild";
	}

	keepingLegend(build) {
		const legend = this.figure.querySelector(".legend");
		const focused = legend.contains(document.activeElement) ? document.activeElement.title : null;
		const down = legend.querySelector(".legend-scroll")?.scrollTop ?? 0;
		if (this.view.light?.passing && legend.matches(":hover"))
			this.view.shine(null);
		build();
		const scroll = legend.querySelector(".legend-scroll");
		if (scroll)
			scroll.scrollTop = down;
		if (focused !== null)
			this.cells.filter(Boolean).find(({name}) => name.title === focused)?.name.focus({preventScroll: true});
	}

	/* Built anew, in the same place and with the pointer where it was. */
	renew() {
		const {left, top} = this.u?.cursor ?? {left: -10};
		this.plot.style.minHeight = `${this.plot.clientHeight}px`;
		this.rebuild();
		this.plot.style.minHeight = "";
		if (left >= 0 && this.u)
			this.u.setCursor({left, top}, false);
	}

	rebuild() {
		this.refresh("rebuild");
	}

	show(near) {
		this.near = near;
		if (near && (!this.u || this.stale))
			this.rebuild();
	}

	resize() {
		if (this.u && this.near && this.u.width !== this.width())
			this.u.setSize({width: this.width(), height: this.height});
		else if (this.u && !this.near)
			this.stale = true;
	}

	cursorMoved(source) {
		if (!this.u || !this.near)
			return;
		if (source !== this) {
			this.quiet = true;
			const time = this.view.cursor;
			const left = time === null || time < this.view.from || time > this.view.to ? -10 : this.u.valToPos(time, "x");
			this.u.setCursor({left, top: left < 0 ? -10 : 0});
			this.quiet = false;
		}
		this.updateHere();
	}
}

