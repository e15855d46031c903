/* The table of processes: sorted, searched, filtered by group and node, a page at a time, since there may be a
 * hundred thousand. A row that is chosen lights up its curves. */
import {el} from "./tools.js";
import {format, momentIn} from "./units.js";

const PAGE_ROWS = 50;
/* What is shown at first, of those that some process has; the rest on demand. */
const FIRST = ["name", "pid", "user", "groups", "node", "start_s", "duration_s", "cpu_s", "cores_mean", "cores_peak",
	"rss_peak_bytes", "pss_peak_bytes", "read_bytes", "write_bytes", "threads_peak", "gpu_memory_peak_bytes"];
/* Columns that say who it is, not how much. */
const OWN = {
	name: {title: "process", text: true},
	pid: {title: "PID"},
	ppid: {title: "parent"},
	command: {title: "command", text: true},
	user: {title: "user", text: true},
	groups: {title: "groups", text: true},
	node: {title: "node", text: true},
	start_s: {title: "start", moment: true},
	end_s: {title: "end", moment: true},
	ended: {title: "ended", text: true},
};

export class ProcessTable {
	constructor(data, view, section) {
		this.data = data;
		this.view = view;
		this.section = section;
		this.page = 0;
		this.all = false;
		this.words = "";
		this.group = "";
		this.node = "";
		this.read();
		this.order = this.columns.find((column) => column.name === "cpu_s") ?? this.usable[0];
		this.descending = true;
		this.build();
		this.arrange();
	}

	/* A newer text of the page: same order, same search, same place. */
	renew() {
		const {name} = this.order;
		this.read();
		this.order = this.columns.find((column) => column.name === name) ?? this.order;
		this.choices.forEach((fill) => fill());
		this.arrange();
		this.turn(0);
	}

	/* Processes get other numbers where there are more of them: the one that is lit up stays it. Before renew(). */
	keepLight() {
		const {light} = this.view;
		if (light?.process === undefined)
			return;
		const at = (name) => this.at[name];
		const row = this.rows.find((own) => own[at("index")] === light.process);
		const {columns, rows} = this.data.processes;
		const own = Object.fromEntries(columns.map((column, i) => [column.name ?? column, i]));
		const same = row && rows.find((other) => ["pid", "node", "start_s"].every((name) => other[own[name]] === row[at(name)]));
		this.view.light = same ? {...light, process: same[own.index]} : null;
	}

	read() {
		const {columns, rows} = this.data.processes;
		this.columns = columns.map((given, at) => {
			const column = typeof given === "string" ? {name: given} : given;
			return {...column, ...OWN[column.name], at};
		});
		this.at = Object.fromEntries(this.columns.map((column) => [column.name, column.at]));
		this.rows = rows;
		const who = (column) => column.name === "name" ? 0 : 1;
		this.usable = this.columns.filter((column) => column.name !== "index" && this.hasValues(column)).sort((a, b) => who(a) - who(b));
	}

	hasValues(column) {
		if (column.name === "node")
			return this.data.nrHosts > 1;
		return this.rows.some((row) => ![null, undefined, ""].includes(row[column.at]) && String(row[column.at]) !== "");
	}

	get shown() {
		if (this.all)
			return this.usable;
		const first = FIRST.map((name) => this.usable.find((column) => column.name === name)).filter(Boolean);
		return first.length > 2 ? first : this.usable;
	}

	/* ---- values ---- */

	text(row, column) {
		const value = row[column.at];
		if (column.name === "node")
			return this.data.nodes[value]?.host ?? String(value ?? "");
		if (column.name === "groups")
			return Array.isArray(value) ? value.join(", ") : value ?? "";
		if (column.name === "pid" || column.name === "ppid")
			return value === null || value === undefined ? "–" : String(value);
		if (column.text)
			return value === null || value === undefined ? "" : String(value);
		if (column.moment)
			return value === null || value === undefined ? "–" : momentIn(value, this.view.end);
		return format(value, column);
	}

	matches(row) {
		if (this.node !== "" && String(row[this.at.node]) !== this.node)
			return false;
		const groups = [row[this.at.groups] ?? []].flat();
		if (this.group && !groups.includes(this.group))
			return false;
		if (!this.words)
			return true;
		const text = ["name", "command", "pid", "user", "groups"].map((name) => row[this.at[name]] ?? "").join(" ").toLowerCase();
		return this.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
	}

	compare(a, b) {
		const column = this.order;
		const x = column.text ? this.text(a, column) : a[column.at], y = column.text ? this.text(b, column) : b[column.at];
		const lacking = (value) => value === null || value === undefined || value === "";
		/* What is not known comes last in any order. */
		if (lacking(x) || lacking(y))
			return lacking(x) - lacking(y);
		const order = column.text ? x.localeCompare(y) : x - y;
		return this.descending ? -order : order;
	}

	/* ---- the page ---- */

