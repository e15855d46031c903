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
const LIVE_KEYS = [["l", "follow what is new, or hold still"]];

/* Gives {renewed}, to be called when the page has got a newer text. */
export function startControls(page) {
	const {data, view, live} = page;
	const bar = document.querySelector(".bar");
	const range = el("output", {class: "range", "aria-live": "polite"});
	const reset = button("Show all", () => view.reset(), {class: "reset"});
	const help = makeHelp(live ? [...LIVE_KEYS, ...KEYS] : KEYS);
	const nodes = nodeChoice(data, view);
	bar.append(el("div", {class: "controls"}, nodes.select, range, reset,
		button("◐", () => toggleTheme(view), {"aria-label": "Light or dark", title: "Light or dark (t)", class: "icon"}),
		button("?", () => help.showModal(), {"aria-label": "Help", title: "Keys (?)", class: "icon"})));
	const update = () => {
		range.textContent = rangeText(data, view, live);
		reset.disabled = view.whole;
	};
	view.on("range", () => {
		range.setAttribute("aria-live", "polite");
		update();
	});
	/* Nobody wants to hear each second that the run has become longer. */
	view.on("grown", () => {
		range.setAttribute("aria-live", "off");
		update();
	});
	update();
	startKeys(page, help);
	startFindings(page);
	addCopy();
	return {
		renewed() {
			nodes.fill();
			addCopy();
			update();
		},
	};
}

export function button(text, click, attributes = {}) {
	const made = el("button", {type: "button", ...attributes}, text);
	made.addEventListener("click", click);
	return made;
}

/* Where we are; and where the page has less than the recording, how much less. */
function rangeText(data, view, live) {
	const length = view.to - view.from;
	const step = length > 7200 ? 60 : length > 20 ? 1 : length > 2 ? 0.1 : length > 0.2 ? 0.01 : 0.001;
	/* Of a job that runs its state says how long it is. */
	const all = live ? "" : `all of ${duration(length)}`;
	const text = view.whole && !data.part ? all : `${moment(view.from, step)} – ${moment(view.to, step)}`;
	const coarse = data.nodes.reduce((most, node) => node.reduced ? Math.max(most, node.step_s) : most, 0);
	const point = !coarse ? "" : length / coarse < DEEP_POINTS ? `no finer than ${duration(coarse)} here: the recording has every tick` :
		`a point is ${duration(coarse)}`;
	return [text, point].filter(Boolean).join(" · ");
}

/* Nodes of a run may come later: fill() looks for them. */
function nodeChoice(data, view) {
	const select = el("select", {id: "node", "aria-label": "Nodes"});
	const fill = () => {
		const options = [[-1, "All nodes together"], [-2, "Each node"],
			...data.nodes.slice(0, data.nrHosts).map((node, i) => [i, node.host || `node ${i + 1}`])];
		select.hidden = data.nrHosts < 2;
		if (select.options.length === options.length)
			return;
		select.replaceChildren(...options.map(([value, name]) => el("option", {value}, name)));
		select.value = String(view.node);
	};
	select.addEventListener("change", () => view.chooseNode(Number(select.value)));
	view.on("nodes", () => { select.value = String(view.node); });
	fill();
	return {select, fill};
}

function makeHelp(keys) {
	const rows = keys.map(([key, what]) => el("tr", {}, el("th", {scope: "row"}, key), el("td", {}, what)));
	const close = el("button", {type: "button"}, "Close");
	const dialog = el("dialog", {"aria-label": "Help"}, el("h2", {}, "Mouse and keys"), el("table", {}, el("tbody", {}, ...rows)), close);
	close.addEventListener("click", () => dialog.close());
	document.body.append(dialog);
	return dialog;
}

/* ---- keys ---- */

function startKeys(page, help) {
	const {view} = page;
	const anywhere = {
		"/": () => page.table?.search.focus(),
		"?": () => help.open ? help.close() : help.showModal(),
		t: () => toggleTheme(view),
		0: () => view.reset(),
		...page.live && {l: () => toggleFollowing(view)},
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

export function toggleFollowing(view) {
	if (view.following)
		view.hold();
	else
		view.follow();
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

/* A finding knows its panel and where in it: there the page goes, with a little of what is around. Findings may be others later. */
function startFindings({view, panels}) {
	document.addEventListener("click", (event) => {
		const link = event.target.closest?.("a[data-panel]");
		const panel = link && panels.find((candidate) => candidate.panel.id === link.dataset.panel);
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
function addCopy() {
	for (const block of document.querySelectorAll(".advice pre")) {
		if (block.parentElement.querySelector(".copy"))
			continue;
		const copy = button("Copy", async () => {
			try {
				await navigator.clipboard.writeText(block.textContent.trim());
				copy.textContent = "Copied";
			} catch {
				getSelection().selectAllChildren(block);
				copy.textContent = "Selected";
			}
			setTimeout(() => { copy.textContent = "Copy"; }, 2000);
		}, {class: "copy", "data-own": ""});
		block.before(copy);
	}
}
