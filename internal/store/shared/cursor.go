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
	KindNewest        = "n"
	KindUrgency       = "u"
	KindPushes        = "p"
	KindMirror        = "m"
	KindCorpus        = "c"
	KindPrincipals    = "r"
	KindSessions      = "s"
	KindNotices       = "t"
	KindNotifications = "o"
	KindRuns          = "w"
	KindWorkflows     = "f"
	KindReflexions    = "x"
	KindArchive       = "a"
)

// maxCursor bounds the length of a cursor, in bytes.
const maxCursor = 1024

// maxAsOf bounds the time of a cursor, in microseconds: far from an overflow when a bucket's end is added.
const maxAsOf = 1 << 60

// Cursor is the position in a list after which the next page begins. It holds the sort-key values of the
// previous page's last row. To callers it is an opaque text. A forged cursor can only narrow a query that is
// bound to the caller's tenant.
type Cursor struct {
	Kind string `json:"k"`
	// Filter binds the cursor to the tenant and the filter of its first page.
	Filter uint64 `json:"f"`
	ID     string `json:"i,omitempty"`
	// Seq is a row number; in the order by urgency it is [Place].Large instead, as 0 or 1.
	Seq int64 `json:"s,omitempty"`
	// AsOf is, in the order by urgency, the clock reading of the first page, to which the buckets are relative.
	// In a list of runs, it is the time when the row's run was created. Bucket and Risk are set in the order by
	// urgency only.
	AsOf   int64 `json:"t,omitempty"`
	Bucket int   `json:"b,omitempty"`
	Risk   int   `json:"r,omitempty"`
}

// Encode returns the text that callers get.
func (c Cursor) Encode() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // impossible: the fields are texts and integers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor decodes the text of a cursor; "" is the first page. The error has code invalid if the text
// is not a cursor of this kind of list with this filter.
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
	sameList := c.Kind == kind && c.Filter == FilterHash(filter)
	inRange := 0 <= c.Bucket && c.Bucket < len(BucketEnds) && 0 <= c.Risk && c.Risk <= 5 &&
		0 <= c.AsOf && c.AsOf < maxAsOf && c.Seq >= 0
	namesRow := c.ID != "" || c.Seq != 0
	if !sameList || !inRange || !namesRow {
		return Cursor{}, bad
	}
	return c, nil
}

// FilterHash hashes a tenant and a filter for Cursor.Filter.
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

// Finish completes a page that was read with one row more than limit. If that row exists, Finish removes it
// and sets the page's next cursor. position returns the cursor of an item, without kind and filter.
func Finish[T any](
	page gatehouse.Page[T], limit int, position func(T) Cursor, kind string, filter ...string,
) gatehouse.Page[T] {
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		c := position(page.Items[limit-1])
		c.Kind, c.Filter = kind, FilterHash(filter)
		page.NextCursor = c.Encode()
	}
	return page
}
