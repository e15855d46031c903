/* global PALETTE: the build puts it here, from src/analysis/PALETTE.h */
/* Colours as the style sheet has them, for canvases; and which theme is on: that of the system unless somebody
 * chose, remembered where the browser lets us. Printing is always light. */

const KEY = "tacho-theme";
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function remembered() {
	try {
		return localStorage.getItem(KEY);
	} catch {
		return null;
	}
}

export function isDark() {
	if (printing)
		return false;
	const own = root.dataset.theme;
	return own ? own === "dark" : system.matches;
}

export function startTheme(view) {
	const own = remembered();
	if (own === "dark" || own === "light")
		root.dataset.theme = own;
	system.addEventListener("change", () => view.themeChanged());
}

export function toggleTheme(view) {
	root.dataset.theme = isDark() ? "light" : "dark";
	try {
		localStorage.setItem(KEY, root.dataset.theme);
	} catch { /* a page from a file may have nowhere to remember */ }
	view.themeChanged();
}

export function setPrinting(on) {
	printing = on;
	root.toggleAttribute("data-print", on);
}

export function colors() {
	const style = getComputedStyle(root);
	const get = (name) => style.getPropertyValue(name).trim();
	return {
		text: get("--text"),
		muted: get("--quiet"),
		grid: get("--grid"),
		axis: get("--axis"),
		card: get("--paper"),
		band: get("--band"),
		mark: get("--mark"),
		level: get("--level"),
		focus: get("--focus"),
		others: get("--others"),
		font: get("--font"),
	};
}

/* -1 and what is unknown: the colour of all that has no name of its own. */
export function lineColor(index) {
	const set = isDark() ? PALETTE.dark : PALETTE.light;
	return index >= 0 ? set[index % set.length] : colors().others;
}

/* Light to strong (in the dark: dark to light), for values of 0..1. */
export function heatColor(value) {
	const stops = isDark() ? PALETTE.heatDark : PALETTE.heatLight;
	const at = Math.min(Math.max(value, 0), 1) * (stops.length - 1);
	const i = Math.min(Math.floor(at), stops.length - 2);
	const part = (hex, shift) => (parseInt(hex.slice(1), 16) >> shift) & 255;
	const mix = (shift) => Math.round(part(stops[i], shift) + (part(stops[i + 1], shift) - part(stops[i], shift)) * (at - i));
	return `rgb(${mix(16)},${mix(8)},${mix(0)})`;
}

export function withAlpha(hex, alpha) {
	const n = parseInt(hex.slice(1), 16);
	return `rgba(${n >> 16},${(n >> 8) & 255},${n & 255},${alpha})`;
}
