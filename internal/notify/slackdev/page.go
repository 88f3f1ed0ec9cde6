package slackdev

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base32"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Path is the path of the page.
const Path = "/dev/slack"

// cookieName is the cookie from which a browser's Slack user is derived.
const cookieName = "gatehouse_dev_slack"

// Linked reports whether a Slack user is linked to a person.
type Linked func(ctx context.Context, issuer, user string) (bool, error)

//go:embed page.css
var style string

//go:embed page.html
var pageSource string

var page = template.Must(template.New("slack").Funcs(template.FuncMap{
	"given": func(v *view, id string) string { return v.Given[id] },
	"wrong": func(v *view, id string) string { return v.Problems[id] },
}).Parse(pageSource))

// policy permits the page's own style and forms, and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}()

// Serve sets the receiver of clicks, and the function that knows the linked Slack users.
func (w *Workspace) Serve(handler http.Handler, linked Linked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler, w.linked = handler, linked
}

func (w *Workspace) routes() {
	w.pages.HandleFunc("GET "+Path, w.show)
	for name, do := range map[string]func(*http.Request, string){
		"/press": w.press, "/form": w.submit, "/command": w.enter,
	} {
		w.pages.HandleFunc("POST "+Path+name, func(rw http.ResponseWriter, r *http.Request) { act(rw, r, do) })
	}
}

// ServeHTTP serves the page and processes its buttons. Requests from other sites are refused.
func (w *Workspace) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h := rw.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy)
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(rw, "the request comes from another site", http.StatusForbidden)
		return
	}
	w.pages.ServeHTTP(rw, r)
}

// act performs a form's action as the browser's user, and shows the page again.
func act(rw http.ResponseWriter, r *http.Request, do func(*http.Request, string)) {
	user := userOf(r)
	r.Body = http.MaxBytesReader(rw, r.Body, maxTyped)
	if err := r.ParseForm(); err != nil || user == "" {
		http.Error(rw, "load the page "+Path+" first", http.StatusBadRequest)
		return
	}
	do(r, user)
	http.Redirect(rw, r, Path, http.StatusSeeOther)
}

// userOf is the Slack user of a browser, "" before it has loaded the page.
func userOf(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil || len(c.Value) < 26 {
		return ""
	}
	return userFrom(c.Value)
}

// userFrom derives the user from the cookie, so that the user's visible id does not reveal the
// cookie.
func userFrom(cookie string) string {
	sum := sha256.Sum256([]byte("slackdev\x00" + cookie))
	return "U0" + base32.StdEncoding.EncodeToString(sum[:])[:12]
}

// shown is a message on the page, with its replies.
type shown struct {
	*message
	Replies []*message
}

func (w *Workspace) show(rw http.ResponseWriter, r *http.Request) {
	user := userOf(r)
	if user == "" {
		secret := rand.Text()
		user = userFrom(secret)
		http.SetCookie(rw, &http.Cookie{ //nolint:gosec // plain http, on this machine
			Name: cookieName, Value: secret, Path: Path, MaxAge: 365 * 24 * 3600, HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
		})
	}
	var data struct {
		Style    template.CSS
		User     string
		Linked   bool
		Form     *view
		Messages []shown
	}
	data.Style, data.User = template.CSS(style), user //nolint:gosec // the file's own text
	w.mu.Lock()
	linked := w.linked
	data.Form = w.forms[user]
	data.Messages = w.timeline(user)
	w.mu.Unlock()
	if linked != nil {
		data.Linked, _ = linked(r.Context(), gatehouse.SlackIssuer+team, user)
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(rw, data)
}

// timeline lists the messages that a user sees, newest first, with replies below their message.
func (w *Workspace) timeline(user string) []shown {
	var list []shown
	at := map[string]int{}
	for _, m := range w.messages {
		if m.User != "" && m.User != user {
			continue
		}
		copied := *m
		if i, ok := at[m.Thread]; ok && m.Thread != "" {
			list[i].Replies = append(list[i].Replies, &copied)
			continue
		}
		at[m.TS] = len(list)
		list = append(list, shown{message: &copied})
	}
	slices.Reverse(list)
	return list
}

// ID is the message's anchor on the page.
func (m *message) ID() string { return "m" + strings.ReplaceAll(m.TS, ".", "-") }
