/* The list of recordings of tacho serve: a field to find some of them, and a newer list every few seconds while one is in
 * progress and somebody looks. */
import {el} from "./tools.js";
import {startTheme} from "./theme.js";
import {inPlace, morph} from "./morph.js";

const EVERY_MS = 5000;

export function startIndex(list) {
	startTheme({themeChanged() {}});
	const filter = makeFilter(list);
	/* In an empty list the first one is waited for. */
	const waits = () => list.querySelector(".state.recording") !== null || list.querySelector("tbody tr") === null;
	const seen = () => document.visibilityState === "visible";
	let busy = false;

	async function renew() {
		if (busy)
			return;
		busy = true;
		try {
			const answer = await fetch(location.href.split("#")[0], {cache: "no-store"});
			if (answer.status === 401 || answer.status === 403)
				location.reload();
			const fresh = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
			if (fresh?.body.matches(".index")) {
				inPlace(() => ["header", "main"].forEach((part) => morph(document.querySelector(part), fresh.querySelector(part))));
				filter.apply();
				renewCurves();
			}
		} catch { /* the server may be there again next time */ }
		busy = false;
	}

	/* The old picture stays until the new one is there. */
	function renewCurves() {
		for (const image of list.querySelectorAll("tr:has(.state.recording) .curve img"))
			image.src = `${image.getAttribute("src").split("?")[0]}?at=${Date.now()}`;
	}

	setInterval(() => seen() && waits() && renew(), EVERY_MS);
	document.addEventListener("visibilitychange", () => seen() && renew());
	addEventListener("pageshow", (event) => event.persisted && renew());
	window.tacho = {renew};
}

function makeFilter(list) {
	const field = el("input", {type: "search", id: "filter", placeholder: "Find a command, state or name", "aria-label": "Find recordings", autocomplete: "off",
		spellcheck: "false"});
	const count = el("span", {class: "count", role: "status"});
	const tools = el("div", {class: "tools", "data-own": ""}, field, count);
	const apply = () => {
		const rows = [...list.querySelectorAll("tbody tr")];
		const words = field.value.trim().toLowerCase().split(/\s+/);
		for (const row of rows) {
			const text = [...row.querySelectorAll("td:not(.links)")].map((cell) => cell.textContent).join(" ").toLowerCase();
			row.hidden = !words.every((word) => text.includes(word));
		}
		const found = rows.filter((row) => !row.hidden).length;
		tools.hidden = rows.length < 2;
		count.textContent = field.value.trim() ? found ? `${found} of ${rows.length}` : "none found" : "";
	};
	field.addEventListener("input", apply);
	addEventListener("keydown", (event) => {
		if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && event.target !== field) {
			event.preventDefault();
			field.focus();
		} else if (event.key === "Escape" && event.target === field) {
			field.value = "";
			apply();
		}
	});
	list.prepend(tools);
	apply();
	return {apply};
}
