package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// param is one query parameter of a route. An empty value counts as absent.
type param struct {
	name, doc string
	kind      paramKind
	enum      []string
	min, max  int64 // of integers; of text, max is its length in bytes
}

type paramKind int

const (
	paramText paramKind = iota
	paramInteger
	paramEnum
	paramWait
	paramTime
)

// check describes what is wrong with a value; "" for nothing.
func (p *param) check(v string) string {
	switch p.kind {
	case paramInteger:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < p.min || n > p.max {
			return fmt.Sprintf("must be an integer from %d to %d", p.min, p.max)
		}
	case paramEnum:
		if !slices.Contains(p.enum, v) {
			return "must be one of " + strings.Join(p.enum, ", ")
		}
	case paramWait:
		d, err := gatehouse.ParseDuration(v)
		if err != nil || d.D() > gatehouse.MaxWait {
			return "must be a duration such as 30s, at most 60s"
		}
	case paramTime:
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			return "must be a time such as 2026-01-02T15:04:05Z"
		}
	default:
		if int64(len(v)) > p.max {
			return fmt.Sprintf("is longer than %d bytes", p.max)
		}
	}
	return ""
}

// values are the checked parameters of a request.
type values map[string]string

// parseQuery checks a query against a route's parameters. Its errors point at
// /query/NAME.
func parseQuery(raw string, params []param) (values, error) {
	if raw == "" {
		return nil, nil
	}
	parsed, err := url.ParseQuery(raw)
	if err != nil {
		return nil, gatehouse.Violations{{Pointer: "/query", Detail: "is not a query string"}}.Err()
	}
	var v gatehouse.Violations
	out := make(values, len(parsed))
	for name, given := range parsed {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		switch {
		case i < 0:
			v.Add(pointerTo(name), "is not a parameter of this call")
		case len(given) > 1:
			v.Add(pointerTo(name), "is given more than once")
		case given[0] == "":
		default:
			if wrong := params[i].check(given[0]); wrong != "" {
				v.Add(pointerTo(name), "%s", wrong)
			}
			out[name] = given[0]
		}
	}
	slices.SortFunc(v, func(a, b gatehouse.Violation) int { return strings.Compare(a.Pointer, b.Pointer) })
	return out, v.Err()
}

// pointerTo returns the pointer for an error about a parameter.
func pointerTo(name string) string {
	at := "/query" + gatehouse.JoinPointer(name)
	if len(at) > maxPointer {
		at = strings.ToValidUTF8(at[:maxPointer], "") + "…"
	}
	return at
}

// integer returns a checked integer, or the fallback.
func (v values) integer(name string, fallback int64) int64 {
	if s, ok := v[name]; ok {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	}
	return fallback
}

func (v values) limit() int { return int(v.integer("limit", gatehouse.DefaultLimit)) }

func (v values) wait() time.Duration {
	d, err := gatehouse.ParseDuration(v["wait"])
	if err != nil {
		return 0
	}
	return d.D()
}

// time returns a checked time; nil for none.
func (v values) time(name string) *time.Time {
	at, err := time.Parse(time.RFC3339, v[name])
	if err != nil {
		return nil
	}
	return &at
}

// notInArchive returns an error if one of the filters, which the archive does not have, is given.
func (v values) notInArchive(filters ...string) error {
	var wrong gatehouse.Violations
	for _, name := range filters {
		if v[name] != "" {
			wrong.Add(pointerTo(name), "is not available in the archive")
		}
	}
	return wrong.Err()
}

var limitParam = param{name: "limit", kind: paramInteger, min: 1, max: gatehouse.MaxLimit,
	doc: "The maximum number of items; 50 by default."}

// paging returns the parameters of every list, plus more.
func paging(more ...param) []param {
	return append(more, limitParam, param{name: "cursor", max: 1024, doc: "next_cursor of the previous page."})
}

// words converts a domain enumeration to strings.
func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
