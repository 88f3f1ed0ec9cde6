package servicenow

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// change carries out update and assign.
func (c *Connector) change(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	before, failed := c.before(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	names := connector.Fields(call.ProposedChange)
	for _, name := range names {
		if _, ok := before.value(name); !ok {
			return connector.Result{}, &connector.Error{
				Kind: connector.Terminal,
				Code: string(gatehouse.CodeInvalid),
				Detail: "the record shows no field " + gatehouse.Quote(name) +
					": there is none, or this user may not read it",
			}
		}
	}
	body, _ := call.ProposedChange.Fields()
	if c.condition != "" {
		body = append(body, gatehouse.Member{Name: c.condition, Value: gatehouse.StringJSON(call.Target.Version)})
	}
	res, a, failed := c.api.Do(ctx, http.MethodPatch, recordPath(call.Target), fieldParameters(names...), nil,
		gatehouse.ObjectJSON(body...))
	if failed != nil {
		return res, failed
	}
	result, failed := resultOf(a)
	if failed != nil {
		if a.Status == http.StatusForbidden && c.condition != "" {
			failed = c.refused(ctx, call, failed)
		}
		return res, failed
	}
	after := record{result}
	res.ExternalID = after.externalID()
	if failed := notAsApproved(call, before, after); failed != nil {
		failed.Says = a.Text(a.JSON())
		return res, failed
	}
	res.Reversal = undo(call, before, after)
	return res, nil
}

// refused explains a 403 from an instance with the business rule: a rule, an ACL or a data policy
// refuses the write, or the record has another version or no longer exists.
func (c *Connector) refused(ctx context.Context, call connector.Call, failed *connector.Error) *connector.Error {
	now, gone, unread := c.read(ctx, call)
	switch {
	case unread != nil:
	case gone:
		failed.Code = string(gatehouse.CodeTargetChanged)
		failed.Detail = "the record does not exist, or this user may not read it"
	case now.version() != call.Target.Version:
		failed.Code = string(gatehouse.CodeTargetChanged)
		failed.Detail = fmt.Sprintf("the record has sys_mod_count %s, not %s", now.version(), call.Target.Version)
	}
	return failed
}

// notAsApproved compares a record with the approved change. If the record shows its version, and neither
// the version nor an approved field differs from before, the instance has ignored the write.
func notAsApproved(call connector.Call, before, after record) *connector.Error {
	members, _ := call.ProposedChange.Fields()
	var wrong []string
	done := before.version() != after.version() || after.version() == ""
	for _, m := range members {
		shown, ok := after.value(m.Name)
		was, _ := before.value(m.Name)
		done = done || ok && shown != was
		switch {
		case !ok:
			wrong = append(wrong, m.Name+" is not shown")
		case !same(m.Value, shown) && !rest.SameText(plain(m.Value), shown):
			wrong = append(wrong,
				fmt.Sprintf("%s is %s instead of %s", m.Name, gatehouse.Quote(shown), clip(plain(m.Value))))
		}
	}
	if wrong == nil {
		return nil
	}
	e := &connector.Error{
		Code: "not_as_approved", Detail: "the record is not as approved: " + strings.Join(wrong, "; "),
	}
	if !done {
		e.Kind, e.Detail = connector.Terminal, "the instance has dropped the change: "+strings.Join(wrong, "; ")
	}
	return e
}

func clip(s string) string {
	if r := []rune(s); len(r) > 100 {
		s = string(r[:100]) + "…"
	}
	return gatehouse.Quote(s)
}

// undo returns the change that restores the changed fields to the values that were read just before.
func undo(call connector.Call, before, after record) *gatehouse.Reversal {
	names := connector.Fields(call.ProposedChange)
	rev := &gatehouse.Reversal{
		Operation: call.Operation, Target: call.Target,
		CurrentState: after.fields(names), ProposedChange: before.fields(names),
	}
	rev.Target.Version = after.version()
	return rev
}
