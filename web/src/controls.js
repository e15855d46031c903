/* The bar that stays on top, the keys, and what findings and advice do when they are clicked. */
import {el} from "./tools.js";
import {duration, moment} from "./units.js";
import {toggleTheme} from "./theme.js";

const PAN = 0.2;
const ZOOM = 1.5;
const DEEP_POINTS = 40; /* fewer than so many points of a reduced recording in view: say so */
const KEYS = [
	["drag", "zoom to a range of time"],
	["Shift + drag, Shift + wheel", "move along"],
	["Ctrl + wheel, two fingers", "zoom"],
	["double click, 0", "show all again"],
	["← →", "move along (in a panel)"],
	["↑ ↓, + −", "zoom (in a panel)"],
	["Shift + ← →", "move the pointer (in a panel)"],
	["/", "search processes"],
	["t", "light or dark"],
	["Esc", "put out what is lit up, then show all"],
	["?", "this help"],
];

export function startControls(data, view, panels, table) {
	const bar = document.querySelector(".bar");
	const range = el("output", {class: "range", "aria-live": "polite"});
	const reset = button("Show all", () => view.reset(), {class: "reset"});
	const help = makeHelp();
	bar.append(el("div", {class: "controls"}, nodeChoice(data, view), range, reset,
		button("◐", () => toggleTheme(view), {"aria-label": "Light or dark", title: "Light or dark (t)", class: "icon"}),
		button("?", () => help.showModal(), {"aria-label": "Help", title: "Keys (?)", class: "icon"})));
	const update = () => {
		range.textContent = rangeText(data, view);
		reset.disabled = view.whole;
	};
	view.on("range", update);
	update();
	startKeys(view, panels, table, help);
	startFindings(view, panels);
	startCopy();
}

function button(text, click, attributes = {}) {
	const made = el("button", {type: "button", ...attributes}, text);
	made.addEventListener("click", click);
	return made;
}

/* Where we are; and where the page has less than the recording, how much less. */
function rangeText(data, view) {
	const length = view.to - view.from;
	const step = length > 7200 ? 60 : length > 20 ? 1 : length > 2 ? 0.1 : length > 0.2 ? 0.01 : 0.001;
	const text = view.whole && !data.part ? `all of ${duration(length)}` : `${moment(view.from, step)} – ${moment(view.to, step)}`;
	const coarse = Math.max(0, ...data.nodes.filter((node) => node.reduced).map((node) => node.step_s));
	if (coarse && length / coarse < DEEP_POINTS)
		return `${text} · no finer than ${duration(coarse)} here: the recording has every tick`;
	return coarse ? `${text} · a point is ${duration(coarse)}` : text;
}

function nodeChoice(data, view) {
	if (data.nrHosts < 2)
		return null;
	const options = [[-1, "All nodes together"], [-2, "Each node"],
		...data.nodes.slice(0, data.nrHosts).map((node, i) => [i, node.host || `node ${i + 1}`])];
	const select = el("select", {id: "node", "aria-label": "Nodes"}, ...options.map(([value, name]) => el("option", {value}, name)));
	select.addEventListener("change", () => view.chooseNode(Number(select.value)));
	view.on("nodes", () => { select.value = String(view.node); });
	return select;
}

function makeHelp() {
	const rows = KEYS.map(([key, what]) => el("tr", {}, el("th", {scope: "row"}, key), el("td", {}, what)));
	const close = el("button", {type: "button"}, "Close");
	const dialog = el("dialog", {"aria-label": "Help"}, el("h2", {}, "Mouse and keys"), el("table", {}, el("tbody", {}, ...rows)), close);
	close.addEventListener("click", () => dialog.close());
	document.body.append(dialog);
	return dialog;
}

/* ---- keys ---- */

function startKeys(view, panels, table, help) {
	const anywhere = {
		"/": () => table?.search.focus(),
		"?": () => help.open ? help.close() : help.showModal(),
		t: () => toggleTheme(view),
		0: () => view.reset(),
		Escape: () => escape(view, help),
	};
	const point = (by) => view.point(Math.min(Math.max((view.cursor ?? view.from) + by * (view.to - view.from) / 100, view.from), view.to));
	const inPanel = {
		ArrowLeft: (shift) => shift ? point(-1) : view.pan(-PAN),
		ArrowRight: (shift) => shift ? point(1) : view.pan(PAN),
		ArrowUp: () => view.zoom(1 / ZOOM),
		ArrowDown: () => view.zoom(ZOOM),
		"+": () => view.zoom(1 / ZOOM),
		"=": () => view.zoom(1 / ZOOM),
		"-": () => view.zoom(ZOOM),
		Home: () => view.show(view.begin, view.begin + view.to - view.from),
		End: () => view.show(view.end - view.to + view.from, view.end),
	};
	addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		const typing = event.target.matches?.("input, select, textarea");
		if (typing && event.key !== "Escape")
			return;
		const plot = event.target.closest?.(".plot");
		const act = (plot && inPanel[event.key]) || anywhere[event.key];
		if (!act || (help.open && event.key === "Escape"))
			return;
		event.preventDefault();
		if (typing)
			event.target.blur();
		act(event.shiftKey);
	});
}

function escape(view, help) {
	if (help.open)
		help.close();
	else if (view.light)
		view.shine(null);
	else
		view.reset();
}

/* ---- findings ---- */

/* A finding knows its panel and where in it: there the page goes, with a little of what is around. */
function startFindings(view, panels) {
	for (const link of document.querySelectorAll("a[data-panel]"))
		link.addEventListener("click", (event) => {
			const panel = panels.find((candidate) => candidate.panel.id === link.dataset.panel);
			if (!panel)
				return;
			event.preventDefault();
			goTo(view, panel, link.dataset.from, link.dataset.to);
		});
}

function goTo(view, panel, from, to) {
	if (panel.figure.hidden)
		view.chooseNode(panel.panel.node);
	if (from !== undefined && to !== undefined) {
		const [a, b] = [Number(from), Number(to)];
		const around = Math.max((b - a) * 0.15, (view.end - view.begin) * 0.01);
		view.focusOn({panel: panel.panel.id, from: a, to: b});
		view.show(a - around, b + around);
	}
	panel.figure.scrollIntoView({block: "center"});
	panel.plot.focus({preventScroll: true});
	panel.figure.classList.remove("called");
	requestAnimationFrame(() => panel.figure.classList.add("called"));
}

/* ---- advice ---- */

/* The clipboard where the page may use it; else the lines are selected, ready to be copied. */
function startCopy() {
	for (const block of document.querySelectorAll(".advice pre")) {
		const copy = button("Copy", async () => {
			try {
				await navigator.clipboard.writeText(block.textContent.trim());
				copy.textContent = "Copied";
			} catch {
				getSelection().selectAllChildren(block);
				copy.textContent = "Selected";
			}
			setTimeout(() => { copy.textContent = "Copy"; }, 2000);
		}, {class: "copy"});
		block.before(copy);
	}
}
