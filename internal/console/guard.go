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

// contentPolicy lets a page load what this server serves, and nothing inline:
// markup that got into a page by whatever way runs nothing, sends nothing
// elsewhere, and is framed by nobody.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// maxForm bounds the body of a form, as the API's.
const maxForm = 1 << 20

// bodyTime is how long a body may take to come: anybody can send one, and who
// never finishes would hold the connection for ever.
const bodyTime = time.Minute

// guard sets what every answer carries, and lets no other site change
// anything: a request that is not a GET must come from this origin.
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
			// A server without deadlines has connections without an end.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.bodyTime))
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		inner.ServeHTTP(w, r)
	})
}

// serve puts a route behind the session and the roles, and answers its error
// or its panic with a page.
func (c *Console) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &view{c: c, w: w, r: r, ctx: r.Context(), now: c.cfg.Now().UTC(), prefs: readPreferences(r), requestID: uuid.NewString()}
		w.Header().Set("X-Request-Id", v.requestID)
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p)
				}
				c.log.ErrorContext(r.Context(), "panic", "request_id", v.requestID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				v.fail(gatehouse.E(gatehouse.CodeInternal, ""))
			}
		}()
		if err := v.pass(rt); err != nil {
			v.fail(err)
		}
	})
}

// pass checks who asks, and runs the route.
func (v *view) pass(rt route) error {
	err := v.identify(rt.background)
	if err != nil && !rt.public {
		if gatehouse.CodeOf(err) == gatehouse.CodeUnauthenticated {
			return v.toSignIn()
		}
		return err
	}
	if !rt.public && v.onlyWorker() && !forEverybody(v.r.URL.Path) {
		if v.r.URL.Path == "/inbox" { // where signing in leads to
			return v.redirect(settingsPath)
		}
		return gatehouse.E(gatehouse.CodeRoleRequired, "workers see what they lease, over the API; this page is not for them")
	}
	if len(rt.roles) > 0 && !v.has(rt.roles...) {
		return gatehouse.E(gatehouse.CodeRoleRequired, "this page needs the role %s", joinRoles(rt.roles))
	}
	if rt.mints {
		if err := v.showEditToken(); err != nil {
			return err
		}
	}
	return rt.handle(v)
}

// showEditToken passes on the edit token that the form carries, if it does. A
// form that cannot be read is refused here: the request reports the mistake only
// the first time it is parsed, and the route would see the part before it.
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

// fresh reports whether the sign-in is recent enough to change rights,
// credentials and rules without the edit token.
func (v *view) fresh() bool { return v.now.Sub(v.session.CreatedAt) < gatehouse.FreshSignIn }

// toSignIn sends the browser to sign in, and back here afterwards; a script
// that asked for a part of a page is told to leave the page.
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

// onlyWorker reports whether the person is a worker and nothing else.
func (v *view) onlyWorker() bool {
	return !slices.ContainsFunc(v.person.Roles, func(r gatehouse.Role) bool { return r != gatehouse.RoleWorker })
}

// forEverybody reports whether a page shows nothing but the person's own: sessions,
// keys, help.
func forEverybody(path string) bool {
	return path == settingsPath || strings.HasPrefix(path, settingsPath+"/") || path == "/help" || path == "/signout"
}

// has reports whether the person holds any of the roles.
func (v *view) has(roles ...gatehouse.Role) bool {
	if v.person == nil {
		return false
	}
	for _, r := range roles {
		if v.person.Has(r) {
			return true
		}
	}
	return false
}
