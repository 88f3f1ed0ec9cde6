package rest

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Text is the text of an object's member, or the digits of a number; "" for anything else.
func Text(j gatehouse.JSON, name string) string {
	value, _ := j.Get(name)
	if s, ok := value.Text(); ok {
		return s
	}
	if d, ok := value.Number(); ok {
		return string(d)
	}
	return ""
}

// With sets a member of an object.
func With(j gatehouse.JSON, name string, value gatehouse.JSON) gatehouse.JSON {
	members, _ := j.Fields()
	members = slices.DeleteFunc(members, func(m gatehouse.Member) bool { return m.Name == name })
	return gatehouse.ObjectJSON(append(members, gatehouse.Member{Name: name, Value: value})...)
}

// Brief shortens a value for a person to about 200 characters.
func Brief(j gatehouse.JSON) string {
	r := []rune(string(j))
	if len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return string(r)
}

// Invalid is the failure of a call that can never be carried out.
func Invalid(v gatehouse.Violations) *connector.Error {
	err := v.Err()
	return &connector.Error{
		Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: err.Error(), Err: err,
	}
}

// NotSent is the failure of a change that was not sent.
func NotSent(code, detail string) *connector.Error {
	return &connector.Error{Kind: connector.NotSent, Code: code, Detail: detail}
}

// Changed is the failure of a change whose target differs from the proposal.
func Changed(s connector.State) *connector.Error {
	return &connector.Error{
		Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged),
		Detail: "the target is not as the proposal says: expected " + Brief(s.Expected) + ", is " + Brief(s.Actual),
	}
}
