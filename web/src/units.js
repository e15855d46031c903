/* Numbers for people, as the terminal writes them (src/base/units.c): three digits that matter, IEC for bytes,
 * SI for what is counted in watts, hertz or operations. */

const IEC = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const SI = ["", "k", "M", "G", "T", "P", "E"];
const SI_UNIT = {joules: "J", watts: "W", hertz: "Hz", flop: "FLOP"};
const UNKNOWN = "–";

/* Three significant digits without zeros that say nothing. */
export function number(value) {
	const size = Math.abs(value);
	if (size >= 999.5)
		return Math.round(value).toLocaleString("en-US");
	if (size < 0.0005)
		return "0";
	return String(Number(value.toPrecision(size < 0.01 ? 1 : size < 0.1 ? 2 : 3)));
}

function prefixed(value, base, names, unit, space) {
	let i = 0;
	while (Math.abs(value) >= (base === 1024 ? 1023.5 : 999.5) && i + 1 < names.length) {
		value /= base;
		i++;
	}
	return `${number(value)}${space}${names[i]}${unit}`;
}

export function duration(seconds) {
	if (seconds < 0)
		return `-${duration(-seconds)}`;
	if (seconds === 0)
		return "0s";
	if (seconds < 0.0009995)
		return `${(seconds * 1e6).toFixed(0)}us`;
	if (seconds < 0.9995)
		return `${(seconds * 1e3).toFixed(seconds < 0.00995 ? 1 : 0)}ms`;
	if (seconds < 59.95)
		return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)}s`;
	const s = Math.round(seconds);
	const two = (n) => String(n).padStart(2, "0");
	if (s < 3600)
		return `${Math.floor(s / 60)}m${two(s % 60)}s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
	return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

/* `what`: anything with unit and per_second, as panels and columns have them. */
export function format(value, what) {
	if (value === null || value === undefined || Number.isNaN(value))
		return UNKNOWN;
	const per = what.per_second ? "/s" : "";
	switch (what.unit) {
	case "bytes":
		return prefixed(value, 1024, IEC, "", " ") + per;
	case "ratio":
		return `${number(value * 100)} %`;
	case "seconds":
		return duration(value) + per;
	case "celsius":
		return `${number(value)} °C`;
	case "joules":
	case "watts":
	case "hertz":
	case "flop":
		return prefixed(value, 1000, SI, SI_UNIT[what.unit], " ") + per;
	case "code":
		return String(value);
	default:
		return (Math.abs(value) < 1e6 ? number(value) : prefixed(value, 1000, SI, "", " ").trimEnd()) + per;
	}
}

/* ---- axes ---- */

const STEPS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
	3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

export const timeSteps = STEPS_S;

/* A moment on an axis whose marks are `step` apart: as short as the step allows. */
export function moment(seconds, step) {
	if (seconds < 0)
		return `-${moment(-seconds, step)}`;
	const s = Math.round(seconds * 1000) / 1000;
	const two = (n) => String(Math.floor(n)).padStart(2, "0");
	const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
	if (s < 1 && step < 0.1)
		return s === 0 ? "0" : `${Math.round(s * 1000)}ms`;
	if (s < 60)
		return s === 0 ? "0" : `${s.toFixed(digits)}s`;
	const rest = digits ? (s % 60).toFixed(digits).padStart(3 + digits, "0") : two(Math.round(s) % 60);
	if (s < 3600)
		return step >= 60 ? `${Math.round(s / 60)}m` : `${Math.floor(s / 60)}m${rest}s`;
	const hours = s < 86400 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86400)}d${two((s / 3600) % 24)}h`;
	if (step >= 86400)
		return `${Math.round(s / 86400)}d`;
	if (step >= 3600)
		return s >= 86400 && Math.round(s / 3600) % 24 === 0 ? `${Math.round(s / 86400)}d` : hours;
	return step >= 60 ? `${hours}${two(Math.round(s / 60) % 60)}m` : `${hours}${two((s / 60) % 60)}m${rest}s`;
}

/* A moment that somebody points at, in a view of that length. */
export function momentIn(seconds, length) {
	return seconds < 60 && length < 60 ? `${number(seconds)}s` : moment(seconds, length > 3600 * 4 ? 60 : length > 60 ? 1 : 0.01);
}

/* Steps of the value axis: round in the unit that will be written. */
export function valueSteps(what) {
	const steps = [];
	if (what.unit === "bytes") {
		for (let p = 0; p < 7; p++)
			for (const m of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
				steps.push(m * 1024 ** p);
		return steps;
	}
	for (let e = -6; e < 19; e++)
		for (const m of [1, 2, 2.5, 5])
			steps.push(m * 10 ** e);
	return steps;
}