	build() {
		this.choices = [];
		this.section.dataset.own = "";
		this.search = el("input", {type: "search", id: "search", placeholder: "Search name, command, PID, user", "aria-label": "Search processes",
			autocomplete: "off", spellcheck: "false"});
		this.search.addEventListener("input", () => this.change({words: this.search.value.trim()}));
		const groups = () => [...new Set(this.rows.flatMap((row) => [row[this.at.groups] ?? []].flat()))].filter(Boolean).sort();
		const hosts = () => this.data.nrHosts > 1 ? this.data.nodes.slice(0, this.data.nrHosts).map((node) => node.host) : [];
		const more = el("button", {type: "button", "aria-pressed": "false"}, "All columns");
		more.addEventListener("click", () => {
			this.all = !this.all;
			more.setAttribute("aria-pressed", String(this.all));
			this.draw();
		});
		this.count = el("span", {class: "count", role: "status"});
		this.back = el("button", {type: "button", "aria-label": "Previous page"}, "‹");
		this.next = el("button", {type: "button", "aria-label": "Next page"}, "›");
		this.back.addEventListener("click", () => this.turn(-1));
		this.next.addEventListener("click", () => this.turn(1));
		this.table = el("table", {class: "processes"});
		/* What stands there is for those without a script. */
		this.section.querySelectorAll(".table-box, .quiet").forEach((element) => element.remove());
		this.section.append(
			el("div", {class: "tools"}, this.search,
				this.choice("group", "All groups", () => groups().map((name) => [name, name])),
				this.choice("node", "All nodes", () => hosts().map((name, i) => [String(i), name])), more,
				el("span", {class: "pages"}, this.count, this.back, this.next)),
			el("div", {class: "table-box", tabindex: "0", role: "region", "aria-label": "Processes"}, this.table));
	}

	choice(what, all, options) {
		const select = el("select", {"aria-label": all});
		let filled = "";
		const fill = () => {
			const given = options();
			if (JSON.stringify(given) === filled)
				return;
			filled = JSON.stringify(given);
			select.hidden = !given.length;
			select.replaceChildren(el("option", {value: ""}, all), ...given.map(([value, name]) => el("option", {value}, name)));
			select.value = given.some(([value]) => value === this[what]) ? this[what] : this[what] = "";
		};
		fill();
		this.choices.push(fill);
		select.addEventListener("change", () => {
			this.change({[what]: select.value});
			if (what === "group")
				this.view.shine(select.value ? {group: select.value} : null);
		});
		return select;
	}

	change(wish) {
		Object.assign(this, wish);
		this.page = 0;
		this.arrange();
	}

	turn(by) {
		const pages = Math.ceil(this.found.length / PAGE_ROWS);
		this.page = Math.min(Math.max(this.page + by, 0), Math.max(pages - 1, 0));
		this.draw();
	}

	arrange() {
		this.found = this.rows.filter((row) => this.matches(row)).sort((a, b) => this.compare(a, b));
		this.draw();
	}

	sortBy(column) {
		if (this.order === column)
			this.descending = !this.descending;
		else
			this.descending = !column.text && !column.moment && column.name !== "pid";
		this.order = column;
		this.page = 0;
		this.arrange();
	}

	draw() {
		const from = this.page * PAGE_ROWS;
		const rows = this.found.slice(from, from + PAGE_ROWS);
		const head = el("tr", {}, ...this.shown.map((column) => this.headCell(column)));
		const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset.key : null;
		this.table.replaceChildren(el("thead", {}, head), el("tbody", {}, ...rows.map((row) => this.row(row))));
		if (focused)
			this.table.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
		const number = (n) => n.toLocaleString("en-US");
		const {total} = this.data.processes;
		const of = this.found.length === this.rows.length && total > this.rows.length ?
			`${number(this.found.length)} shown, of ${number(total)}` : number(this.found.length);
		this.count.textContent = rows.length ? `${number(from + 1)}–${number(from + rows.length)} of ${of}` : "none found";
		this.back.disabled = this.page === 0;
		this.next.disabled = from + PAGE_ROWS >= this.found.length;
	}

	headCell(column) {
		const sorted = column === this.order;
		const button = el("button", {type: "button", "data-key": `head-${column.name}`, title: column.help ?? null}, column.title ?? column.name,
			el("span", {class: "arrow", "aria-hidden": "true"}, sorted ? this.descending ? " ↓" : " ↑" : ""));
		button.addEventListener("click", () => this.sortBy(column));
		return el("th", {scope: "col", class: column.text ? "text" : null,
			"aria-sort": sorted ? this.descending ? "descending" : "ascending" : null}, button);
	}

	row(row) {
		const index = row[this.at.index];
		const lit = this.view.light?.process === index && index !== undefined;
		const element = el("tr", {class: lit ? "lit" : null, "data-process": index});
		for (const column of this.shown) {
			const text = this.text(row, column);
			const cell = el(column.name === "name" ? "th" : "td", {class: column.text ? "text" : null, scope: column.name === "name" ? "row" : null});
			if (column.name === "name") {
				const command = this.at.command === undefined ? "" : row[this.at.command] ?? "";
				const button = el("button", {type: "button", class: "who", "data-key": `row-${index}`, "aria-pressed": String(lit),
					title: command || text}, text);
				cell.append(button);
			} else {
				cell.textContent = text;
			}
			element.append(cell);
		}
		element.addEventListener("click", () => this.view.shine(lit ? null : {process: index}));
		return element;
	}
}
