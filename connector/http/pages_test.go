package httpconn_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// TestReadBackPages: the effect is found on the third page, however the target leads there, and
// neither another origin nor more pages than configured are read.
func TestReadBackPages(t *testing.T) {
	t.Parallel()
	var foreign atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for name, test := range map[string]struct {
		pages  httpconn.Pages
		path   string // of the first page; /list without it
		all    int    // the elements of the list; the effect is the ninth
		reads  int64
		code   string
		absent bool
	}{
		"link":            {httpconn.Pages{Next: "link"}, "", 20, 3, "", false},
		"cursor":          {httpconn.Pages{Items: "/data", Next: "/next", Parameter: "after"}, "", 20, 3, "", false},
		"address":         {httpconn.Pages{Items: "/data", Next: "/url"}, "", 20, 3, "", false},
		"offset":          {httpconn.Pages{Items: "/data", Next: "offset", Parameter: "after"}, "", 20, 3, "", false},
		"last page":       {httpconn.Pages{Items: "/data", Next: "/next", Parameter: "after"}, "", 7, 2, "", true},
		"last offset":     {httpconn.Pages{Items: "/data", Next: "offset", Parameter: "after"}, "", 8, 3, "", true},
		"too many":        {httpconn.Pages{Next: "link", Max: 2}, "", 20, 2, "too_many_pages", true},
		"another origin":  {httpconn.Pages{Next: "link"}, "/foreign", 20, 1, "page_refused", true},
		"another address": {httpconn.Pages{Items: "/data", Next: "/url"}, "/foreign", 20, 1, "page_refused", true},
		"no list":         {httpconn.Pages{Items: "/none", Next: "link"}, "/single", 20, 1, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reads atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reads.Add(1)
				after, _ := strconv.Atoi(r.URL.Query().Get("after"))
				if r.Header.Get("Authorization") != "Bearer "+token || r.URL.Query().Get("limit") != "4" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				end := min(after+4, test.all)
				list := []any{}
				for n := after; n < end; n++ {
					list = append(list, map[string]any{"id": n, "key": fmt.Sprint("key-", n), "status": "won"})
				}
				next, u := any(nil), any(nil)
				if end < test.all && r.URL.Path != "/single" {
					address := fmt.Sprintf("/list?limit=4&after=%d", end)
					if r.URL.Path == "/foreign" {
						address = elsewhere.URL + address
					}
					next, u = end, address
					w.Header().Add("Link", `<https://x.example/a,b>; rel="last"; title="a, b", <`+address+`>; rel="prefetch next"`)
				}
				var answer any = map[string]any{"data": list, "next": next, "url": u}
				if test.pages.Items == "" {
					answer = list
				}
				_ = json.NewEncoder(w).Encode(answer)
			}))
			t.Cleanup(s.Close)
			path := "/list"
			if test.path != "" {
				path = test.path
			}
			pages := test.pages
			c := newConnector(t, httpconn.Config{
				BaseURL: s.URL, AllowPrivate: true, Auth: &httpconn.Auth{Bearer: &connector.Secret{Secret: "CRM_TOKEN"}},
				Operations: map[string]httpconn.Operation{"update": {
					Method: "POST", Path: "/x", ReadBack: &httpconn.ReadBack{
						Path: path + "?limit=4", JSON: &httpconn.Match{Pointer: "/key", Equals: text("key-8")},
						Change: pointer(""), ExternalID: pointer("/id"), Pages: &pages,
					},
				}},
			})
			finding, res, err := c.ReadBack(t.Context(), call(`{"status":"won"}`))
			code := ""
			if err != nil {
				code = failure(t, err).Code
			}
			want := connector.Present
			if test.absent {
				want = connector.Inconclusive
			}
			if finding != want || code != test.code || reads.Load() != test.reads || foreign.Load() != 0 ||
				want == connector.Present && (res.ExternalID != "8" ||
					!strings.Contains(string(res.ResponseMetadata), `"body":{"id":8,`)) {
				t.Errorf("%v, %+v, %v after %d reads", finding, res, err, reads.Load())
			}
		})
	}
}

func TestPagesConfig(t *testing.T) {
	t.Parallel()
	for want, pages := range map[string]httpconn.Pages{
		"read_back.pages.next":      {Next: "cursor"},
		"read_back.pages.parameter": {Next: "link", Parameter: "page"},
		"read_back.pages.max":       {Next: "link", Max: 51},
		"read_back.pages.items":     {Next: "link", Items: "data"},
		"read_back.pages: needs":    {Next: "link"},
	} {
		match := &httpconn.Match{Pointer: "/key"}
		if strings.HasSuffix(want, "needs") {
			match = nil
		}
		_, err := httpconn.New(t.Context(), httpconn.Config{
			BaseURL: "https://crm.example", Operations: map[string]httpconn.Operation{"update": {
				Method: "POST", Path: "/x",
				ReadBack: &httpconn.ReadBack{Path: "/list/{idempotency_key}", JSON: match, Pages: &pages},
			}},
		}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
