package rest

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Text returns the text of a member that is a string or a number; "" for anything else.
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

// TextOf returns the text of a member that is a string; false for anything else.
func TextOf(j gatehouse.JSON, name string) (string, bool) {
	value, _ := j.Get(name)
	return value.Text()
}

// With returns the object with a member set.
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
func Invalid(err error) *connector.Error {
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
	return TargetChanged(
		"the target is not as the proposal says: expected " + Brief(s.Expected) + ", found " + Brief(s.Actual))
}

// TargetChanged is the failure of a change that the target's state rules out.
func TargetChanged(detail string) *connector.Error {
	return &connector.Error{Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged), Detail: detail}
}

// NoState is the failure to read a state that the connector cannot read.
func NoState() *connector.Error {
	return &connector.Error{
		Kind: connector.Terminal, Code: "unsupported", Detail: "the connector cannot read the state of this target",
	}
}

// Found is the response metadata of a call that found the effect of an earlier call.
func Found(what gatehouse.JSON) gatehouse.JSON {
	return gatehouse.ObjectJSON(gatehouse.Member{Name: "found", Value: what})
}

// MadeBefore is the result of a call whose effect is there already.
func MadeBefore(id string) connector.Result {
	return connector.Result{ExternalID: id, ResponseMetadata: Found(gatehouse.StringJSON(id))}
}

// Compare compares the pre-image of a call with the target. look returns the present value of a member,
// and whether it is the same.
func Compare(call connector.Call, look func(gatehouse.Member) (got gatehouse.JSON, same bool)) connector.State {
	members, _ := call.CurrentState.Fields()
	var expected, actual []gatehouse.Member
	for _, m := range members {
		if got, same := look(m); !same {
			expected = append(expected, m)
			actual = append(actual, gatehouse.Member{Name: m.Name, Value: got})
		}
	}
	if expected == nil {
		return connector.State{Matches: true}
	}
	return connector.State{Expected: gatehouse.ObjectJSON(expected...), Actual: gatehouse.ObjectJSON(actual...)}
}

// OtherVersion is the state of a target whose version is not the expected one.
func OtherVersion(expected, actual string) connector.State {
	return connector.State{Expected: gatehouse.StringJSON(expected), Actual: gatehouse.StringJSON(actual)}
}

// Select makes an object of the named members, each once; "" without names.
func Select(names []string, value func(name string) gatehouse.JSON) gatehouse.JSON {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var members []gatehouse.Member
	for _, name := range slices.Compact(names) {
		members = append(members, gatehouse.Member{Name: name, Value: value(name)})
	}
	return gatehouse.ObjectJSON(members...)
}
