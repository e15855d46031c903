/* What all panels share: the range of time in view, the moment under the pointer, and what is lit up.
 * Panels ask to be told; whoever changes something calls a function here, never a panel. */

const LEAST_S = 1e-3;

export function makeView(begin, end) {
	const listeners = {range: [], cursor: [], light: [], nodes: [], theme: []};
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
		node: -1, /* index of the node whose panels are shown; -1: all together; -2: each */
		on(what, listener) {
			listeners[what].push(listener);
		},
		get whole() {
			return view.from <= view.begin && view.to >= view.end;
		},
		/* Stays within the run, keeps the length where it can. */
		show(from, to) {
			const length = Math.min(Math.max(to - from, LEAST_S), view.end - view.begin);
			from = Math.min(Math.max(from, view.begin), view.end - length);
			if (from === view.from && from + length === view.to)
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
		resize(newEnd) {
			const all = view.whole;
			view.end = newEnd;
			if (all)
				view.reset();
		},
	};
	return view;
}
