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

// view is one request and the page made for it: the caller, and the data of the layout around the
// page's content.
type view struct {
	c         *Console
	w         http.ResponseWriter
	r         *http.Request
	now       time.Time
	requestID string
	prefs     preferences
	// standings are the delegations to this person, once they have been read.
	standings     []gatehouse.Standing
	standingsRead bool
	// snoozes are this person's, once they have been read.
	snoozes     []gatehouse.Snooze
	snoozesRead bool

	// ctx is the request's context with the caller in it; services are called with it. On a public
	// page without a session, person and session are nil.
	ctx     context.Context
	person  *gatehouse.Principal
	session *gatehouse.Session

	// The page sets title and section. wide uses the full width, with panes that scroll separately;
	// unlogged says that the page's content also changes without a log entry.
	title    string
	section  string
	wide     bool
	unlogged bool
	// notices counts the notices that an administrator has not read; see countNotices.
	notices     int
	moreNotices bool
}

// render answers with a page in the layout. The whole page is built before the first byte is sent,
// so an error can still become an error page.
func (v *view) render(status int, title, section string, body templ.Component) error {
	v.title, v.section = title, section
	v.countNotices()
	return v.write(status, layout(v, body))
}

// pages reuses buffers between requests: a page takes hundreds of kilobytes.
var pages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept limits the size of reused buffers, in bytes; a full inbox fits.
const maxKept = 512 << 10

// write answers with a component as it is; render adds the layout.
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

// back redirects to the form's field "return", else to the given path.
func (v *view) back(otherwise string) error {
	if to := v.r.FormValue("return"); to != "" {
		return v.redirect(to)
	}
	return v.redirect(otherwise)
}

// here is the path to which the browser can return with a GET.
func (v *view) here() string {
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return v.r.URL.RequestURI()
	}
	return v.r.PostFormValue("return")
}

// query returns a URL parameter without surrounding space.
func (v *view) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// form returns a field of the posted form as it was typed, with CR LF, which browsers send,
// replaced by LF.
func (v *view) form(name string) string {
	return strings.ReplaceAll(v.r.PostFormValue(name), "\r\n", "\n")
}

// parse parses the posted form. A form that is too large is refused, and so is one that names a
// single-valued field twice, because its meaning would be ambiguous.
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

// repeats reports whether a form field may occur several times.
func repeats(name string) bool {
	return name == "item" || name == "pick" || name == "push" || name == "role" || name == "notice"
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

// localPath returns the given path if it stays on this site, else the inbox.
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

func joinRoles(roles []gatehouse.Role, separator string) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, separator)
}
