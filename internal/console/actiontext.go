package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// largePayload is the size in bytes above which a list does not parse a change: fifty such rows
// would make the page slow.
const largePayload = 64 << 10

func large(a *gatehouse.Action) bool { return len(a.ProposedChange)+len(a.CurrentState) > largePayload }

// rawBytes is the size of the JSON values of an action's raw view, in bytes.
func rawBytes(a *gatehouse.Action) int {
	return len(a.ProposedChange) + len(a.CurrentState) + len(a.Context) + len(a.Metadata)
}

// shortOf is the one-line summary of an action in a list.
func shortOf(a *gatehouse.Action) card.Phrase {
	return rowOf(a).short
}

// line is the text of a row in a list: what the change does, the amount of money in its payload ("" for
// unlike amounts, such as a price and a cost), the growth of its only number, and the proposer's claim where
// it differs from the payload.
type line struct {
	short                  card.Phrase
	amount, percent, claim string
	// falls is set when every amount decreases.
	falls bool
}

// rowOf returns the text of an action's row. A change above largePayload shows only the proposer's
// claim.
func rowOf(a *gatehouse.Action) line {
	if large(a) {
		return line{
			short: append(card.Phrase{{Text: "Large change of "}}, card.TargetName(a.Target)...),
			claim: card.Claim(a, nil),
		}
	}
	short, amounts, percent := card.Row(a)
	l := line{short: short, percent: minus(percent), claim: card.Claim(a, amounts)}
	if !slices.ContainsFunc(amounts, func(x card.Amount) bool { return x.Unlike }) {
		l.amount = amountsText(amounts)
	}
	l.falls = len(amounts) > 0 && !slices.ContainsFunc(amounts, func(x card.Amount) bool { return x.Change.Sign() >= 0 })
	return l
}

// amountLabel says whether amounts of several fields are added up.
func amountLabel(amounts []card.Amount) string {
	if slices.ContainsFunc(amounts, func(x card.Amount) bool { return x.Fields > 1 }) {
		return "Amounts, added up"
	}
	return "Amount"
}

func amountsText(amounts []card.Amount) string {
	texts := make([]string, len(amounts))
	for i, x := range amounts {
		texts[i] = minus(x.String())
	}
	return strings.Join(texts, ", ")
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// spanTitle explains a character that is invisible or misleading.
func spanTitle(s card.Span) string {
	if s.Name != "" {
		return s.Name
	}
	return "letters of several scripts in one word"
}

// asksOnly reports whether a workflow's question is about its run alone, so there is no change to show.
func asksOnly(p *actionPage) bool {
	return p.ofRun != nil && p.ofRun.Uses == "approval" && p.a.Target.EntityType == "run" &&
		len(p.payload.changes) == 0 && p.payload.hidden == 0
}

// rewrittenText counts the fields that are written with the value that they have, and says so if
// that value is only the proposer's claim.
func rewrittenText(n int, before card.Provenance) string {
	s := plural(n, "field rewritten", "fields rewritten")
	if before == card.ByProposer {
		return s + ", without a change according to the proposer"
	}
	return s + " unchanged"
}

// nothingChanges is the sentence for a change without any field that differs.
func nothingChanges(p *actionPage) string {
	switch {
	case len(p.payload.same) > 0:
		return "No visible change: every field is rewritten with its present value."
	case card.DeletesAll(p.a) && len(p.a.Target.EntityRefs) > 1:
		return "Each record is deleted as a whole."
	case card.DeletesAll(p.a):
		return "The whole record is deleted."
	}
	return "No fields change."
}

// elementName names an element of a list: "line 3", and "order.line 3" for a list that is
// not at the top level.
func elementName(g card.Group) string {
	name := g.Element
	if n := strings.TrimSuffix(name, "s"); n != "" && !strings.HasSuffix(n, "s") {
		name = n
	}
	name += " " + strconv.Itoa(g.Number)
	if i := elementAt(g); i > 1 {
		name = strings.Join(g.Changes[0].Steps[:i-1], ".") + "." + name
	}
	return name
}

// elementAt is the position of the element's number in the steps of its fields, 0 for none.
func elementAt(g card.Group) int {
	first := g.Changes[0].Steps
	for i := 1; i < len(first); i++ {
		if first[i-1] == g.Element && first[i] == strconv.Itoa(g.Number-1) {
			return i
		}
	}
	return 0
}

// elementField names a field within its element.
func elementField(g card.Group, c card.Change) string {
	if i := elementAt(g); i > 0 && i+1 < len(c.Steps) {
		return strings.Join(c.Steps[i+1:], ".")
	}
	return fieldName(c)
}

// deltaText is the difference of a number, absolute and in percent, with a real minus sign
// (U+2212).
func deltaText(c card.Change) string {
	text := minus(c.Delta.String())
	if p := c.Percent(); p != "" {
		text += " (" + minus(p) + ")"
	}
	return text
}

// deltaTone distinguishes an increase from a decrease.
func deltaTone(c card.Change) string {
	if c.Delta.Amount.Sign() < 0 {
		return "down"
	}
	return "up"
}

// minus replaces a leading hyphen with a real minus sign (U+2212).
func minus(s string) string {
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		return "−" + rest
	}
	return s
}

