/* The page of a job that runs (docs/serve.md): what comes by the stream is added to the curves, a newer page replaces this one in
 * its place, and the bar says how things stand. Drawing waits for the screen, for the mouse to be let go, and for a tab to be seen. */
import {el} from "./tools.js";
import {moment} from "./units.js";
import {button, toggleFollowing} from "./controls.js";
import {follow} from "./stream.js";
import {inPlace, morph} from "./morph.js";

const LEAST_MS = 200; /* between two drawings, and ten times what one of them took */
const TELL_MS = 3000; /* a state that lasts no longer is not told to who cannot see it */
const SILENT_MS = 5000; /* before that is said */
const RETRY_MS = 3000;
const FETCH_MS = 120000;
const KEPT_LETTERS = 4e6; /* of events, to add them again to a newer page that does not have them yet */

const HELP = {
	refused: "The server does not accept this browser any more: it was started anew. Open the address that it printed then; this page goes on by itself.",
	gone: "The server does not show this recording any more.",
};

export function startLive(page) {
	const status = makeStatus(page);
	const drawing = makeDrawing(page, status);
	const feed = {drawing, status, pages: 0, kept: []};
	let letters = 0, failures = 0, wanted = false, ended = false, busy = false;

	function keep(news) {
		feed.kept.push(news);
		letters += news.letters;
		while (letters > KEPT_LETTERS)
			letters -= feed.kept.shift().letters;
	}

	/* A newer page is there. What it does not have yet, since it takes time to make, is added again. */
	function replace(text) {
		const fresh = new DOMParser().parseFromString(text, "text/html");
		const data = fresh.getElementById("data")?.textContent;
		if (!data)
			throw new Error("this is not the page of a run");
		page.data.update(data);
		page.table?.keepLight();
		const {live} = page.data;
		const after = BigInt(live?.after ?? 0);
		feed.kept = feed.kept.filter((news) => BigInt(news.id) > after);
		letters = feed.kept.reduce((sum, news) => sum + news.letters, 0);
		if (BigInt(feed.stream.id) < after)
			feed.stream.id = String(after);
		const lacking = feed.kept.length ? BigInt(feed.kept[0].before) > after || !feed.kept.every(fits) : BigInt(feed.stream.id) > after;
		if (lacking) {
			feed.kept = [];
			feed.stream.id = String(after);
		}
		feed.after = after;
		for (const news of feed.kept)
			add(news);
		document.title = fresh.title;
		inPlace(() => {
			for (const part of ["header", ".bar nav", "main", "footer"]) {
				const [old, other] = [document.querySelector(part), fresh.querySelector(part)];
				if (old && other)
					morph(old, other);
			}
			page.renewed();
			drawing.now(live?.state === "ended" || !live);
		});
		feed.pages++;
		if (!live || live.state === "ended")
			end();
		else if (lacking)
			feed.stream.again();
	}

	/* Another node came: the newer page, which must be there soon, has it. */
	function fits(news) {
		return news.data.nodes?.length === page.data.nodes.length;
	}

	function add(news) {
		page.data.append(news.data, Number(feed.after) / 1e9);
	}

	/* In a tab that nobody sees it can wait, and while something is dragged. */
	async function renew() {
		wanted = true;
		if (document.visibilityState === "hidden" || drawing.held || busy)
			return;
		wanted = false;
		busy = true;
		try {
			const text = await fetchPage();
			if (drawing.held)
				wanted = true;
			else
				replace(text);
			failures = 0;
		} catch (error) {
			feed.error = error;
			wanted = true;
			failures++;
		}
		busy = false;
		if (wanted)
			setTimeout(() => wanted && renew(), RETRY_MS * 2 ** Math.min(failures, 5));
	}

	async function fetchPage() {
		const answer = await fetch(location.href.split("#")[0], {cache: "no-store", signal: AbortSignal.timeout(FETCH_MS)});
		if ([401, 403, 404].includes(answer.status))
			status.set(answer.status === 404 ? "gone" : "refused");
		if (!answer.ok)
			throw new Error(`${answer.status} ${answer.statusText}`);
		return answer.text();
	}

	function end() {
		if (ended)
			return;
		ended = true;
		feed.stream.close();
		status.set("ended");
	}

	feed.after = BigInt(page.data.live.after ?? 0);
	status.set(page.data.live.state === "lost" ? "silent" : "recording");
	feed.stream = follow("events", String(feed.after), {
		data(text, id, before) {
			if (BigInt(id) <= feed.after)
				return;
			const news = {id, before, letters: text.length, data: JSON.parse(text)};
			if (fits(news))
				add(news);
			keep(news);
			status.set("recording");
			drawing.soon();
		},
		page: renew,
		lost(text) {
			status.silent(JSON.parse(text).silent_s ?? 0);
		},
		state(state) {
			if (ended)
				return;
			if (state === "over")
				renew();
			else if (state === "open")
				status.connected();
			else
				status.set(state === "waiting" ? "reconnecting" : state);
		},
	});
	drawing.released = () => wanted && renew();
	document.addEventListener("visibilitychange", () => {
		if (document.visibilityState === "hidden")
			return;
		if (wanted)
			renew();
		drawing.catchUp();
	});
	return feed;
}

