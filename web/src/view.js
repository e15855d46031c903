/* What all panels share: the range of time in view, the moment under the pointer, and what is lit up.
 * Panels ask to be told; whoever changes something calls a function here, never a panel. */

const LEAST_S = 1e-3;
const SAME_S = 1e-6; /* what sums of times lose */

export function makeView(begin, end) {
	const listeners = {range: [], grown: [], cursor: [], light: [], nodes: [], theme: []};
	const tell = (what, ...words) => {
		for (const listener of listeners[what])
			listener(...words);
	};

	const view = {
		begin,
		end,
		from: begin,
		to: end,
		cursor: null,
		light: null, /* {process} or {group} or {panel, line} */
		focus: null, /* {panel, from, to}: where a finding is to be seen */
		held: false, /* somebody stopped it where it is */
		node: -1, /* index of the node whose panels are shown; -1: all together; -2: each */
		on(what, listener) {
			listeners[what].push(listener);
		},
		get length() {
			return view.to - view.from;
		},
		get whole() {
			return view.from <= view.begin && view.to >= view.end - SAME_S;
		},
		/* Of a job that runs: whether what is new comes into view. So it does where the view ends at the newest moment. */
		get following() {
			return !view.held && view.to >= view.end - SAME_S;
		},
		/* Stays within the run, keeps the length where it can. */
		show(from, to) {
			const {held} = view;
			view.held = false;
			const length = Math.min(Math.max(to - from, LEAST_S), view.end - view.begin);
			from = Math.min(Math.max(from, view.begin), view.end - length);
			if (!held && from === view.from && from + length === view.to)
				return;
			view.from = from;
			view.to = from + length;
			tell("range");
		},
		reset() {
			view.focus = null;
			view.show(view.begin, view.end);
			tell("light");
		},
		/* Of the length in view: -0.5 half of it to the left. */
		pan(share) {
			const by = (view.to - view.from) * share;
			view.show(view.from + by, view.to + by);
		},
		/* Factor below 1: closer. The moment `at` stays where it is. */
		zoom(factor, at = (view.from + view.to) / 2) {
			const length = (view.to - view.from) * factor;
			const share = (at - view.from) / (view.to - view.from);
			view.show(at - length * share, at + length * (1 - share));
		},
		point(time, source = null) {
			view.cursor = time;
			tell("cursor", source);
		},
		shine(light) {
			view.light = light;
			tell("light");
		},
		focusOn(focus) {
			view.focus = focus;
			tell("light");
		},
		chooseNode(node) {
			view.node = node;
			tell("nodes");
		},
		themeChanged() {
			tell("theme");
		},
		hold() {
			view.held = true;
			tell("range");
		},
		follow() {
			view.held = false;
			const {length} = view;
			view.from = Math.max(view.end - length, view.begin);
			view.to = view.end;
			tell("range");
		},
		/* The run has become longer. A view of all of it stays one, one at its end stays there; any other holds still. */
		grow(end) {
			const {following, whole, length} = view;
			view.end = end;
			if (following) {
				view.from = whole ? view.begin : Math.max(end - length, view.begin);
				view.to = end;
			} else if (view.to > end) {
				view.to = end;
				view.from = Math.min(view.from, end - LEAST_S);
			}
			tell("grown");
		},
	};
	return view;
}
