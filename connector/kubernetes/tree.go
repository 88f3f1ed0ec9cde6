package kubernetes

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// API objects are trees. In a list whose elements all have a name, such as the containers of a pod,
// the name identifies an element, whatever its position; other lists are compared as a whole. In a
// change, null means that the member must be absent.

// elements are the elements of a list; false for anything else.
func elements(j gatehouse.JSON) ([]gatehouse.JSON, bool) {
	if len(j) == 0 || j[0] != '[' {
		return nil, false
	}
	all, err := j.Elements()
	return all, err == nil
}

// named maps the elements of a list by name; nil unless all have a unique name.
func named(j gatehouse.JSON) map[string]gatehouse.JSON {
	all, ok := elements(j)
	if !ok || len(all) == 0 {
		return nil
	}
	out := make(map[string]gatehouse.JSON, len(all))
	for _, e := range all {
		name, ok := e.Get("name")
		s, isText := name.Text()
		if _, twice := out[s]; !ok || !isText || twice {
			return nil
		}
		out[s] = e
	}
	return out
}

func get(j gatehouse.JSON, path ...string) gatehouse.JSON {
	for _, name := range path {
		next, ok := j.Get(name)
		if !ok {
			return "null"
		}
		j = next
	}
	return j
}

func isEmpty(j gatehouse.JSON) bool { return j == "null" || j == "[]" || j == "{}" || j == "" }

// differs lists where a tree lacks an approved value. Additional values are ignored, because the
// server adds defaults.
func differs(path string, approved, shown gatehouse.JSON) []string {
	if approved.Equal(shown) || isEmpty(approved) && isEmpty(shown) {
		return nil
	}
	if approved.IsObject() && (shown.IsObject() || isEmpty(shown)) {
		var out []string
		members, _ := approved.Fields() // in a missing object, each member counts as null
		for _, m := range members {
			out = append(out, differs(path+"."+m.Name, m.Value, get(shown, m.Name))...)
		}
		return out
	}
	all, isList := elements(approved)
	others, isListToo := elements(shown)
	if isList && isListToo {
		var out []string
		if names, theirs := named(approved), named(shown); names != nil && theirs != nil {
			for _, e := range all {
				name := rest.Text(e, "name")
				out = append(out, differs(path+"["+name+"]", e, orNull(theirs[name]))...)
			}
			return out
		}
		if len(all) == len(others) {
			for i, e := range all {
				out = append(out, differs(path+"["+string(gatehouse.MustJSON(i))+"]", e, others[i])...)
			}
			return out
		}
	}
	a, isNumber := approved.Number()
	b, isNumberToo := shown.Number()
	if isNumber && isNumberToo && a.Cmp(b) == 0 {
		return nil
	}
	return []string{path + " is " + rest.Brief(shown) + " instead of " + rest.Brief(approved)}
}

func orNull(j gatehouse.JSON) gatehouse.JSON {
	if j == "" {
		return "null"
	}
	return j
}

// outside lists the values that a write would change or remove beyond the approved change. Added
// values, such as defaults, are left out. change is "" if the change does not name this part.
func outside(path string, change, was, will gatehouse.JSON) []string {
	if was.Equal(will) {
		return nil
	}
	if was.IsObject() && will.IsObject() && (change == "" || change.IsObject()) {
		var out []string
		members, _ := was.Fields()
		for _, m := range members {
			out = append(out, outside(path+"."+m.Name, member(change, m.Name), m.Value, get(will, m.Name))...)
		}
		return out
	}
	before, after := named(was), named(will)
	if before != nil && after != nil {
		var out []string
		approved := named(change)
		all, _ := elements(was)
		for _, e := range all {
			name := rest.Text(e, "name")
			now, there := after[name]
			if !there && change != "" {
				continue // a list in the change is complete: other elements are removed as approved
			}
			out = append(out, outside(path+"["+name+"]", approved[name], e, orNull(now))...)
		}
		return out
	}
	if change != "" {
		return nil // differs has compared it
	}
	if isEmpty(will) {
		return []string{path + " would be removed"}
	}
	return []string{path + " would be " + rest.Brief(will) + " instead of " + rest.Brief(was)}
}

func member(j gatehouse.JSON, name string) gatehouse.JSON {
	v, _ := j.Get(name)
	return v
}

// restoringChange is the change that restores a tree after change. For each value that change names, it has the
// previous value, or null if there was none. For a list of named elements, it has the previous elements
// that change names or has removed.
func restoringChange(change, was, now gatehouse.JSON) gatehouse.JSON {
	if isEmpty(was) {
		return "null"
	}
	if change.IsObject() && was.IsObject() && change != "{}" {
		members, _ := change.Fields()
		out := make([]gatehouse.Member, len(members))
		for i, m := range members {
			out[i] = gatehouse.Member{Name: m.Name, Value: restoringChange(m.Value, get(was, m.Name), get(now, m.Name))}
		}
		return gatehouse.ObjectJSON(out...)
	}
	approved, before := named(change), named(was)
	if approved == nil || before == nil {
		return was
	}
	var out []gatehouse.JSON
	after := named(now)
	all, _ := elements(was)
	for _, e := range all {
		name := rest.Text(e, "name")
		_, still := after[name]
		if c, ok := approved[name]; ok {
			out = append(out, restoringChange(c, e, orNull(after[name])))
		} else if !still {
			out = append(out, e)
		}
	}
	if out == nil {
		return "null"
	}
	return gatehouse.ArrayJSON(out...)
}

// withoutNull converts a change to a manifest: members that are null are left out.
func withoutNull(j gatehouse.JSON) gatehouse.JSON {
	if all, ok := elements(j); ok {
		out := make([]gatehouse.JSON, len(all))
		for i, e := range all {
			out[i] = withoutNull(e)
		}
		return gatehouse.ArrayJSON(out...)
	}
	if !j.IsObject() {
		return j
	}
	members, _ := j.Fields()
	members = slices.DeleteFunc(members, func(m gatehouse.Member) bool { return m.Value == "null" })
	for i := range members {
		members[i].Value = withoutNull(members[i].Value)
	}
	return gatehouse.ObjectJSON(members...)
}

// both merges two trees; the second one wins where they differ.
func both(a, b gatehouse.JSON) gatehouse.JSON {
	if !a.IsObject() || !b.IsObject() {
		return b
	}
	members, _ := b.Fields()
	for _, m := range members {
		value := m.Value
		if had, ok := a.Get(m.Name); ok {
			value = both(had, value)
		}
		a = rest.With(a, m.Name, value)
	}
	return a
}
