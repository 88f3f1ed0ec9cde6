package main

// scriptBugs are bugs of the console's script in a browser.
func scriptBugs() []bug {
	const script = "internal/console/assets/console.js"
	return []bug{
		plant("a key acts on a card that has just appeared", "contract", script,
			"performance.now() < quietUntil || detail() !== arrived", "detail() !== arrived", browser,
			"keyboard/decides forty items with keys alone"),
		plant("a key acts on a state that the script does not know", "contract", script,
			"performance.now() < quietUntil || detail() !== arrived", "performance.now() < quietUntil", browser,
			"keyboard/a key pressed while the content changes is ignored"),
		plant("the second click of two answers the next item", "contract", script,
			"if (e.detail > 1 && e.target", "if (false && e.target", browser, "keyboard/a double click answers once"),
		plant("a letter that is typed is a key", "contract", script,
			`|| typing(e.target) || $("dialog[open]")) return;`, `|| $("dialog[open]")) return;`, browser,
			"keyboard/keys do nothing while somebody types"),
		plant("keys that are switched off act", "contract", script,
			`root.dataset.keys === "off" || typing`, "typing", browser, "keyboard/keys do nothing when they are switched off"),
		plant("a key answers what is open while another item is marked", "contract", script,
			"  if (cursorID !== shown && stopOf(cursorID)) return openCursor();\n", "", browser,
			"keyboard/keys move between items, changes and pages"),
		plant("a key reaches behind an open dialog", "contract", script,
			`|| typing(e.target) || $("dialog[open]")) return;`, "|| typing(e.target)) return;", browser,
			"keyboard/keys move between items, changes and pages"),
		plant("a change while an item is loading is missed", "contract", script,
			"  if (ctx && ctx.changes !== changes) changed();\n", "", browser,
			"together/a change while an item is loading is not missed"),
		plant("an error replaces the open item", "contract", script,
			"  e.preventDefault();\n  if (ctx.response.status >= 500", "  if (ctx.response.status >= 500", browser,
			"offline/a page that asks and gets an error keeps what it shows, and asks again"),
		plant("nothing shows that the server is unreachable", "contract", script,
			"lost = setTimeout(() => { offline.hidden = false; }", "lost = setTimeout(() => {}", browser,
			"offline/the server ends and is started again"),
	}
}
