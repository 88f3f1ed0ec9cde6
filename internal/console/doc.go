// Package console serves the reviewers' console: pages for people, made on the
// server, that work without script. It decides nothing: every answer ends in
// the use cases of internal/gate and internal/runs, with the person of the session
// in the context.
//
// # Rules
//
// A GET changes nothing. Every change is a plain form that is posted; the
// answer to one that was accepted is a redirect (303), the answer to one that
// was not is a page under the status of its error. Posts come from this origin
// or are refused (http.CrossOriginProtection).
//
// Script only enhances. console.js presses the buttons that a page has; htmx
// puts a part of the next page in the place of the one before. No page has
// inline script, style or handlers: the content policy forbids them, and a page
// that has some is broken at once.
//
// What somebody else wrote is shown with @hostile (or @phrase, for sentences of
// internal/card), which makes visible what does not show. templ escapes the
// rest. Never use templ.Raw.
//
// Colour is never alone: a badge says its word. Numbers stand as they are
// stored. Times are UTC, exact in the title.
//
// # How to add a page
//
//  1. A file page.go with a method that returns its routes, and one handler for
//     each: func (c *Console) pageRoutes() []route. A handler takes a *view and
//     returns an error; an error of the domain becomes its page and status.
//     The services are c.cfg.…, called with v.ctx, which carries the caller.
//     A route lists the roles of which one is needed.
//  2. A file page.templ with its components, the outermost <div class="page">
//     with a data-testid. Run "templ generate -f internal/console/page.templ"
//     (a-h/templ, the version of go.mod), and commit page_templ.go too. Within
//     text, a word such as for, if or switch at the beginning of a line or
//     after an expression has to stand in braces: { "for" }.
//  3. c.pageRoutes() in the list of Console.routes. A path that stands in
//     navigation shows itself there as soon as it is served.
//  4. Its style in assets/page.css or console.css: classes, never style="".
//  5. Tests: every route is walked by TestEveryRoute for every role, for its
//     headers, and without a session; what the page does, test by itself.
//
// What there is to build from: v.render(status, title, section, body) for a
// page, v.write for a fragment, v.redirect and v.back after a post, v.parse and
// v.form for a form, v.query for the URL, v.leave to go to an OIDC provider,
// v.once for a form that makes something, once; the components riskBadge,
// statusBadge, timeLeft, when, emptyState, copyable, pager, notice, violations.
// A part of a page that grows old names where to ask again:
// hx-get="…" hx-trigger="gatehouse:changed from:body" hx-swap="outerHTML".
// Forms that return to where they were carry @returnHere(v). A key is given to
// a control of the open action by data-key, and told in keyMap.
package console
