package console

import (
	"net/http"
	"time"
)

// preferences are stored in the browser's cookies, because they belong to the device and not to the
// person.
type preferences struct {
	// Theme is "light", "dark", or "" for the system's setting.
	Theme string
	// KeysOff turns the single-key shortcuts off (WCAG 2.1.4).
	KeysOff bool
}

const (
	themeCookie = "gatehouse_theme"
	keysCookie  = "gatehouse_keys"
)

func readPreferences(r *http.Request) preferences {
	var p preferences
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		p.Theme = c.Value
	}
	if c, err := r.Cookie(keysCookie); err == nil {
		p.KeysOff = c.Value == "off"
	}
	return p
}

// savePreferences stores the preferences that the form names.
func (c *Console) savePreferences(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	if v.r.PostForm.Has("theme") {
		v.keep(themeCookie, oneOf(v.form("theme"), "light", "dark"))
	}
	if v.r.PostForm.Has("keys") {
		v.keep(keysCookie, oneOf(v.form("keys"), "off"))
	}
	return v.back("/inbox")
}

// keep stores a preference for a year; "" removes it.
func (v *view) keep(name, value string) {
	cookie := &http.Cookie{ //nolint:gosec // Secure wherever the console is behind https
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: v.c.secure, SameSite: http.SameSiteLaxMode,
		MaxAge: int((365 * 24 * time.Hour).Seconds()),
	}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
}

// oneOf returns s if it is among the allowed words, else "".
func oneOf(s string, allowed ...string) string {
	for _, a := range allowed {
		if s == a {
			return s
		}
	}
	return ""
}
