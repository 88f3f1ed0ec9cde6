package console

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"github.com/gatehouse-dev/gatehouse"
)

// view is one request on its way to a page: who asks, and what the layout
// shows around the page's own content.
type view struct {
	c         *Console
	w         http.ResponseWriter
	r         *http.Request
	now       time.Time
	requestID string
	prefs     preferences
	// standings are the delegations to the person, once they are read.
	standings     []gatehouse.Standing
	standingsRead bool

	// ctx is the request's, with the caller in it: what the services are
	// called with. person and session are nil on a public page without a
	// session.
	ctx     context.Context
	person  *gatehouse.Principal
	session *gatehouse.Session

	// title and section are set by the page; wide asks for the whole width,
	// each pane scrolling by itself; unlogged says that what the page shows
	// changes without an entry of the log.
	title    string
	section  string
	wide     bool
	unlogged bool
	// notices counts what an administrator has not looked at yet; see
	// countNotices.
	notices     int
	moreNotices bool
}

// render answers with a page in the layout. The page is made as a whole
// before the first byte is sent, so that an error is still an error page.
func (v *view) render(status int, title, section string, body templ.Component) error {
	v.title, v.section = title, section
	v.countNotices()
	return v.write(status, layout(v, body))
}

// pages are buffers for them: a page is some hundred kilobytes, and would be made
// and left for each request anew.
var pages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept bounds the buffers that are kept, in bytes: a full inbox fits.
const maxKept = 512 << 10

// write answers with a component as it is.
func (v *view) write(status int, page templ.Component) error {
	b := pages.Get().(*bytes.Buffer)
	b.Reset()
	defer func() {
		if b.Cap() <= maxKept {
			pages.Put(b)
		}
	}()
	if err := page.Render(v.r.Context(), b); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
	return nil
}

// redirect sends the browser to a path of this site with a GET.
func (v *view) redirect(path string) error {
	http.Redirect(v.w, v.r, localPath(path), http.StatusSeeOther)
	return nil
}

// back redirects to the form's member "return", else to the path given.
func (v *view) back(otherwise string) error {
	if to := v.r.FormValue("return"); to != "" {
		return v.redirect(to)
	}
	return v.redirect(otherwise)
}

// here is where the browser can be sent back to with a GET.
func (v *view) here() string {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return v.r.URL.RequestURI()
	}
	return v.r.PostFormValue("return")
}

// query returns a parameter of the URL, without space around it.
func (v *view) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// form returns a member of the posted form as it was typed, but for the line
// ends, which browsers send as CR LF.
func (v *view) form(name string) string {
	return strings.ReplaceAll(v.r.PostFormValue(name), "\r\n", "\n")
}

// parse reads the posted form; what is too large is an error of the contract, and
// so is a field that a form has once and that comes twice: nobody could say which
// of them was meant.
func (v *view) parse() error {
	err := v.r.ParseForm()
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return gatehouse.E(gatehouse.CodeBodyTooLarge, "a form has at most 1 MiB")
	}
	if err != nil {
		return gatehouse.E(gatehouse.CodeMalformed, "the form cannot be read")
	}
	for name, values := range v.r.PostForm {
		if len(values) > 1 && !repeats(name) {
			return gatehouse.E(gatehouse.CodeMalformed, "the form gives %s more than once", gatehouse.Quote(name))
		}
	}
	return nil
}

// repeats reports whether a form may have a field any number of times.
func repeats(name string) bool {
	return name == "item" || name == "push" || name == "role" || name == "notice"
}

// navItems are the sections that this person may see.
func (v *view) navItems() []navItem {
	if v.person == nil {
		return nil
	}
	var list []navItem
	for _, item := range v.c.nav {
		if v.onlyWorker() && !forEverybody(item.Path) {
			continue
		}
		if len(item.roles) == 0 || v.has(item.roles...) {
			list = append(list, item)
		}
	}
	return list
}

// localPath returns a path of this site: the one given, or the inbox when it
// could lead elsewhere.
func localPath(path string) string {
	const otherwise = "/inbox"
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\x00\r\n\t") {
		return otherwise
	}
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.HasPrefix(u.Path, "//") {
		return otherwise
	}
	return path
}

func joinRoles(roles []gatehouse.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, " or ")
}
