/* What panels draw beside the lines of uPlot, straight on its canvas: phases, events, levels, the range behind a
 * reduced line, heat maps and lives of processes. Positions are uPlot's; sizes are CSS pixels times `px`. */
import {bandsIn} from "./phases.js";
import {heatColor, lineColor, withAlpha} from "./theme.js";
import {lowerBound} from "./tools.js";

const px = () => devicePixelRatio || 1;
const DIM = 0.15;
const NAME_PART = 0.7, NAME_LEAST = 110; /* of a bar, for its name; CSS pixels from which on a name may be cut */

/* Calls paint() with everything outside of the plot, and of so much above it, cut off. */
function inside(u, paint, above = 0) {
	const {ctx, bbox} = u;
	ctx.save();
	ctx.beginPath();
	ctx.rect(bbox.left, bbox.top - above, bbox.width, bbox.height + above);
	ctx.clip();
	paint(ctx, bbox);
	ctx.restore();
}

const atX = (u, time) => u.valToPos(time, "x", true);
const atY = (u, value) => u.valToPos(value, "y", true);

function font(ctx, look, size = 11) {
	ctx.font = `${size * px()}px ${look.font}`;
}

/* The text, cut with an ellipsis to fit; "" when not even two letters do. */
function fitted(ctx, text, width) {
	if (ctx.measureText(text).width <= width)
		return text;
	const letters = [...text];
	let n = Math.floor(letters.length * width / ctx.measureText(text).width);
	while (n > 1 && ctx.measureText(`${letters.slice(0, n).join("")}…`).width > width)
		n--;
	return n > 1 ? `${letters.slice(0, n).join("")}…` : "";
}

/* ---- behind the lines ---- */

const bandsOf = (u, laned) => bandsIn(laned, (time) => atX(u, time), u.bbox.left, u.bbox.left + u.bbox.width, px());

/* Outer phases are tinted, and those within them a little. */
export function paintPhases(u, laned, look) {
	inside(u, (ctx, box) => {
		ctx.fillStyle = look.band;
		for (const band of bandsOf(u, laned)) {
			ctx.globalAlpha = (band.odd ? 0.04 : 0.1) / (band.lane ? 3 : 1);
			ctx.fillRect(band.from, box.top, Math.max(band.to - band.from, px()), box.height);
		}
	});
}

export function paintFocus(u, focus, look) {
	inside(u, (ctx, box) => {
		const from = atX(u, focus.from), to = Math.max(atX(u, focus.to), from + 3 * px());
		ctx.fillStyle = look.focus;
		ctx.globalAlpha = 0.14;
		ctx.fillRect(from, box.top, to - from, box.height);
		ctx.globalAlpha = 0.9;
		ctx.fillRect(from, box.top, px(), box.height);
		ctx.fillRect(to - px(), box.top, px(), box.height);
	});
}

/* Between the least and the most of each point: what the mean does not show. Its edges are drawn: a peak of one point
 * would be too thin to be seen as an area. */
export function paintRange(u, line, color, dim) {
	const {times, low, high, mean} = line;
	if (low === mean)
		return;
	inside(u, (ctx) => {
		ctx.fillStyle = withAlpha(color, dim ? 0.05 : 0.22);
		ctx.strokeStyle = withAlpha(color, dim ? 0.08 : 0.5);
		ctx.lineWidth = 0.75 * px();
		for (let i = 0; i < times.length;) {
			if (low[i] === null || high[i] === null) {
				i++;
				continue;
			}
			let end = i;
			while (end < times.length && low[end] !== null && high[end] !== null)
				end++;
			ctx.beginPath();
			for (let k = i; k < end; k++)
				ctx.lineTo(atX(u, times[k]), atY(u, high[k]));
			for (let k = end - 1; k >= i; k--)
				ctx.lineTo(atX(u, times[k]), atY(u, low[k]));
			ctx.fill();
			ctx.stroke();
			i = end;
		}
	});
}

/* ---- above them ---- */

export const LANE_HEIGHT = 14; /* CSS pixels */

/* In the strip above the plot, where nothing else stands: a row for each lane. */
export function paintPhaseNames(u, laned, lanes, look) {
	const height = LANE_HEIGHT * px();
	inside(u, (ctx, box) => {
		font(ctx, look, 10.5);
		ctx.textBaseline = "middle";
		ctx.textAlign = "left";
		for (const {from, to, lane, odd, name} of bandsOf(u, laned)) {
			const top = box.top - (lanes - lane) * height;
			ctx.globalAlpha = odd ? 0.12 : 0.24;
			ctx.fillStyle = look.band;
			ctx.fillRect(from, top, Math.max(to - from, px()), height - px());
			ctx.globalAlpha = 1;
			const text = fitted(ctx, name, to - from - 6 * px());
			ctx.fillStyle = look.text;
			if (text)
				ctx.fillText(text, from + 3 * px(), top + height / 2);
		}
	}, lanes * height);
}