func lineMark(k card.LineKind) string {
	switch k {
	case card.Plus:
		return "+"
	case card.Minus:
		return "−"
	}
	return " "
}

// evalTone is the tone of a check's result, of the proposer or of a registered evaluator. A passed check gets
// no colour, because nobody has verified those of the proposer.
func evalTone(result string) string {
	switch result {
	case "warn":
		return "warn"
	case "fail":
		return "bad"
	}
	return "quiet"
}

func whyTitle(a *gatehouse.Action, asksYou bool) string {
	switch {
	case a.Approval != nil && a.Status == gatehouse.StatusPending && !asksYou:
		return "Why people are asked"
	case a.Approval != nil && a.Status == gatehouse.StatusPending:
		return "Why you are asked"
	case a.Approval != nil:
		return "Why people were asked"
	case a.Policy.Outcome == gatehouse.OutcomeDeny:
		return "Why it was denied"
	}
	return "Why nobody was asked"
}

// cannotText explains why this person cannot approve the action.
func cannotText(p *actionPage) string {
	a := p.a
	switch gatehouse.CodeOf(p.cannot) {
	case gatehouse.CodeSelfApproval:
		if p.ofRun != nil {
			return "You cannot decide this: you, or an agent that you answer for, wrote the workflow, started " +
				"the run, or executed the step."
		}
		return "You cannot decide this: it was proposed or edited by you, proposed by an agent that you answer for, or " +
			"on your behalf."
	case gatehouse.CodeRoleRequired:
		return "You cannot decide this: " + asError(p.cannot).Detail + "."
	case gatehouse.CodeAlreadyVoted:
		left := a.Approval.Required - a.Approval.Approvals()
		return "You have voted. " + plural(left, "approval", "approvals") + " to go; until then you can still reject it."
	case gatehouse.CodeExpired:
		return "Nobody decided in time. The question expired at " + clock(a.Approval.ExpiresAt) +
			", and nothing was changed."
	}
	if held := heldText(a); held != "" {
		return held
	}
	if a.DecidedBy != "" && a.DecidedAt != nil {
		return fmt.Sprintf("%s. %s by %s at %s.", statusWord(a.Status), decidedHow(a), a.DecidedBy, clock(*a.DecidedAt))
	}
	return "There is nothing to decide. " + statusWord(a.Status) + "."
}

// heldText describes a held rejection; "" for none.
func heldText(a *gatehouse.Action) string {
	v, at := a.HeldRejection()
	if v == nil {
		return ""
	}
	return fmt.Sprintf("Rejected by %s. The proposer is notified at %s.", v.Name, clock(at))
}

// decidedHow begins the sentence that follows an action's status. If the status has changed since the approval, the
// sentence names the decision: "Failed. It was approved by ana".
func decidedHow(a *gatehouse.Action) string {
	if a.Push != nil && a.Status != gatehouse.StatusApproved {
		return "It was approved"
	}
	return "Decided"
}

// statusWord names an action's status, with a capital.
func statusWord(s gatehouse.Status) string {
	switch s {
	case gatehouse.StatusFailed:
		return "Failed"
	case gatehouse.StatusUnknown:
		return "Sent; outcome unknown"
	case gatehouse.StatusPushing:
		return "Being sent"
	case gatehouse.StatusExpired:
		return "Expired"
	}
	return strings.ToUpper(string(s[:1])) + string(s[1:])
}

