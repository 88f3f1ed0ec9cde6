package connector

import (
	"context"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Previewer asks the target what a call would do, without an effect: by a dry run that
// the target documents, or in a transaction that is rolled back. The target is the same
// afterwards, byte for byte.
//
// If the target would refuse the change, Preview returns a [gatehouse.Preview] with a Failure, and
// no error. If nothing can be said about a call, the preview has None set. Preview does not shorten
// the result and does not set AskedAt; its caller does both.
type Previewer interface {
	// Previews reports whether Preview can ask the target about a call. It makes no
	// call to the target.
	Previews(c Call) bool
	Preview(ctx context.Context, c Call) (gatehouse.Preview, error)
}

// PreviewOfError returns the result of a preview that failed. An error of kind Terminal becomes the
// Failure of the preview, because the call itself would fail in the same way; any other error is
// returned as an error.
func PreviewOfError(e *Error) (gatehouse.Preview, error) {
	if e.Kind != Terminal {
		return gatehouse.Preview{}, e
	}
	return gatehouse.Preview{
		Failure: &gatehouse.PreviewFailure{Code: e.Code, Detail: e.Detail, TargetSays: e.Says},
	}, nil
}

// PreviewChanges compares an object before and after a change with the proposed change,
// field by field. A proposed null stands for an absent field. same reports whether a
// proposed value and the value after the change are equivalent.
func PreviewChanges(ref string, before, after, proposed gatehouse.JSON,
	same func(proposed, after gatehouse.JSON) bool) []gatehouse.PreviewChange {
	d := differ{ref: ref, same: same}
	d.compare("", before, after, proposed)
	return d.out
}

type differ struct {
	ref  string
	same func(proposed, after gatehouse.JSON) bool
	out  []gatehouse.PreviewChange
}

// compare appends the differences of a part of the tree; "" is an absent part, or a part that the
// change does not name.
func (d *differ) compare(path string, before, after, proposed gatehouse.JSON) {
	if isTree(before) && isTree(after) && (proposed == "" || proposed.IsObject()) &&
		(before.IsObject() || after.IsObject() || proposed.IsObject()) {
		was, will, want := members(before), members(after), members(proposed)
		for _, name := range slices.Sorted(maps.Keys(union(was, will, want))) {
			d.compare(path+gatehouse.JoinPointer(name), was[name], will[name], want[name])
		}
		return
	}
	fits := proposed == "" || d.same(proposed, orNull(after))
	if fits && orNull(before).Equal(orNull(after)) {
		return
	}
	c := gatehouse.PreviewChange{Ref: d.ref, Path: path, Before: before, After: after, How: gatehouse.PreviewAsProposed}
	switch {
	case proposed == "":
		c.How = gatehouse.PreviewAlso
	case !fits:
		c.How, c.Proposed = gatehouse.PreviewDiffers, proposed
	}
	d.out = append(d.out, c)
}

// isTree reports whether a value is an object, or absent.
func isTree(j gatehouse.JSON) bool { return j == "" || j == "null" || j.IsObject() }

func members(j gatehouse.JSON) map[string]gatehouse.JSON {
	fields, _ := j.Fields()
	out := make(map[string]gatehouse.JSON, len(fields))
	for _, m := range fields {
		out[m.Name] = m.Value
	}
	return out
}

func union(all ...map[string]gatehouse.JSON) map[string]gatehouse.JSON {
	out := make(map[string]gatehouse.JSON)
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

func orNull(j gatehouse.JSON) gatehouse.JSON {
	if j == "" {
		return "null"
	}
	return j
}