const APART = 7; /* CSS pixels: closer events are one line */

export function paintEvents(u, events, look) {
	inside(u, (ctx, box) => {
		ctx.strokeStyle = ctx.fillStyle = look.mark;
		ctx.lineWidth = px();
		let last = -Infinity;
		for (const event of events) {
			const x = Math.round(atX(u, event.time_s)) + 0.5;
			if (x < box.left || x > box.left + box.width || x < last + APART * px())
				continue;
			last = x;
			ctx.setLineDash([2 * px(), 3 * px()]);
			ctx.beginPath();
			ctx.moveTo(x, box.top);
			ctx.lineTo(x, box.top + box.height);
			ctx.stroke();
			ctx.setLineDash([]);
			ctx.beginPath();
			ctx.moveTo(x - 4 * px(), box.top);
			ctx.lineTo(x + 4 * px(), box.top);
			ctx.lineTo(x, box.top + 6 * px());
			ctx.fill();
		}
	});
}

export function paintLevels(u, levels, look) {
	inside(u, (ctx, box) => {
		font(ctx, look);
		for (const level of levels) {
			const y = atY(u, level.value);
			if (y < box.top - 1 || y > box.top + box.height)
				continue;
			ctx.strokeStyle = look.level;
			ctx.lineWidth = 1.25 * px();
			ctx.setLineDash([6 * px(), 4 * px()]);
			ctx.beginPath();
			ctx.moveTo(box.left, y);
			ctx.lineTo(box.left + box.width, y);
			ctx.stroke();
			ctx.setLineDash([]);
			const below = y - box.top < 16 * px();
			label(ctx, look, level.label, box.left + box.width - 6 * px(), y + (below ? 4 : -4) * px(),
				"right", below ? "top" : "bottom", look.level);
		}
	});
}

/* Text that stays readable upon whatever is below it. */
function label(ctx, look, text, x, y, align, baseline, color) {
	ctx.textAlign = align;
	ctx.textBaseline = baseline;
	ctx.lineJoin = "round";
	ctx.lineWidth = 3 * px();
	ctx.strokeStyle = look.card;
	ctx.strokeText(text, x, y);
	ctx.fillStyle = color;
	ctx.fillText(text, x, y);
}

export function paintPeaks(u, peaks, look) {
	inside(u, (ctx, box) => {
		font(ctx, look);
		for (const peak of peaks) {
			const x = atX(u, peak.time_s), y = atY(u, peak.value);
			if (x < box.left || x > box.left + box.width || y < box.top - 2 || y > box.top + box.height)
				continue;
			ctx.fillStyle = look.text;
			ctx.beginPath();
			ctx.arc(x, y, 2.5 * px(), 0, 2 * Math.PI);
			ctx.fill();
			const left = x > box.left + box.width - ctx.measureText(peak.text).width - 12 * px();
			label(ctx, look, peak.text, x + (left ? -2 : 2) * px(), Math.max(y - 5 * px(), box.top + 13 * px()),
				left ? "right" : "left", "bottom", look.text);
		}
	});
}

/* ---- forms of their own ---- */

/* Where points begin and end, in pixels: a point stands for the time half way to its neighbours. Those that begin in the same
 * pixel are one: [{from, to, first, end}]. */
function columnsOf(u, times, box) {
	const columns = [];
	const edge = (i) => i <= 0 ? times[0] : i >= times.length ? times[times.length - 1] : (times[i - 1] + times[i]) / 2;
	const begin = Math.max(lowerBound(times, u.scales.x.min) - 1, 0);
	for (let i = begin; i < times.length; i++) {
		const from = Math.floor(atX(u, edge(i))), to = Math.ceil(atX(u, edge(i + 1)));
		if (from > box.left + box.width)
			break;
		const last = columns[columns.length - 1];
		if (to < box.left)
			continue;
		if (last?.from === from) {
			last.to = Math.max(last.to, to);
			last.end = i + 1;
		} else {
			columns.push({from, to, first: i, end: i + 1});
		}
	}
	return columns;
}

