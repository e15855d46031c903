/* Makes what is in the page like a newer text of it, and touches only what differs: so focus, selected text, open details and
 * scroll positions stay. What the script made carries data-own and is left alone. */

const KEPT = new Set(["open", "hidden", "tabindex", "data-own"]); /* these are the reader's or the script's */

const isOwn = (node) => node.nodeType === Node.ELEMENT_NODE && node.dataset.own !== undefined;

function keyOf(node) {
	if (node.nodeType !== Node.ELEMENT_NODE)
		return null;
	return node.id || node.dataset.key || null;
}

/* One that was asked for anew has a query behind its address. */
const isSamePicture = (old, name, value) => name === "src" && old.getAttribute(name).split("?")[0] === value;

function copyAttributes(old, fresh) {
	for (const {name, value} of fresh.attributes)
		if (!KEPT.has(name) && old.getAttribute(name) !== value && !isSamePicture(old, name, value))
			old.setAttribute(name, value);
	for (const {name} of [...old.attributes])
		if (!KEPT.has(name) && !fresh.hasAttribute(name))
			old.removeAttribute(name);
}

/* Who of the old becomes which of the fresh: by key, else the next of the same kind. */
function pair(old, fresh) {
	const keyed = new Map(), plain = new Map();
	for (const node of old) {
		const key = keyOf(node), kind = `${node.nodeType} ${node.nodeName}`;
		if (key)
			keyed.set(`${key} ${node.nodeName}`, [...keyed.get(`${key} ${node.nodeName}`) ?? [], node]);
		else if (!isOwn(node))
			plain.set(kind, [...plain.get(kind) ?? [], node]);
	}
	return fresh.map((node) => {
		const key = keyOf(node);
		return (key ? keyed.get(`${key} ${node.nodeName}`) : plain.get(`${node.nodeType} ${node.nodeName}`))?.shift() ?? null;
	});
}

export function morph(old, fresh) {
	if (old.nodeType !== Node.ELEMENT_NODE) {
		if (old.data !== fresh.data)
			old.data = fresh.data;
		return;
	}
	if (isOwn(old) || old.isEqualNode(fresh))
		return;
	/* What is in a panel is the script's, but for its words. */
	if (old.matches(".panel"))
		[old, fresh] = [old.querySelector("figcaption"), fresh.querySelector("figcaption")];
	copyAttributes(old, fresh);
	const wanted = [...fresh.childNodes].filter((node) => node.nodeName !== "SCRIPT" && node.nodeName !== "STYLE");
	const matches = pair([...old.childNodes], wanted);
	const matched = new Set(matches);
	for (const node of [...old.childNodes])
		if (!matched.has(node) && !isOwn(node))
			node.remove();
	let at = old.firstChild;
	wanted.forEach((node, i) => {
		while (at && isOwn(at) && !matched.has(at))
			at = at.nextSibling;
		const match = matches[i];
		if (!match)
			old.insertBefore(document.importNode(node, true), at);
		else if (match === at)
			at = at.nextSibling;
		else
			old.insertBefore(match, at);
		if (match)
			morph(match, node);
	});
}

/* Calls change(); then what was at the top of the window is there again, or else the next thing that is still there. */
export function inPlace(change) {
	const bar = document.querySelector(".bar")?.getBoundingClientRect().bottom ?? 0;
	const seen = [];
	if (scrollY > 0)
		for (const element of document.querySelectorAll("main > *, .panel, .finding, .panels > h2, tbody tr")) {
			const {top, bottom} = element.getBoundingClientRect();
			if (bottom > bar && top < innerHeight && !element.querySelector(".panel, .finding, tbody tr"))
				seen.push({element, top});
		}
	change();
	const there = seen.find(({element}) => element.isConnected);
	if (there)
		scrollBy(0, there.element.getBoundingClientRect().top - there.top);
}
