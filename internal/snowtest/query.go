package snowtest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// filter is one part of an encoded query: a condition, or an order.
type filter struct{ field, operator, value string }

var (
	condition = regexp.MustCompile(`^([a-z0-9_]+)(!=|=|LIKE|STARTSWITH|ENDSWITH)(.*)$`)
	fieldName = regexp.MustCompile(`^[a-z0-9_]+`)
)

// parseQuery reads an encoded query. A part that names no field is ignored, as documented for
// instances with the default settings. A part with an operator that the fake lacks is refused.
func parseQuery(t *table, query string) ([]filter, *failure) {
	var filters []filter
	for part := range strings.SplitSeq(query, "^") {
		switch {
		case part == "":
			continue
		case strings.HasPrefix(part, "OR") && !strings.HasPrefix(part, "ORDERBY"), strings.HasPrefix(part, "NQ"),
			strings.Contains(part, "javascript:"):
			return nil, unsupported("^" + part)
		}
		f := filter{operator: "ORDERBYDESC"}
		if name, ok := strings.CutPrefix(part, "ORDERBYDESC"); ok {
			f.field = name
		} else if name, ok := strings.CutPrefix(part, "ORDERBY"); ok {
			f.field, f.operator = name, "ORDERBY"
		} else if m := condition.FindStringSubmatch(part); m != nil {
			f = filter{m[1], m[2], m[3]}
		} else if _, ok := t.fields[fieldName.FindString(part)]; ok {
			return nil, unsupported("^" + part)
		}
		if _, ok := t.fields[f.field]; ok {
			filters = append(filters, f)
		}
	}
	return filters, nil
}

func (f filter) matches(r *record) bool {
	v := r.values[f.field]
	switch f.operator {
	case "=":
		return v == f.value
	case "!=":
		return v != f.value
	case "LIKE":
		return strings.Contains(v, f.value)
	case "STARTSWITH":
		return strings.HasPrefix(v, f.value)
	case "ENDSWITH":
		return strings.HasSuffix(v, f.value)
	}
	return true // an order
}

// find returns the records that meet every condition, in the order asked for.
func find(t *table, filters []filter) []*record {
	var found []*record
	for _, id := range t.order {
		r := t.records[id]
		if !slices.ContainsFunc(filters, func(f filter) bool { return !f.matches(r) }) {
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b *record) int {
		for _, f := range filters {
			c := cmp.Compare(a.values[f.field], b.values[f.field])
			switch {
			case c == 0:
			case f.operator == "ORDERBY":
				return c
			case f.operator == "ORDERBYDESC":
				return -c
			}
		}
		return 0
	})
	return found
}
