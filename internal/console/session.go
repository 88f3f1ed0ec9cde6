package console

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The cookies' names. With the prefix __Host-, browsers refuse a cookie that another host, a
// subdomain or plain http has set.
const (
	plainSession, secureSession   = "gatehouse_session", "__Host-gatehouse"
	plainCeremony, secureCeremony = "gatehouse_ceremony", "__Host-gatehouse-ceremony"
)

func (c *Console) sessionCookie() string { return c.named(plainSession, secureSession) }

func (c *Console) ceremonyCookie() string { return c.named(plainCeremony, secureCeremony) }

// setCookie sets a secret cookie. With a zero time, it lasts until the browser is closed; an empty
// value deletes it.
func (v *view) setCookie(name, value string, until time.Time) {
	cookie := &http.Cookie{ //nolint:gosec // Secure wherever the console is behind https
		Name: name, Value: value, Path: "/", Expires: until,
		HttpOnly: true, Secure: v.c.secure,
		// With Strict, the navigation that returns from an OIDC provider would come without the
		// cookie. Lax is safe: a GET decides nothing, and other methods check their origin.
		SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		cookie.Expires, cookie.MaxAge = time.Time{}, -1
	}
	http.SetCookie(v.w, cookie)
}

// cookie returns a cookie's value, "" when there is none.
func (v *view) cookie(name string) string {
	cookie, err := v.r.Cookie(name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// identify finds the session and puts its caller into the context. Without a session, the error has
// code unauthenticated. Background requests do not count as use, so an open tab does not keep its
// session alive.
func (v *view) identify(background bool) error {
	token := v.cookie(v.c.sessionCookie())
	if token == "" {
		return gatehouse.E(gatehouse.CodeUnauthenticated, "you are not signed in")
	}
	find := v.c.cfg.Browser.FindSession
	if background {
		find = v.c.cfg.Browser.PeekSession
	}
	caller, err := find(v.r.Context(), token)
	if err != nil {
		return err
	}
	caller.RequestID = v.requestID
	v.ctx = gatehouse.NewContext(v.r.Context(), caller)
	v.person, v.session = caller.Principal, caller.Session
	return nil
}

// browser describes the browser that signs in.
func (v *view) browser() gatehouse.Browser {
	return gatehouse.Browser{UserAgent: v.r.UserAgent(), Previous: v.cookie(v.c.sessionCookie())}
}

// signIn gives the browser its new session and redirects to a path.
func (v *view) signIn(s *gatehouse.SignedIn, next string) error {
	v.setCookie(v.c.sessionCookie(), s.Token, s.Session.CreatedAt.Add(gatehouse.SessionMax))
	v.rememberDevice(s.Session)
	return v.redirect(next)
}

// safeTransport reports whether a session may be created here: over https, or over the loopback
// interface.
func (v *view) safeTransport() bool {
	if v.c.secure {
		return true
	}
	local, ok := v.r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	host, _, err := net.SplitHostPort(local.String())
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// signInOptions are the possible ways to sign in here. A passkey belongs to a host name, and
// browsers accept none for an IP address. If passkeys do not work at this page's address, elsewhere
// is the address at which they do; else it is "".
func (v *view) signInOptions() (o gatehouse.SignInOptions, elsewhere string) {
	o = v.c.cfg.SignIn.Options()
	// Behind a proxy, the address that the browser requested is not known.
	if v.c.cfg.PublicURL != "" || len(o.PasskeyOrigins) == 0 {
		return o, ""
	}
	for _, origin := range o.PasskeyOrigins {
		if _, host, _ := strings.Cut(origin, "://"); strings.EqualFold(host, v.r.Host) {
			return o, ""
		}
	}
	o.Passkeys = false
	return o, o.PasskeyOrigins[0]
}

// signinPath is the sign-in page that returns to a path.
func signinPath(next string) string {
	if next == "" || next == "/" || localPath(next) != next {
		return "/signin"
	}
	return "/signin?next=" + url.QueryEscape(next)
}
