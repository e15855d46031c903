/* Small things that everybody needs. Texts go into the page as texts, never as markup: names are hostile. */

/* An element with attributes and children; texts become text nodes. */
export function el(name, attributes = {}, ...children) {
	const element = document.createElement(name);
	for (const [key, value] of Object.entries(attributes))
		if (value === true)
			element.setAttribute(key, "");
		else if (value !== false && value !== null && value !== undefined)
			element.setAttribute(key, value);
	element.append(...children.filter((child) => child !== null && child !== undefined));
	return element;
}

/* Index of the first that is not less. */
export function lowerBound(sorted, value) {
	let low = 0, high = sorted.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Index of the nearest; -1 when there is none. */
export function nearest(sorted, value) {
	const i = lowerBound(sorted, value);
	if (i === 0)
		return sorted.length ? 0 : -1;
	return i === sorted.length || value - sorted[i - 1] <= sorted[i] - value ? i - 1 : i;
}
