// What a page is but for its text: to compare one with hostile texts with the
// same one with harmless texts.

/**
 * Runs in the page: each element with its way from the body, its attributes,
 * and what those of them say that can do something.
 */
export function skeleton() {
  const acts = /^(href|src|srcdoc|action|formaction|hx-.*|class|id|name|type|for|form|style|target|rel|method|role|data-(key|go|decide|passkey|events|testid)|accesskey|autofocus)$/;
  const plain = (value) => value.replace(/(act|apr|psh|dlq|prn|key|run|stp|wfl|sig|rfx)_[0-9a-f]+/g, "ID").replace(/sha256(:|%3A)[0-9a-f]+/g, "DIGEST")
    .replace(/snap=\d+/g, "snap=N").replace(/([?&](?:after|cursor|dead|failed|unknown|applied|from|to|type|by|q|open|seen|workflow|version)=)[^&]*/g, "$1N")
    .replace(/thing-\d+/g, "REF").replace(/\bthing(%3A|\/)[^&]*/g, "REF").replace(/\bflow-\d+/g, "FLOW");
  const out = new Set();
  const walk = (el, path) => {
    // What makes characters and differences visible is the page's own.
    if (el.matches("mark.differ") && el.attributes.length === 1) {
      for (const child of el.children) walk(child, path);
      return;
    }
    if (el.matches("mark.odd:not([id]), wbr") && [...el.attributes].every((a) => a.name === "class" || a.name === "title") && !el.children.length) return;
    // A page asks whether it is old whenever it likes: so long, and after it, its part has a class more, or an empty one.
    const asks = [...el.classList].every((c) => c === "htmx-request");
    const own = [...el.attributes].filter((a) => a.name !== "class" || !asks).map((a) => (acts.test(a.name) ? `${a.name}=${plain(a.value)}` : a.name)).filter((a) => !/^(open|checked|selected|hidden|aria-current|data-live)$/.test(a));
    const here = `${path}>${el.localName}[${own.sort().join(" ")}]`;
    out.add(here);
    // How long things took decides what of these there is.
    if (el.matches(".tl-bar, .tl-legend")) return;
    for (const child of el.children) walk(child, `${path}>${el.localName}`);
  };
  walk(document.documentElement, "");
  return [...out];
}

/** What no page may have in its text, since nobody would see it. */
export const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0001}-\u{e007f}](?<!\u{1f3f4}[\u{e0001}-\u{e007f}]*)/u;