function meanOf(values, first, end) {
	let sum = 0, known = 0;
	for (let i = first; i < end; i++)
		if (values[i] !== null) {
			sum += values[i];
			known++;
		}
	return known ? sum / known : null;
}

/* Rows of colour, the first at the bottom; y runs from 0 to the number of rows. */
export function paintHeat(u, lines, most) {
	const shades = new Map(), columns = new Map();
	const shade = (value) => {
		const step = Math.round(Math.min(Math.max(value, 0), 1) * 255);
		if (!shades.has(step))
			shades.set(step, heatColor(step / 255));
		return shades.get(step);
	};
	inside(u, (ctx, box) => {
		lines.forEach(({times, mean}, row) => {
			const top = Math.round(atY(u, row + 1)), bottom = Math.round(atY(u, row));
			const height = Math.max(bottom - top - (bottom - top > 5 * px() ? px() : 0), 1);
			if (!columns.has(times))
				columns.set(times, columnsOf(u, times, box));
			for (const {from, to, first, end} of columns.get(times)) {
				const value = meanOf(mean, first, end);
				if (value === null)
					continue;
				ctx.fillStyle = shade(value / most);
				ctx.fillRect(from, top, Math.max(to - from, 1), height);
			}
		});
	});
}

/* Lives: a thin bar from birth to death, as thick as the process was busy at the time. */
export function paintTimeline(u, spans, lineOf, most, look, isDim) {
	inside(u, (ctx, box) => {
		for (const span of spans) {
			const top = atY(u, -span.lane), bottom = atY(u, -span.lane - 1);
			const from = Math.max(atX(u, span.from_s), box.left - 2);
			const to = Math.min(atX(u, span.to_s ?? u.scales.x.max), box.left + box.width + 2);
			if (to < box.left || from > box.left + box.width)
				continue;
			const middle = (top + bottom) / 2, room = Math.max(bottom - top - px(), px());
			ctx.globalAlpha = isDim(span) ? DIM : 1;
			ctx.fillStyle = lineColor(span.color);
			ctx.fillRect(from, middle - 0.75 * px(), Math.max(to - from, px()), Math.min(1.5 * px(), room));
			const line = lineOf(span);
			if (line)
				paintThickness(u, ctx, line, span, middle, room / 2, most);
		}
		ctx.globalAlpha = 1;
		paintSpanNames(u, ctx, box, spans, look, isDim);
	});
}

function paintThickness(u, ctx, line, span, middle, room, most) {
	const {times, mean} = line;
	const half = (k) => Math.max(Math.min(mean[k] / most, 1) * room, 0.75);
	const inSpan = (k) => mean[k] !== null && times[k] >= span.from_s && times[k] <= (span.to_s ?? Infinity);
	for (let i = 0; i < times.length; i++) {
		if (!inSpan(i))
			continue;
		let end = i;
		ctx.beginPath();
		for (; end < times.length && inSpan(end); end++)
			ctx.lineTo(atX(u, times[end]), middle - half(end));
		for (let k = end - 1; k >= i; k--)
			ctx.lineTo(atX(u, times[k]), middle + half(k));
		ctx.fill();
		i = end;
	}
}

/* A name stands at the beginning of its bar where the lane is high enough, and leaves a part of the bar to be seen; it is
 * cut only where enough of it remains to tell who it is. */
function paintSpanNames(u, ctx, box, spans, look, isDim) {
	const lane = atY(u, -1) - atY(u, 0);
	if (lane < 11 * px())
		return;
	font(ctx, look, 10);
	const next = new Map();
	for (const span of [...spans].sort((a, b) => b.from_s - a.from_s)) {
		const from = Math.max(atX(u, span.from_s), box.left) + 4 * px();
		const end = Math.min(next.get(span.lane) ?? Infinity, atX(u, span.to_s ?? u.scales.x.max), box.left + box.width);
		const room = (end - from) * NAME_PART;
		const text = room > NAME_LEAST * px() || ctx.measureText(span.name).width <= room ? fitted(ctx, span.name, room) : "";
		next.set(span.lane, from);
		if (!text || isDim(span))
			continue;
		const middle = (atY(u, -span.lane) + atY(u, -span.lane - 1)) / 2;
		ctx.globalAlpha = 0.82;
		ctx.fillStyle = look.card;
		ctx.fillRect(from - 2 * px(), middle - 6 * px(), ctx.measureText(text).width + 4 * px(), 12 * px());
		ctx.globalAlpha = 1;
		ctx.fillStyle = look.text;
		ctx.textAlign = "left";
		ctx.textBaseline = "middle";
		ctx.fillText(text, from, middle);
	}
}
