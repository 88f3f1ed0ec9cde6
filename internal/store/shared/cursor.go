package shared

import (
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// The kinds of list that a cursor can belong to.
const (
	KindNewest     = "n"
	KindUrgency    = "u"
	KindPushes     = "p"
	KindMirror     = "m"
	KindCorpus     = "c"
	KindPrincipals = "r"
	KindSessions   = "s"
	KindNotices    = "t"

	KindNotifications = "o"
)

// Buckets is the number of due buckets in the order by urgency.
const Buckets = 4

// maxCursor bounds the length of a cursor that is decoded.
const maxCursor = 1024

// Cursor is the position in a list after which the next page begins: the last
// row of the previous page, in terms of the list's order. It is opaque to
// callers and needs no secrecy: a cursor can only narrow a query that is bound
// to the caller's tenant.
type Cursor struct {
	Kind string `json:"k"`
	// Filter binds the cursor to the tenant and the filter of its first page.
	Filter uint64 `json:"f"`
	ID     string `json:"i,omitempty"`
	// Seq is a row number. In the order by urgency it is 1 when many more rows
	// are known to have the same bucket and risk.
	Seq int64 `json:"s,omitempty"`
	// AsOf, Bucket and Risk are used by the order by urgency. The buckets are
	// relative to AsOf, the clock reading of the first page.
	AsOf   int64 `json:"t,omitempty"`
	Bucket int   `json:"b,omitempty"`
	Risk   int   `json:"r,omitempty"`
}

// Encode returns the text of the cursor for callers.
func (c Cursor) Encode() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and integers only
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor reads a cursor of a list and filter; "" is the first page. It
// rejects any other cursor with code invalid.
func ParseCursor(s, kind string, filter ...string) (c Cursor, err error) {
	if s == "" {
		return Cursor{}, nil
	}
	bad := gatehouse.Violations{{Pointer: "/query/cursor", Detail: "is not a cursor of this list"}}.Err()
	if len(s) > maxCursor {
		return c, bad
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return c, bad
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || c.Encode() != s {
		return Cursor{}, bad
	}
	if c.Kind != kind || c.Filter != FilterHash(filter) || c.Bucket < 0 || c.Bucket >= Buckets || c.Risk < 0 ||
		c.Risk > 5 || c.AsOf < 0 || c.Seq < 0 || c.ID == "" && c.Seq == 0 {
		return Cursor{}, bad
	}
	return c, nil
}

// FilterHash hashes a tenant and filter for a cursor.
func FilterHash(parts []string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// PageLimit returns the page size for a requested limit.
func PageLimit(n int) int {
	if n <= 0 {
		return gatehouse.DefaultLimit
	}
	return min(n, gatehouse.MaxLimit)
}

// Finish trims a page that was read with one extra row, and sets its cursor.
func Finish[T any](
	page gatehouse.Page[T], limit int, at func(T) Cursor, kind string, filter ...string,
) gatehouse.Page[T] {
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		c := at(page.Items[limit-1])
		c.Kind, c.Filter = kind, FilterHash(filter)
		page.NextCursor = c.Encode()
	}
	return page
}
