/* The page comes with all its text. This adds what moves: panels, the table of processes, the bar on top. */
import {open} from "./data.js";
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
	const note = section.querySelector(".unnamed") ?? section.appendChild(el("p", {class: "quiet unnamed"}));
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
	addEventListener("beforeprint", () => {
		setPrinting(true);
		draw();
	});
	addEventListener("afterprint", () => {
		setPrinting(false);
		draw();
	});
}

function start() {
	const data = open(document.getElementById("data").textContent);
	const view = makeView(data.begin, data.end);
	startTheme(view);
	document.documentElement.dataset.live = "";
	const panels = data.panels.map((panel) => new Panel(data, panel, view, figureOf(panel)));
	const processes = document.getElementById("processes");
	const table = processes && data.processes.rows.length ? new ProcessTable(data, view, processes) : null;

	view.on("range", () => panels.forEach((panel) => panel.refresh("range")));
	view.on("light", () => {
		panels.forEach((panel) => panel.refresh("light"));
		table?.draw();
	});
	view.on("theme", () => panels.forEach((panel) => panel.refresh("rebuild")));
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
	startControls(data, view, panels, table);

	const byPlot = new Map(panels.map((panel) => [panel.figure, panel]));
	const watcher = new IntersectionObserver((entries) => {
		for (const entry of entries)
			byPlot.get(entry.target).show(entry.isIntersecting);
	}, {rootMargin: NEAR});
	const sizes = new ResizeObserver(() => panels.forEach((panel) => panel.resize()));
	for (const panel of panels)
		watcher.observe(panel.figure);
	sizes.observe(document.querySelector("main"));
	startPrinting(panels);
	/* For those who test the page, and the curious. */
	window.tacho = {data, view, panels, table};
}

start();
