/* The page comes with all its text. This adds what moves: panels, the table of processes, the bar on top; and of a job that
 * runs, what is new. The list of recordings of tacho serve has the same script. */
import {open} from "./data.js";
import {startIndex} from "./index.js";
import {startLive} from "./live.js";
import {makeView} from "./view.js";
import {Panel} from "./panel.js";
import {ProcessTable} from "./processes.js";
import {startControls} from "./controls.js";
import {setPrinting, startTheme} from "./theme.js";
import {el} from "./tools.js";

const NEAR = "600px 0px"; /* panels are drawn before they are scrolled to */

function figureOf(panel) {
	const there = document.getElementById(`panel-${panel.id}`);
	if (there)
		return there;
	let section = document.getElementById(`section-${panel.section}`);
	if (!section) {
		section = el("section", {class: "panels", id: `section-${panel.section}`}, el("h2", {}, panel.section));
		document.querySelector("main").append(section);
	}
	const figure = el("figure", {class: "panel", id: `panel-${panel.id}`},
		el("figcaption", {}, el("h3", {}, panel.title), el("span", {class: "sub"}, panel.subtitle ?? "")),
		el("div", {class: "body"}, el("div", {class: "plot"}), el("div", {class: "legend"})));
	section.append(figure);
	return figure;
}

/* Of several nodes: the panels of all together, of one, or every one. */
function chooseNodes(data, view, panels) {
	for (const panel of panels) {
		const {node} = panel.panel;
		panel.figure.hidden = data.nrHosts > 1 && view.node !== -2 && node !== view.node;
	}
	for (const section of document.querySelectorAll("section.panels"))
		section.hidden = ![...section.querySelectorAll("figure")].some((figure) => !figure.hidden);
}

/* Under the table of phases, of the panels that are shown. */
function tellUnnamed(panels) {
	const section = document.getElementById("phases");
	if (!section)
		return;
	const note = section.querySelector(".unnamed") ?? section.appendChild(el("p", {class: "quiet unnamed", "data-own": ""}));
	const most = Math.max(0, ...panels.filter((panel) => !panel.figure.hidden).map((panel) => panel.unnamed));
	note.hidden = !most;
	note.textContent = `${most} ${most === 1 ? "phase has" : "phases have"} no band in the plots: more overlap there than there are rows of names for.`;
}

function startPrinting(panels) {
	const draw = () => {
		for (const panel of panels) {
			panel.near = true;
			panel.rebuild();
		}
	};
	let near = new Set();
	addEventListener("beforeprint", () => {
		near = new Set(panels.filter((panel) => panel.near));
		setPrinting(true);
		draw();
	});
	addEventListener("afterprint", () => {
		setPrinting(false);
		draw();
		for (const panel of panels)
			panel.near = near.has(panel);
	});
}

/* Panels are drawn when they come near, and have the width of the page. */
function watchPanels(panels) {
	const byFigure = new Map();
	const near = new IntersectionObserver((entries) => {
		for (const entry of entries)
			byFigure.get(entry.target)?.show(entry.isIntersecting);
	}, {rootMargin: NEAR});
	const sizes = new ResizeObserver(() => panels.forEach((panel) => panel.resize()));
	sizes.observe(document.querySelector("main"));
	return {
		add(panel) {
			byFigure.set(panel.figure, panel);
			near.observe(panel.figure);
		},
		remove(panel) {
			byFigure.delete(panel.figure);
			near.unobserve(panel.figure);
		},
	};
}

function makeTable(data, view) {
	const section = document.getElementById("processes");
	return section && data.processes.rows.length ? new ProcessTable(data, view, section) : null;
}

/* The page's text was replaced by a newer one: what it has of panels and processes goes to those that are there. */
function renewPanels(page, watcher) {
	const {data, view, panels} = page;
	const byId = new Map(panels.map((panel) => [panel.panel.id, panel]));
	const renewed = data.panels.map((panel) => {
		const own = byId.get(panel.id);
		const figure = figureOf(panel);
		byId.delete(panel.id);
		if (own && own.figure === figure && own.panel.form === panel.form) {
			own.stale = true;
			own.wish = own.replace(panel);
			return own;
		}
		if (own)
			byId.set(panel.id, own);
		const made = new Panel(data, panel, view, figure);
		watcher.add(made);
		return made;
	});
	for (const gone of byId.values()) {
		watcher.remove(gone);
		gone.destroy();
	}
	panels.splice(0, panels.length, ...renewed);
}

function startPage() {
	const data = open(document.getElementById("data").textContent);
	const view = makeView(data.begin, data.end);
	startTheme(view);
	document.documentElement.dataset.live = "";
	const panels = data.panels.map((panel) => new Panel(data, panel, view, figureOf(panel)));
	const page = {data, view, panels, table: makeTable(data, view), live: Boolean(data.live && data.live.state !== "ended")};

	const refresh = (how) => panels.forEach((panel) => panel.refresh(how));
	view.on("range", () => refresh("range"));
	view.on("grown", () => refresh("data"));
	view.on("light", () => {
		refresh("light");
		page.table?.draw();
	});
	view.on("theme", () => refresh("rebuild"));
	view.on("cursor", (source) => {
		view.pointer = source;
		panels.forEach((panel) => panel.cursorMoved(source));
	});
	const choose = () => {
		chooseNodes(data, view, panels);
		tellUnnamed(panels);
	};
	view.on("nodes", choose);
	choose();
	const controls = startControls(page);
	const watcher = watchPanels(panels);
	panels.forEach((panel) => watcher.add(panel));
	startPrinting(panels);
	page.renewed = () => {
		renewPanels(page, watcher);
		if (page.table)
			page.table.renew();
		else
			page.table = makeTable(data, view);
		choose();
		controls.renewed();
		panels.forEach((panel) => panel.wish === "rebuild" && panel.near && panel.renew());
	};
	if (page.live)
		page.feed = startLive(page);
	/* For those who test the page, and the curious. */
	window.tacho = page;
}

if (document.getElementById("data"))
	startPage();
else if (document.body.matches(".index"))
	startIndex(document.querySelector("main"));