// whereToSettle says where to settle a dead letter; "" for any other action.
func whereToSettle(a *gatehouse.Action) string {
	switch {
	case a.Push == nil || a.ArchivedAt != nil:
		return ""
	case a.Status == gatehouse.StatusUnknown:
		return "The change may or may not be in the target: look there, then record the outcome in Dispatch"
	case a.Status == gatehouse.StatusFailed && a.Push.Status == gatehouse.PushFailed:
		return "Open its dead letter in Dispatch"
	}
	return ""
}

// ownPending reports whether this person proposed the action and may withdraw it.
func ownPending(v *view, a *gatehouse.Action) bool {
	return a.Status == gatehouse.StatusPending && a.ProposerID == v.person.ID
}

// stale reports whether the last answer was refused because the target had changed.
func stale(p *actionPage) bool {
	return p.outcome != nil && p.outcome.Code == gatehouse.CodeTargetChanged
}

// mayAcknowledge reports whether this person may approve although the target has changed. They may not if the
// write is conditional, because it would fail at the changed target.
func mayAcknowledge(p *actionPage) bool {
	return stale(p) && p.outcome.Context["can_acknowledge"] == true
}

// returnPath is the URL to return to after an answer.
func returnPath(p *actionPage) string {
	if p.back != "" {
		return p.next.with("").url()
	}
	return actionPath(p.a.ID)
}

// fullPath is the URL of the same page without omissions.
func fullPath(p *actionPage) string {
	if p.back == "" {
		return actionPath(p.a.ID) + "?full=1"
	}
	v := p.next.with(p.a.ID).values()
	v.Set("full", "1")
	return "/inbox?" + v.Encode()
}

// liveTrigger says when an open page asks for the action's state: after each event and, while the action is
// pending, at intervals too, because a new viewer causes no event.
func liveTrigger(a *gatehouse.Action) string {
	const changed = "gatehouse:changed from:body"
	if a.Status != gatehouse.StatusPending {
		return changed
	}
	return changed + ", every " + lookEvery.String()
}

func livePath(id, seen string) string {
	return actionPath(id) + "/live?" + url.Values{"seen": {seen}}.Encode()
}

// contextJSON returns a member of an error's context as indented JSON.
func contextJSON(e *gatehouse.Error, name string) string {
	if j, ok := e.Context[name].(gatehouse.JSON); ok {
		return pretty(j)
	}
	return contextText(e, name)
}

func contextText(e *gatehouse.Error, name string) string {
	if x, ok := e.Context[name]; ok && x != nil {
		return fmt.Sprint(x)
	}
	return "not known"
}

// firstPage and nextPage build the URLs of a list's pages.
func firstPage(q inboxQuery) string {
	if q.Cursor == "" {
		return ""
	}
	q.Skip = 0
	return q.next("", 0).url()
}

func nextPage(p *inboxPage) string {
	if p.next == "" {
		return ""
	}
	return p.q.next(p.next, len(p.rows)).url()
}

// doneTitle describes the present state of the item that was decided last.
func doneTitle(v *view, a *gatehouse.Action) string {
	switch {
	case heldRejection(a):
		return "Rejected"
	case a.Status == gatehouse.StatusPending:
		return "Your vote is stored"
	case a.Status == gatehouse.StatusApproved && !undoUntil(v, a).IsZero():
		return "Approved"
	case a.Status == gatehouse.StatusApproved, a.Status == gatehouse.StatusPushing:
		return "Approved; being sent"
	}
	return statusWord(a.Status)
}

func doneTone(a *gatehouse.Action) string {
	switch statusTone(string(a.Status)) {
	case "bad":
		if a.Status == gatehouse.StatusRejected {
			return "good"
		}
		return "bad"
	case "warn":
		return "warn"
	}
	return "good"
}

// policyLine names the policy version that judged the action, and the number of rules that matched.
func policyLine(a *gatehouse.Action) string {
	s := fmt.Sprintf("Policy version %d", a.Policy.Version)
	if n := len(a.Policy.Rules); n > 0 {
		s += ", " + plural(n, "rule", "rules") + ":"
	} else {
		s += "; none of its rules matched."
	}
	return s
}