/* ---- drawing ---- */

function makeDrawing({data, view}, status) {
	let dirty = false, frame = 0, timer = 0, last = 0, cost = 0;
	const hidden = () => document.visibilityState === "hidden";

	function draw(end = Math.max(view.end, data.end)) {
		const begun = performance.now();
		dirty = false;
		frame = 0;
		view.grow(end);
		status.tick();
		drawing.count++;
		last = performance.now();
		cost = last - begun;
	}

	function soon() {
		dirty = true;
		if (frame || timer || hidden() || drawing.held)
			return;
		const wait = last + Math.max(LEAST_MS, 10 * cost) - performance.now();
		const ask = () => {
			timer = 0;
			frame = requestAnimationFrame(() => hidden() || drawing.held ? (frame = 0) : draw());
		};
		if (wait > 0)
			timer = setTimeout(ask, wait);
		else
			ask();
	}

	const drawing = {
		count: 0, /* for tests */
		held: false, /* while something is dragged all stands still */
		released: null,
		soon,
		now(exact) {
			draw(exact ? data.end : undefined);
		},
		catchUp() {
			if (dirty)
				soon();
		},
	};
	document.addEventListener("pointerdown", (event) => { drawing.held = Boolean(event.target.closest?.(".u-over")); }, true);
	for (const name of ["pointerup", "pointercancel"])
		addEventListener(name, () => {
			if (!drawing.held)
				return;
			drawing.held = false;
			/* The panel hears of it behind us. */
			setTimeout(() => {
				drawing.catchUp();
				drawing.released?.();
			});
		}, true);
	return drawing;
}

/* ---- the bar ---- */

const SAID = {recording: "Recording", reconnecting: "Connection lost, reconnecting", silent: "No news from the recorder", ended: "The job has ended"};

function makeStatus({data, view}) {
	const chip = el("span", {class: "status recording"}), text = el("span");
	const spoken = el("p", {class: "sr", role: "status", "aria-live": "polite"});
	const help = el("p", {class: "warning-line", role: "alert", hidden: true});
	const live = button("Live", () => toggleFollowing(view), {class: "follow", title: "Follow what is new (l)"});
	let told = "recording", timer = 0, clock = 0, since = 0, waiting = 0;
	chip.append(el("span", {class: "dot", "aria-hidden": "true"}), text);
	document.querySelector(".controls").prepend(chip, live);
	document.querySelector(".bar").append(spoken, help);

	/* To who cannot see it: what lasts, once. */
	function speak(words) {
		clearTimeout(timer);
		timer = setTimeout(() => {
			if (words !== told)
				spoken.textContent = words;
			told = words;
		}, TELL_MS);
	}

	const status = {
		state: "recording",
		set(state) {
			clearTimeout(waiting);
			if (status.state === state && state !== "ended") {
				status.tick();
				return;
			}
			status.state = state;
			chip.className = `status ${state}`;
			speak(HELP[state] ? "No connection" : SAID[state]);
			help.hidden = !HELP[state];
			help.textContent = HELP[state] ?? "";
			live.hidden = state === "ended";
			clearInterval(clock);
			clock = state === "silent" ? setInterval(status.tick, 1000) : 0;
			status.tick();
		},
		/* Of a busy machine a moment's silence means nothing. */
		silent(seconds) {
			since = Date.now() - 1000 * seconds;
			clearTimeout(waiting);
			waiting = setTimeout(() => status.state !== "ended" && status.set("silent"), Math.max(0, SILENT_MS - 1000 * seconds));
		},
		/* The server is there; whether the recorder is it will say. */
		connected() {
			if (["reconnecting", "refused", "gone"].includes(status.state))
				status.set("recording");
		},
		tick() {
			text.textContent = words(status.state, data, since);
		},
	};
	const following = () => live.setAttribute("aria-pressed", String(view.following));
	view.on("range", following);
	view.on("grown", following);
	following();
	since = Date.now();
	status.tick();
	return status;
}

const silence = (seconds) => seconds < 120 ? `${seconds} s` : moment(seconds, 1);

function words(state, data, since) {
	switch (state) {
	case "recording":
		return `recording · ${moment(Math.floor(data.end), 1) || "0s"}`;
	case "reconnecting":
		return "reconnecting…";
	case "silent":
		return `silent for ${silence(Math.max(0, Math.round((Date.now() - since) / 1000)))}`;
	case "ended":
		return "the job has ended";
	case "refused":
		return "no access";
	default:
		return "not found";
	}
}
