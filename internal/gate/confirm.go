package gate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// salientFields are the fields of a change that matter most to an approver, the most important first.
var salientFields = []string{"amount", "total", "price", "name", "company_name", "companyname", "title"}

// maxRetyped bounds the retyped value of a field that is not in salientFields, in bytes. People copy longer
// values, such as record ids, without reading them.
const maxRetyped = 24

// confirmation chooses the value that an approver must retype at L4 and L5. It is the first of these that the
// action has, and that a person can type:
//
//   - the number of affected records, or the largest possible number
//   - the number of actions approved in advance
//   - the new value of one of salientFields
//   - the new value of the only changed field, if it is short
//   - the reference of the target
//   - the beginning of the digest
//
// All values come from the payload, never from the magnitude that the proposer claims.
func confirmation(a *gatehouse.Action) *gatehouse.Confirm {
	if !a.RiskLevel.NeedsConfirmation() {
		return nil
	}
	if n := len(a.Target.EntityRefs); n > 0 {
		return &gatehouse.Confirm{Value: strconv.Itoa(n),
			Prompt: fmt.Sprintf("Type %d, the number of %s records affected", n, label(a.Target.EntityType))}
	}
	if n := card.MaxRows(a); n > 0 {
		prompt := fmt.Sprintf("Type %d, the largest number of %s records affected", n, label(a.Target.EntityType))
		return &gatehouse.Confirm{Value: strconv.Itoa(n), Prompt: prompt}
	}
	if a.Connector == PolicyConnector && a.Operation == MandateOperation {
		if all, ok := a.ProposedChange.Get("in_all"); ok {
			n, _ := all.Get("count")
			prompt := fmt.Sprintf("Type %s, the number of actions approved in advance", n)
			return &gatehouse.Confirm{Value: string(n), Prompt: prompt}
		}
	}
	for _, field := range salientFields {
		if v, ok := a.ProposedChange.Get(field); ok {
			if c := confirmField(field, v); c != nil {
				return c
			}
		}
	}
	if field, v, ok := onlyChange(a); ok {
		if c := confirmField(field, v); c != nil && len(c.Value) <= maxRetyped {
			return c
		}
	}
	if ref := a.Target.EntityRef; typeable(ref) {
		return &gatehouse.Confirm{Value: ref,
			Prompt: fmt.Sprintf("Type %s, the %s affected", ref, label(a.Target.EntityType))}
	}
	short := strings.TrimPrefix(string(a.Digest), "sha256:")[:8]
	return &gatehouse.Confirm{Value: short, Prompt: "Type " + short + ", the beginning of the digest"}
}

// confirmField asks the approver to retype the new value of a field. It returns nil when the value is neither
// text nor a number, or cannot be typed.
func confirmField(field string, v gatehouse.JSON) *gatehouse.Confirm {
	text, ok := v.Text()
	if !ok {
		if _, isNumber := v.Number(); !isNumber {
			return nil
		}
		text = string(v)
	}
	if !typeable(text) {
		return nil
	}
	return &gatehouse.Confirm{Value: text, Prompt: fmt.Sprintf("Type the new %s %s", label(field), text)}
}

// onlyChange returns the only field whose value changes. ok is false when no field changes, or several do.
func onlyChange(a *gatehouse.Action) (field string, value gatehouse.JSON, ok bool) {
	fields, err := a.ProposedChange.Fields()
	if err != nil {
		return "", "", false
	}
	for _, f := range fields {
		if was, known := a.CurrentState.Get(f.Name); known && was.Equal(f.Value) {
			continue
		}
		if ok {
			return "", "", false
		}
		field, value, ok = f.Name, f.Value, true
	}
	return field, value, ok
}

// wantsReason reports whether the approval lacks a required reason. At L5, every approver after the first must give
// a reason in the console, which hides the earlier reasons until then. Callers without a session decide outside the
// console, so their notes are optional.
func (r *ruling) wantsReason() bool {
	return r.caller.Session != nil && r.action.RiskLevel > gatehouse.L4 &&
		r.action.Approval.Approvals() > 0 && strings.TrimSpace(r.decision.Notes) == ""
}

// typeable reports whether a person can see and retype a text: it is short, and consists of letters, digits,
// punctuation, symbols, and single spaces between them.
func typeable(s string) bool {
	if s == "" || len(s) > 128 || strings.TrimSpace(s) != s || strings.Contains(s, "  ") {
		return false
	}
	for _, r := range s {
		if r != ' ' && !unicode.IsGraphic(r) || r != ' ' && unicode.IsSpace(r) || r == unicode.ReplacementChar {
			return false
		}
	}
	return true
}

// label returns a name from the payload for a prompt, quoted if a person could not type it.
func label(s string) string {
	if typeable(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}
