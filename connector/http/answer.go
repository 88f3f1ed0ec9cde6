package httpconn

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// answerBody is the JSON of an answer, "" when there is none.
type answerBody struct{ json gatehouse.JSON }

// at resolves a JSON pointer (RFC 6901).
func (d answerBody) at(p Pointer) (gatehouse.JSON, bool) { return d.json.At(string(p)) }

// plain is the content of a string, or the JSON of any other value.
func plain(j gatehouse.JSON) string {
	if s, ok := j.Text(); ok {
		return s
	}
	return string(j)
}

func (m *match) matches(call connector.Call, doc answerBody) bool {
	got, ok := doc.at(m.pointer)
	if !ok || m.equals == nil {
		return ok
	}
	want, err := m.equals.render(values{call: call})
	return err == nil && (want.Equal(got) || plain(want) == plain(got))
}

// version finds the version in an answer.
func (s *source) version(a *rest.Answer, doc answerBody) (string, bool) {
	if s == nil {
		return "", false
	}
	if s.header != "" {
		v := a.Header.Get(s.header)
		return v, v != ""
	}
	j, ok := doc.at(*s.pointer)
	return plain(j), ok
}

// sameVersion compares versions: as texts, as entity-tags with and without
// quotes, or as numbers.
func sameVersion(a, b string) bool {
	if a == b || strings.Trim(a, `"`) == strings.Trim(b, `"`) {
		return true
	}
	x, errX := gatehouse.ParseDecimal(a)
	y, errY := gatehouse.ParseDecimal(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// reversal describes the change that reverses an applied one. It is nil if there is none, or if Validate refuses it:
// the target's answer may name an id that cannot be part of a path.
func (c *Connector) reversal(
	op *operation, call connector.Call, a *rest.Answer, doc answerBody, externalID string,
) *gatehouse.Reversal {
	r := op.reverse
	if r == nil {
		return nil
	}
	rev := &gatehouse.Reversal{Operation: r.operation, Target: call.Target, CurrentState: call.ProposedChange}
	rev.Target.Version = ""
	v := values{call: call, extra: map[string]gatehouse.JSON{}}
	if externalID != "" {
		v.extra["external_id"] = gatehouse.StringJSON(externalID)
	}
	if r.ref != nil {
		ref, err := r.ref.render(v, verbatim)
		if err != nil || ref == "" {
			return nil
		}
		rev.Target.EntityRef, rev.Target.EntityRefs = ref, nil
	}
	if r.version != nil {
		version, ok := r.version.version(a, doc)
		if !ok {
			return nil
		}
		rev.Target.Version = version
	}
	var ok bool
	if rev.ProposedChange, ok = r.undo(call, v); !ok {
		return nil
	}
	undo := connector.Call{Operation: rev.Operation, Target: rev.Target, CurrentState: rev.CurrentState,
		ProposedChange: rev.ProposedChange}
	if c.Validate(undo) != nil {
		return nil
	}
	return rev
}

func (r *reverse) undo(call connector.Call, v values) (gatehouse.JSON, bool) {
	if r.change != nil {
		j, err := r.change.render(v)
		return j, err == nil
	}
	fields, err := call.ProposedChange.Fields()
	if err != nil || len(fields) == 0 {
		return "", false
	}
	for i, f := range fields {
		old, ok := call.CurrentState.Get(f.Name)
		if !ok {
			return "", false
		}
		fields[i].Value = old
	}
	return gatehouse.ObjectJSON(fields...), true
}
