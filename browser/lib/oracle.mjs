// The structure of a page without its texts, to compare a page with hostile texts to the same page
// with harmless texts.

/**
 * Runs in the page: each element with its path from the body, its attributes,
 * and the values of those attributes that can have an effect.
 */
export function skeleton() {
  const acts = /^(href|src|srcdoc|action|formaction|hx-.*|class|id|name|type|for|form|style|target|rel|method|role|data-(key|go|decide|passkey|events|testid)|accesskey|autofocus)$/;
  const plain = (value) => value.replace(/(act|apr|psh|dlq|prn|key|run|stp|wfl|sig|rfx)_[0-9a-f]+/g, "ID")
    .replace(/sha256(:|%3A)[0-9a-f]+/g, "DIGEST")
    .replace(/^[0-9a-f]{16}$/, "KEY")
    .replace(/snap=\d+/g, "snap=N")
    .replace(/([?&](?:group|after|cursor|dead|failed|unknown|applied|from|to|type|by|q|open|seen|since|until|workflow|version)=)[^&]*/g, "$1N")
    .replace(/thing-\d+/g, "REF").replace(/\bthing(%3A|\/)[^&]*/g, "REF").replace(/\bflow-\d+/g, "FLOW");
  const out = new Set();
  const walk = (el, path) => {
    // The page itself adds the marks for invisible characters and differences.
    if (el.matches("mark.differ") && el.attributes.length === 1) {
      for (const child of el.children) walk(child, path);
      return;
    }
    if (el.matches("mark.odd:not([id]), wbr") && [...el.attributes].every((a) => a.name === "class" ||
      a.name === "title") && !el.children.length) return;
    if (el.matches("div.tl-axis[aria-hidden]")) return; // a run that took no time has none
    // A page asks for news at any time. Until the answer, the part that asks has the class htmx-request.
    const asks = [...el.classList].every((c) => c === "htmx-request");
    const own = [...el.attributes].filter((a) => a.name !== "class" || !asks)
      .map((a) => (acts.test(a.name) ? `${a.name}=${plain(a.value)}` : a.name))
      .filter((a) => !/^(open|checked|selected|hidden|aria-current|data-live)$/.test(a));
    const here = `${path}>${el.localName}[${own.sort().join(" ")}]`;
    out.add(here);
    // The number of these elements depends on how long things took.
    if (el.matches(".tl-bar, .tl-legend")) return;
    for (const child of el.children) walk(child, `${path}>${el.localName}`);
  };
  walk(document.documentElement, "");
  return [...out];
}

/** The characters that no page may contain, because they are invisible. */
export const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0001}-\u{e007f}](?<!\u{1f3f4}[\u{e0001}-\u{e007f}]*)/u;

/** Runs in the page: its visible text, the number of its marks, and whether a text has run as a script. */
export const look = () => ({
  text: document.body.innerText,
  owned: window.__owned ?? ({}).owned,
  marks: document.querySelectorAll("mark.odd:not(.end)").length, // a harmless text may lack a line end
});

/** Opens a page, and waits for its script and for the parts that load later. */
export async function visit(page, url) {
  await page.goto(url);
  await page.locator("html.js").waitFor({ state: "attached" });
  await complete(page);
}

/**
 * Returns a function that shows a page. It loads one page in eight; of the other seven it fetches only the main part,
 * with the console's own htmx, which takes a fraction of the work.
 */
export function opener() {
  let n = 0;
  return async (page, url) => {
    if (n++ % 8 === 0) return visit(page, url);
    await page.evaluate(async (url) => {
      const before = document.getElementById("main");
      await window.htmx.ajax("GET", url, { source: before, target: before, select: "#main", swap: "outerHTML" });
      while (before.isConnected) await new Promise((resolve) => setTimeout(resolve, 5));
    }, url);
    await complete(page);
  };
}

async function complete(page) {
  await page.locator("[data-testid=record][hx-get]").waitFor({ state: "detached" });
}