// levelFrom names the source of the risk level: the highest of the policy's, the connector's and
// the proposer's.
func levelFrom(a *gatehouse.Action, g *gatehouse.Grounds) card.Phrase {
	p := card.Phrase{{Text: "the policy "}}
	if g.Listed == 0 {
		p = append(p, card.Part{Text: "does not list "}, card.Part{Text: g.Type, Value: true},
			card.Part{Text: ", which makes it L3 at least"})
	} else {
		p = append(p, card.Part{Text: "lists "}, card.Part{Text: g.Type, Value: true}, card.Part{Text: " (as "},
			card.Part{Text: a.ProposedBy, Value: true}, card.Part{Text: " calls it) with " + g.Listed.String()})
	}
	if g.Floor != 0 {
		p = append(p,
			card.Part{Text: "; the connector " + a.Connector + " takes nothing below " + g.Floor.String() +
				" for this operation"})
	}
	if g.Claimed != 0 {
		p = append(p, card.Part{Text: "; the proposer claimed " + g.Claimed.String()})
	}
	known := max(g.Listed, g.Floor, g.Claimed)
	raised := a.RiskLevel > max(known, gatehouse.L3) || g.Listed != 0 && a.RiskLevel > known
	if raised {
		p = append(p, card.Part{Text: "; a rule raises it to " + a.RiskLevel.String()})
	}
	if raised || g.Floor != 0 || g.Claimed != 0 {
		p = append(p, card.Part{Text: ". The highest level applies"})
	}
	return append(p, card.Part{Text: "."})
}

// quorumLine says who must answer, and by when; once the question is closed, who had to.
func quorumLine(a *gatehouse.Action) string {
	ap, must := a.Approval, " had to approve"
	if awaits(a) {
		must = " must approve"
	}
	s := plural(ap.Required, "person", "different persons") + must
	if from := audienceWords(ap.Reached()); from != "" {
		s += ", from " + from
	}
	if !awaits(a) {
		return s + "."
	}
	return s + ". Until " + clock(ap.ExpiresAt) + ". " + card.Timeout(&ap.Timing, ap.Extended)
}

// stageLine says whom a stage asks, from when and until when.
func stageLine(i int, s gatehouse.Stage) string {
	who := audienceWords(s.Who)
	if i > 0 {
		who = "also " + who
	}
	line := who + ", for " + s.For.String() + ": " + clock(s.From) + " to " + clock(s.Until)
	if len(s.Notify) > 0 {
		line += "; notified on " + strings.Join(s.Notify, ", ")
	}
	return line
}

func audienceWords(a gatehouse.Audience) string {
	var from []string
	if len(a.Roles) > 0 {
		from = append(from, "the role "+joinRoles(a.Roles, " or "))
	}
	if len(a.Groups) > 0 {
		from = append(from, "the group "+strings.Join(a.Groups, ", "))
	}
	if len(a.People) > 0 {
		from = append(from, strings.Join(a.People, ", "))
	}
	return strings.Join(from, ", or ")
}

// fieldName is a field's name when it is at the top level, else its JSON pointer.
func fieldName(c card.Change) string {
	if len(c.Steps) == 1 {
		return c.Steps[0]
	}
	return c.Path
}

// inTurn is the hx-sync of links that load the pane of the open action. A new request cancels the previous
// one, so a slow answer to the previous request cannot replace the action that was opened after it.
const inTurn = "closest main:replace"

// inPane lets the answer to a form replace the open action when scripts run. The browser's URL changes only if
// the answer has the header HX-Push-Url, which refused forms do not get.
func inPane(path string) templ.Attributes {
	return templ.Attributes{"hx-post": path, "hx-target": "#detail", "hx-select": "#detail", "hx-swap": "outerHTML"}
}

// ownWords labels text of the proposer as not verified.
func ownWords(a *gatehouse.Action) string {
	if len(a.Evaluations) > 0 {
		return "The agent's own words and checks. Not verified: Gatehouse did not run these checks."
	}
	if a.Reverses != "" {
		return "Not verified." // a person's words, or those of the reversal itself
	}
	return "The agent's own words. Not verified."
}
