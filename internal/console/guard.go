package console

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
)

// contentPolicy lets a page load files of this server only, and no inline scripts or styles; images may
// also be data: URLs. Injected markup can run no script and send no data to other hosts, and no site can
// frame the page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
	"'self'; " +
	"font-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// maxForm limits the body of a form, in bytes; the API has the same limit.
const maxForm = 1 << 20

// bodyTime limits how long a body may take to arrive. Otherwise a client could hold a connection
// for ever by never finishing.
const bodyTime = time.Minute

// guard sets the headers of every answer and protects against cross-site requests: a browser's request
// other than GET, HEAD and OPTIONS must come from this origin. A client that sends neither Sec-Fetch-Site
// nor Origin, such as a mail service, is no browser.
func (c *Console) guard(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(c.serve(route{public: true, handle: func(*view) error {
		return gatehouse.E(gatehouse.CodeRoleRequired, "the request came from another site, and nothing was changed")
	}}))
	inner := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if c.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if r.Body != http.NoBody {
			// A server that does not support deadlines returns an error here; the body then has no time
			// limit.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.bodyTime))
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		inner.ServeHTTP(w, r)
	})
}

// serve wraps a route in the checks of session and roles, and turns its error or panic into a page.
func (c *Console) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &view{c: c, w: w, r: r, ctx: r.Context(), now: c.cfg.Now().UTC(), prefs: readPreferences(r),
			requestID: uuid.NewString()}
		w.Header().Set("X-Request-Id", v.requestID)
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				c.log.ErrorContext(r.Context(), "panic", "request_id", v.requestID, "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
				v.fail(gatehouse.E(gatehouse.CodeInternal, ""))
			}
		}()
		if err := v.pass(rt); err != nil {
			v.fail(err)
		}
	})
}

// pass checks the caller's rights and runs the route.
func (v *view) pass(rt route) error {
	// With ?live, a page with an empty list repeats its request by itself; see fills. This does not keep
	// the session alive.
	asksAgain := v.query("live") != "" && v.r.Method == http.MethodGet
	err := v.identify(rt.background || asksAgain)
	if err != nil && !rt.public {
		if gatehouse.CodeOf(err) == gatehouse.CodeUnauthenticated {
			return v.toSignIn()
		}
		return err
	}
	if !rt.public && v.onlyWorker() && !forEverybody(v.r.URL.Path) {
		if v.r.URL.Path == "/inbox" { // the page after signing in
			return v.redirect(settingsPath)
		}
		return gatehouse.E(gatehouse.CodeRoleRequired,
			"workers read only what they lease, over the API; this page is not for them")
	}
	if len(rt.roles) > 0 && !v.has(rt.roles...) {
		return gatehouse.E(gatehouse.CodeRoleRequired, "this page needs the role %s", joinRoles(rt.roles, " or "))
	}
	if rt.changesRights {
		if err := v.showEditToken(); err != nil {
			return err
		}
	}
	return rt.handle(v)
}

// showEditToken checks the form's edit token, if it has one, and puts the result into the context. It returns
// the error of a form that cannot be parsed: only the first parse of a request reports this error, so the
// route, which parses again, would use an incomplete form.
func (v *view) showEditToken() error {
	if err := v.parse(); err != nil {
		return err
	}
	if v.form("edit_token") == "" {
		return nil
	}
	ctx, err := v.c.cfg.Self.ShowEditToken(v.ctx, v.form("edit_token"))
	v.ctx = ctx
	return err
}

// recentSignIn reports whether the sign-in is recent enough to change rights, credentials and rules
// without the edit token.
func (v *view) recentSignIn() bool { return v.now.Sub(v.session.CreatedAt) < gatehouse.FreshSignIn }

// toSignIn redirects the browser to the sign-in page, which returns here. A script that asked for a
// part of a page is told to navigate.
func (v *view) toSignIn() error {
	switch {
	case v.r.Header.Get("Accept") == "application/json":
		return gatehouse.E(gatehouse.CodeUnauthenticated, "sign in again")
	case v.r.Header.Get("HX-Request") == "true":
		v.w.Header().Set("HX-Redirect", "/signin")
		v.w.WriteHeader(http.StatusUnauthorized)
		return nil
	}
	return v.redirect(signinPath(v.here()))
}

// onlyWorker reports whether the person's only role is worker.
func (v *view) onlyWorker() bool {
	return !slices.ContainsFunc(v.person.Roles, func(r gatehouse.Role) bool { return r != gatehouse.RoleWorker })
}

// forEverybody reports whether a path is open to workers too: settings, help, documentation and sign-out.
func forEverybody(path string) bool {
	return path == settingsPath || strings.HasPrefix(path, settingsPath+"/") || path == "/help" ||
		strings.HasPrefix(path, docsPath) || path == "/signout"
}

// has reports whether the person holds any of the roles.
func (v *view) has(roles ...gatehouse.Role) bool {
	return v.person != nil && slices.ContainsFunc(roles, v.person.Has)
}
