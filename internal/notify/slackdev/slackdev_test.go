package slackdev_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slackdev"
)

// fill sets every text of a message, however deeply nested.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type() != reflect.TypeFor[time.Time]() {
				fill(v.Field(i), s)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), s)
		}
	}
}

func message(s string) *notify.Message {
	m := &notify.Message{
		Facts: make(
			[]notify.Fact,
			3,
		), Diff: make([]string, 2), DiffMore: 1, At: time.Now(), AsOf: time.Now(), Attempt: 1,
		Deciding: &notify.Deciding{Approve: true, Reject: true}, Action: &gatehouse.Action{},
	}
	fill(reflect.ValueOf(m).Elem(), s)
	m.Card = "" // a channel's own
	return m
}

// look returns the page after a message was posted.
func look(t *testing.T, m *notify.Message) *html.Node {
	t.Helper()
	w := slackdev.New()
	c, err := w.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, slackdev.Path, nil))
	csp := rec.Header().Get("Content-Security-Policy")
	if rec.Code != http.StatusOK || strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none'") {
		t.Fatalf("%d, %q", rec.Code, csp)
	}
	page, err := html.Parse(rec.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// skeleton is a page without its texts and attribute values.
func skeleton(n *html.Node) (list []string, texts string) {
	for n := range n.Descendants() {
		switch n.Type {
		case html.ElementNode:
			tag := n.Data
			for _, a := range n.Attr {
				tag += " " + a.Key
				if a.Key == "href" || a.Key == "action" {
					if u, err := url.Parse(a.Val); err != nil ||
						u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" {
						tag += " leads to " + a.Val
					}
				}
			}
			list = append(list, tag)
		case html.TextNode:
			texts += n.Data
		default:
			list = append(list, "other")
		}
	}
	return list, texts
}

// TestHostile: text in any field of a message does not change the page's markup, and is shown
// unchanged.
func TestHostile(t *testing.T) {
	t.Parallel()
	plain := message("walnuts")
	plain.Link = "https://gate.example/actions/act_1"
	want, _ := skeleton(look(t, plain))
	for _, s := range []string{
		"\"'><script>alert(1)</script><img src=x onerror=alert(1)>", "</style></pre></main><form action=//evil.example>",
		"<!channel> <https://evil.example|Open in Gatehouse> *bold*", "<javascript:alert(1)|Open>", "{{.User}} <!-- -->",
		"&lt;https://evil.example|x&gt;", "&#60;b&#62;", "javascript:alert(1)", "https://a.example/\"onmouseover=\"alert(1)",
	} {
		m := message(s)
		got, texts := skeleton(look(t, m))
		if !slices.Equal(got, want) {
			t.Errorf("%q changes the page:\n%v\n%v", s, got, want)
		}
		if n := strings.Count(texts, s); n < 8 {
			t.Errorf("%q occurs %d times: %s", s, n, texts)
		}
	}
}

// TestOtherSites: a form of another site presses nothing.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	w := slackdev.New()
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		r := httptest.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			slackdev.Path+"/press",
			strings.NewReader("ts=1.1"),
		)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(header[0], header[1])
		rec := httptest.NewRecorder()
		if w.ServeHTTP(rec, r); rec.Code != http.StatusForbidden {
			t.Errorf("%v: %d", header, rec.Code)
		}
	}
}
