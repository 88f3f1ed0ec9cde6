package mcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// stateAnswer answers with the state of an action. final says that the answer has the
// action's outcome.
func (p *Proxy) stateAnswer(f *frame, a *gatehouse.Action, x *execution) (answer []byte, final bool) {
	if x != nil && x.result != nil {
		return resultFrame(f.id, withEdit(x.result, a)), true
	}
	if x != nil && x.failure != nil {
		if edit := editText(a); edit != "" {
			return p.gateResult(f, a.ID, string(gatehouse.StatusFailed),
				edit+"The server refused the call: "+clip(string(x.failure), gatehouse.MaxTargetSays)), true
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, f.id, x.failure), true
	}
	if a.Status == gatehouse.StatusApplied {
		if kept := keptResult(a.Receipt); kept != nil {
			return resultFrame(f.id, withEdit(kept, a)), true
		}
	}
	final = a.Status.Finished() && a.Status != gatehouse.StatusUnknown
	return p.gateResult(f, a.ID, string(a.Status), describe(a)), final
}

// describe tells a model the state of an action, and what the model can do.
func describe(a *gatehouse.Action) string { return editText(a) + standing(a) }

func standing(a *gatehouse.Action) string {
	of := fmt.Sprintf("The call of %s (%s)", a.Operation, a.ID)
	switch a.Status {
	case gatehouse.StatusPending:
		return of + " waits for a person's approval" + until(a) + " and has NOT been carried out yet. Call " +
			"gatehouse_wait with this action_id to wait for the outcome, or continue with other work. Calling the tool " +
			"again with the same arguments joins this action and does not ask twice." + questions(a)
	case gatehouse.StatusApproved, gatehouse.StatusPushing:
		return of + " is approved and about to be carried out. Call gatehouse_wait with this action_id for the outcome."
	case gatehouse.StatusDenied:
		return of + " was denied by the policy and not carried out: " + strings.Join(a.Policy.Reasons, "; ") +
			". The same call will be denied again; change the plan or ask the user."
	case gatehouse.StatusRejected:
		return of + " was rejected by " + a.DecidedBy + " and not carried out. " + notes(a) +
			"Do not try the same call again; take the reason into account or ask the user."
	case gatehouse.StatusExpired:
		return of + " expired: nobody decided in time, and it was not carried out. This is not a rejection. " +
			"Calling the tool again makes a new proposal."
	case gatehouse.StatusCanceled:
		return of + " was canceled and not carried out."
	case gatehouse.StatusSuperseded:
		return of + " was replaced by " + a.Superseded + " and not carried out itself."
	case gatehouse.StatusUnknown:
		return of + " was sent, and its outcome is UNKNOWN: it may or may not have taken effect. It is not sent " +
			"again, and equal calls are refused, until an operator has settled it. Look at the target with a reading " +
			"tool, or tell the user."
	case gatehouse.StatusFailed:
		return of + " failed." + failure(a)
	case gatehouse.StatusReversed:
		return of + " was carried out and later reversed."
	}
	return of + " was carried out. Its result is no longer kept."
}

func until(a *gatehouse.Action) string {
	if a.Approval == nil {
		return ""
	}
	return " until " + a.Approval.ExpiresAt.UTC().Format(time.RFC3339)
}

// notes returns the notes of the people who rejected an action.
func notes(a *gatehouse.Action) string {
	if a.Approval == nil {
		return ""
	}
	var out []string
	for _, v := range a.Approval.Votes {
		if v.Decision == gatehouse.Reject && v.Notes != "" {
			out = append(out, v.Notes)
		}
	}
	if len(out) == 0 {
		return "No reason was given. "
	}
	return "The reviewer's notes: " + strings.Join(out, "; ") + "\n"
}

func failure(a *gatehouse.Action) string {
	if a.Failure == nil {
		return ""
	}
	out := " " + a.Failure.Detail
	if a.Failure.TargetSays != "" {
		out += "\nThe server said: " + a.Failure.TargetSays
	}
	return out
}

// gateResult is a result of the gate itself. It has no structuredContent, because
// strict clients check structuredContent against the tool's outputSchema. It is
// marked as an error, because these clients accept only an error without
// structuredContent.
func (p *Proxy) gateResult(f *frame, action, status, words string) []byte {
	about := []gatehouse.Member{{Name: "status", Value: gatehouse.StringJSON(status)}}
	if action != "" {
		about = append(about, gatehouse.Member{Name: "id", Value: gatehouse.StringJSON(action)})
	}
	result := []gatehouse.Member{
		{Name: "content", Value: gatehouse.ArrayJSON(gatehouse.ObjectJSON(
			gatehouse.Member{Name: "type", Value: `"text"`},
			gatehouse.Member{Name: "text", Value: gatehouse.StringJSON(words)},
		))},
		{Name: "isError", Value: "true"},
		{Name: "_meta", Value: gatehouse.ObjectJSON(gatehouse.Member{
			Name: "dev.gatehouse/action", Value: gatehouse.ObjectJSON(about...),
		})},
	}
	if p.modern() {
		result = append(result, gatehouse.Member{Name: "resultType", Value: `"complete"`})
	}
	return resultFrame(f.id, []byte(gatehouse.ObjectJSON(result...)))
}

func (p *Proxy) modern() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.meta != nil
}

// maxKept bounds the result that a receipt stores in full, in bytes. A longer
// result is stored in part, from its beginning.
const (
	maxKept    = 12 << 10
	maxExcerpt = 4 << 10
)

// keptDepth bounds the nesting of a result that a receipt stores in full. In the request that reports the receipt,
// the result is two levels deeper.
const keptDepth = gatehouse.MaxDepth - 2

// keepResult returns what a receipt stores of a result.
func keepResult(result []byte) gatehouse.JSON {
	out := []gatehouse.Member{
		{Name: "bytes", Value: gatehouse.JSON(fmt.Sprint(len(result)))},
		{Name: "sha256", Value: gatehouse.StringJSON(digestOf(result))},
	}
	kept, err := gatehouse.Canonicalize(result)
	if err == nil && len(kept) <= maxKept && gatehouse.CheckJSONWithin(result, keptDepth) == nil {
		out = append(out, gatehouse.Member{Name: "result", Value: kept})
	} else {
		excerpt := gatehouse.StringJSON(clip(string(result), maxExcerpt))
		out = append(out, gatehouse.Member{Name: "excerpt", Value: excerpt})
	}
	return gatehouse.ObjectJSON(out...)
}

// keptResult returns the result stored in a receipt, nil when it is not
// complete.
func keptResult(r *gatehouse.Receipt) []byte {
	if r == nil {
		return nil
	}
	kept, ok := r.ResponseMetadata.Get("result")
	if !ok {
		return nil
	}
	return []byte(kept)
}

// clip shortens a text to at most limit bytes of UTF-8 without NUL characters.
func clip(s string, limit int) string {
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
