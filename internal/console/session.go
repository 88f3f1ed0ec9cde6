package console

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The names of the cookies. The prefix __Host- makes browsers refuse one that
// another host, a subdomain or plain http has planted.
const (
	plainSession, secureSession   = "gatehouse_session", "__Host-gatehouse"
	plainCeremony, secureCeremony = "gatehouse_ceremony", "__Host-gatehouse-ceremony"
)

func (c *Console) sessionCookie() string {
	if c.secure {
		return secureSession
	}
	return plainSession
}

func (c *Console) ceremonyCookie() string {
	if c.secure {
		return secureCeremony
	}
	return plainCeremony
}

// setCookie sets a secret cookie; a zero time leaves it until the browser is
// closed, an empty value removes it.
func (v *view) setCookie(name, value string, until time.Time) {
	cookie := &http.Cookie{ //nolint:gosec // Secure wherever the console is behind https
		Name: name, Value: value, Path: "/", Expires: until,
		HttpOnly: true, Secure: v.c.secure,
		// Strict would hide it from the navigation that comes back from an
		// OIDC provider. GET is inert, and other methods check their origin.
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

// identify finds the session, and puts its caller into the context. Without
// one its error has code unauthenticated. What a page asks for in the background
// does not count as use: a tab that lies open does not keep its session alive.
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

// browser is what a sign-in comes from.
func (v *view) browser() gatehouse.Browser {
	return gatehouse.Browser{UserAgent: v.r.UserAgent(), Previous: v.cookie(v.c.sessionCookie())}
}

// signIn gives the browser its new session and goes on to a path.
func (v *view) signIn(s *gatehouse.SignedIn, next string) error {
	v.setCookie(v.c.sessionCookie(), s.Token, s.Session.CreatedAt.Add(gatehouse.SessionMax))
	v.rememberDevice(s.Session)
	return v.redirect(next)
}

// safeTransport reports whether a session may be given here: over https, or
// within this machine.
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

// signInOptions are what can be signed in with here. elsewhere is where passkeys
// can be used, when this page was asked for at an address where they cannot, ""
// otherwise: a passkey belongs to a name, and browsers keep none for a number.
func (v *view) signInOptions() (o gatehouse.SignInOptions, elsewhere string) {
	o = v.c.cfg.SignIn.Options()
	// Behind a proxy nobody knows what the browser asked for.
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

// signinPath is the sign-in page that comes back to a path.
func signinPath(next string) string {
	if next == "" || next == "/" || localPath(next) != next {
		return "/signin"
	}
	return "/signin?next=" + url.QueryEscape(next)
}
