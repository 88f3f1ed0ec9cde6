package httpconn

import (
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// leastSecret is the length of the shortest secret that is looked for, in
// bytes: a shorter one would take ordinary text apart.
const leastSecret = 4

// newRedactor replaces secrets, in the spellings that targets echo them in:
// longest first, so that none hides in another.
func newRedactor(secrets []string) *strings.Replacer {
	var all []string
	for _, s := range secrets {
		if len(s) >= leastSecret {
			all = append(all, spellings(s)...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.SortStableFunc(all, func(x, y string) int { return len(y) - len(x) })
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}

// spellings is a text as it stands, within JSON (plain, and with the escapes
// that common encoders add), within a page, and within a URL.
func spellings(s string) []string {
	list := []string{s, url.QueryEscape(s), url.PathEscape(s)}
	quoted := []string{string(gatehouse.StringJSON(s))}
	if b, err := json.Marshal(s); err == nil { // <, > and & as \u003c, …
		quoted = append(quoted, string(b))
	}
	for _, q := range quoted {
		q = q[1 : len(q)-1]
		list = append(list, q, strings.ReplaceAll(q, "/", `\/`))
	}
	page := html.EscapeString(s)
	return append(list, page, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#039;").Replace(page))
}

// shown is a JSON value without the secrets, as JSON again.
func (c *Connector) shown(j gatehouse.JSON) gatehouse.JSON {
	text := c.redactor.Replace(string(j))
	if text == string(j) {
		return j
	}
	value, err := gatehouse.Canonicalize([]byte(text))
	if err != nil { // a secret that stood as a bare number
		return gatehouse.StringJSON(text)
	}
	return value
}
