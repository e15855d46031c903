/* The page that asks for the token of tacho serve. It stands behind the # of the address that was printed, where no server and no
 * log sees it; the server gives a cookie for it, which scripts cannot read. */
import {el} from "./tools.js";
import {startTheme} from "./theme.js";

export function startSignIn(main) {
	startTheme({themeChanged() {}});
	const field = el("input", {id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true});
	const said = el("p", {class: "bad", role: "alert"});
	const form = el("form", {}, el("label", {for: "token"}, "Token"), field, el("button", {type: "submit"}, "Open"));
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		enter(field.value.trim());
	});
	main.append(form, said);

	async function enter(token) {
		said.textContent = "";
		try {
			const answer = await fetch(main.dataset.login || "login", {headers: {Authorization: `Bearer ${token}`}, cache: "no-store"});
			if (answer.ok)
				location.reload();
			else
				said.textContent = "This is not the token of the server that runs now. Open the address that tacho serve printed last.";
		} catch {
			said.textContent = "The server does not answer. Is tacho serve still running?";
		}
	}

	function fromAddress() {
		const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
		if (!token)
			return;
		history.replaceState(null, "", location.pathname + location.search);
		enter(token);
	}
	addEventListener("hashchange", fromAddress);
	fromAddress();
}
