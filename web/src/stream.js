/* What is new of a run, as the server tells it (docs/serve.md), for as long as the page is open: one stream at a time, opened
 * again behind the last event that came. Why a stream could not be opened browsers do not say, so that is asked apart. */

const QUIET_MS = 45000; /* the server says at least that it is alive, three times as often */
const LOOK_MS = 5000;
const FIRST_MS = 500, MOST_MS = 30000;
const WOKEN_MS = 20000;

/* `tell`: {data(text, id, before), page(text), lost(text), state("open", "waiting", "refused", "gone" or "over")}. Gives {id, check, close}. */
export function follow(address, after, tell) {
	let source = null, timer = 0, tries = 0, heard = 0, over = false;
	const place = () => `${address}?after=${encodeURIComponent(stream.id)}`;

	function open() {
		clearTimeout(timer);
		timer = 0;
		source?.close();
		heard = Date.now();
		const own = source = new EventSource(place());
		const on = (name, take) => own.addEventListener(name, (event) => {
			if (own !== source)
				return;
			heard = Date.now();
			tries = 0;
			take?.(event);
		});
		own.onopen = () => {
			if (own !== source)
				return;
			heard = Date.now();
			tell.state("open");
		};
		own.onerror = () => own === source && failed(own.readyState === EventSource.CLOSED);
		on("data", ({data, lastEventId}) => {
			const before = stream.id;
			stream.id = lastEventId || before;
			tell.data(data, stream.id, before);
		});
		on("page", ({data}) => tell.page(data));
		on("lost", ({data}) => tell.lost(data));
		on("alive");
	}

	/* `answered`: the server did not even begin a stream. */
	async function failed(answered) {
		const own = source;
		own.close();
		tell.state("waiting");
		const why = answered ? await ask() : "waiting";
		if (own !== source || over)
			return;
		if (why !== "waiting")
			tell.state(why);
		const most = Math.min(FIRST_MS * 2 ** tries++, MOST_MS);
		timer = setTimeout(open, why === "waiting" ? most * (0.5 + Math.random() / 2) : MOST_MS);
	}

	async function ask() {
		const stop = new AbortController();
		try {
			const answer = await fetch(place(), {headers: {Accept: "text/event-stream"}, cache: "no-store", signal: stop.signal});
			if (answer.status === 401 || answer.status === 403)
				return "refused";
			return answer.status === 404 ? "gone" : answer.status === 204 ? "over" : "waiting";
		} catch {
			return "waiting";
		} finally {
			stop.abort();
		}
	}

	/* Something may have happened to the connection: now is better than later. */
	function again() {
		if (over)
			return;
		tries = 0;
		open();
	}

	function woken() {
		if (timer || source?.readyState === EventSource.CLOSED || Date.now() - heard > WOKEN_MS)
			again();
	}

	const look = setInterval(() => {
		if (!timer && source?.readyState !== EventSource.CLOSED && Date.now() - heard > QUIET_MS) {
			tell.state("waiting");
			again();
		}
	}, LOOK_MS);
	const whenSeen = () => document.visibilityState === "visible" && woken();
	const listening = [[window, "online", again], [window, "pageshow", (event) => event.persisted && again()], [document, "resume", again],
		[document, "visibilitychange", whenSeen], [window, "pagehide", () => source?.close()]];
	for (const [target, name, act] of listening)
		target.addEventListener(name, act);

	const stream = {
		id: after, /* of the last data */
		again,
		close() {
			over = true;
			clearTimeout(timer);
			clearInterval(look);
			source?.close();
			for (const [target, name, act] of listening)
				target.removeEventListener(name, act);
		},
	};
	open();
	return stream;
}
