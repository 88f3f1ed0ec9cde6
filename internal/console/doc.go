// Package console serves the reviewers' console: pages that are rendered on the
// server and work without script. The console makes no decisions itself: every
// answer calls a use case of internal/gate or internal/runs, with the session's
// person in the context.
//
// # Rules
//
// A GET decides nothing. It changes only sign-ins: a sign-in, a link or a step-up by
// OIDC begins and ends with a GET, and most GETs prolong the session. Every other
// change is posted, by a plain form, or by the scripts for passkeys and devices. An
// accepted post of a form is answered with a redirect (303), or with a page if there
// is a result to show, such as a new secret. A refused one is answered with a page
// that has the HTTP status of the error. Posts from other origins are refused
// (http.CrossOriginProtection).
//
// Scripts are optional, except for passkeys and for notifications on devices.
// console.js adds shortcuts and the like, which act only through the page's own
// buttons and links; htmx replaces a part of the page with a part of the response.
// No page has inline scripts, styles or handlers: the content policy forbids them,
// so a page with any of them breaks at once.
//
// Text from untrusted authors is shown with @hostile (or with @phrase, for
// sentences of internal/card), which makes invisible characters visible. templ
// escapes everything else. templ.Raw is for the rendered documentation only.
//
// Colour never carries a meaning alone: a badge also has a word. Numbers are
// shown exactly as they are stored. Times are in UTC, with the exact time in the
// title.
//
// # How to add a page
//
//  1. A file page.go with a method that returns its routes, and one handler for
//     each: func (c *Console) pageRoutes() []route. A handler takes a *view and
//     returns an error; a domain error becomes its page and status. Handlers
//     call the services in c.cfg with v.ctx, which carries the caller. A route
//     lists the permitted roles; the person needs one of them.
//  2. A file page.templ with its components, the outermost <div class="page">
//     with a data-testid. Run "templ generate -f internal/console/page.templ"
//     (a-h/templ, the version of go.mod), and commit page_templ.go too. Within
//     text, a word such as for, if or switch at the beginning of a line or
//     after an expression has to stand in braces: { "for" }.
//  3. c.pageRoutes() in the list of Console.routes. An entry of navigation is
//     shown as soon as a route serves its path.
//  4. Its style in assets/pages.css or console.css: classes, never style="".
//  5. Tests: TestEveryRoute requests every page in six roles and without a session,
//     posts every form as a viewer, and checks the headers. Test the page's own
//     behaviour separately.
//
// Building blocks: v.render(status, title, section, body) for a page, v.write
// for a fragment, v.redirect and v.back after a post, v.parse and v.form for a
// form, v.query for the URL, v.leave to go to an OIDC provider, v.once for a form
// that creates something; the components riskBadge, statusBadge, timeLeft, when,
// emptyState, copyable, pager, notice, violations.
//
// A part of a page that can become stale names the URL that reloads it:
// hx-get="…" hx-trigger="gatehouse:changed from:body" hx-swap="outerMorph".
// Forms that return to the present page include @returnHere(v). A control of the
// open action gets a shortcut by data-key, which keyMap must list.
package console
