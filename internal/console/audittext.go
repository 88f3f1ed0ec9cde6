package console

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// gatehouseName is the actor of everything that the server does by itself.
const gatehouseName = "Gatehouse"

// auditSentences has a sentence for every documented type of entry but step.*. {by} is the actor, {of} the
// subject of the entry, {whom} the principal in its data; any other name is a member of its data.
var auditSentences = map[string]string{
	"hitl.proposed":           "{by} proposed {of}",
	"hitl.denied":             "The policy denied {of}, proposed by {by}",
	"hitl.voted":              "{by} voted to approve {of}",
	"hitl.approved":           "{by} approved {of}",
	"hitl.rejected":           "{by} rejected {of}",
	"hitl.reminded":           "{by} reminded people of {of}",
	"hitl.escalated":          "{by} asked more people about {of}",
	"hitl.escalation_timeout": "The last stage of {of} ended without an answer",
	"hitl.expired":            "{of} expired without a decision",
	"hitl.target_changed":     "{by} reported that the target of {of} changed",
	gatehouse.EventCommented:  "{by} commented on {of}",
	gatehouse.EventAssigned:   "{by} changed who {of} is assigned to",
	"hitl.evaluated":          "{by} evaluated {of}",
	"hitl.canceled":           "{by} canceled {of}",
	"hitl.superseded":         "{by} replaced {of} by a revision",

	"push.queued":      "{of} was queued",
	"push.picked":      "{by} prepared to send {of}",
	"push.sent":        "{by} sent {of} to its target",
	"push.applied":     "{of} was applied",
	"push.failed":      "{of} failed: {code}",
	"push.unknown":     "The outcome of {of} is unknown: {code}",
	"push.retry":       "{of} will be tried again: {code}",
	"push.rescued":     "{by} took over {of} from a lost worker",
	"push.late":        "A late result of {of} was kept; it changed nothing",
	"push.replayed":    "{by} put {of} back into the queue",
	"push.discarded":   "{by} closed {of} without another attempt",
	"push.resolved":    "{by} recorded the outcome of {of}",
	"action.reversed":  "{of} was reversed",
	"review.created":   "{by} sent a review link for {of}",
	"review.opened":    "A browser of {by} opened the review link for {of}",
	"review.completed": "{by} answered the review link for {of}",
	"step_up.given":    "{by} confirmed their identity for {of}",

	"run.queued":           "{by} started {of}",
	"run.created":          "{by} started {of}",
	"run.running":          "{of} is running",
	"run.waiting":          "{of} waits",
	"run.waiting_approval": "{of} waits for people",
	"run.retrying":         "{of} waits for another attempt",
	"run.succeeded":        "{of} succeeded",
	"run.failed":           "{of} failed: {code}",
	"run.canceled":         "{of} was canceled",
	"run.stopping":         "{by} asked {of} to stop",
	"run.signal":           "{by} sent the event {name} to {of}",
	"workflow.applied":     "{by} stored version {version} of the workflow {name}",

	"policy.applied":     "{by} applied policy version {version}",
	"policy.activated":   "{by} made policy version {version} active again",
	"policy.break_glass": "{by} applied policy version {version} without the approval that it needs",

	"connectors.applied": "{by} applied version {version} of the connectors",
	"principal.created":  "{by} created {of}",
	"principal.changed":  "{by} changed the rights of {of}",
	"principal.folded":   "{by} merged {of} into another person",
	"group.created":      "{by} created {of}",
	"group.deleted":      "{by} deleted {of}",
	"delegation.made":    "{by} let a delegate answer for {of}",
	"delegation.ended":   "{by} ended a delegation of {of}",
	"grant.created":      "{by} approved actions in advance with the grant {of}",
	"grant.ended":        "The grant {of} ended",
	"mandate.given":      "A plan of {by} was approved: {of}",
	"mandate.used":       "{by} used the mandate {of}",
	"mandate.narrowed":   "{by} narrowed the mandate {of}",
	"mandate.paused":     "{by} paused the mandate {of}",
	"mandate.resumed":    "{by} resumed the mandate {of}",
	"mandate.ended":      "The mandate {of} ended",
	"tenant.created":     "{by} created the tenant {of}",
	"tenant.acted":       "{by} acted in the tenant {of}: {act}",
	"admin.reset":        "{by} gave {of} new secrets",
	"session.started":    "{by} signed in",
	"session.revoked":    "{by} ended a session of {whom}",
	"setup_link.created": "{by} made a set-up link for {whom}",
	"setup_link.used":    "{by} used a set-up link",
	"identity.linked":    "{by} linked an external identity to {of}",
	"identity.unlinked":  "{by} unlinked an external identity from {of}",
	"passkey.added":      "{by} added a passkey for {whom}",
	"passkey.removed":    "{by} removed a passkey of {whom}",
	"key.created":        "{by} created a key for {whom}",
	"key.revoked":        "{by} revoked a key of {whom}",
	"edit_token.rotated": "{by} replaced the edit token of {whom}",
	"secret.set":         "{by} set version {version} of the secret {of}",
	"secret.rotated":     "{by} replaced the secret {of} by version {version}",
	"secret.revoked":     "{by} revoked the secret {of}",
	"link.key_created":   "{by} created a key that signs links",
	"link.key_rotated":   "{by} replaced the key that signs links",
	"link.key_revoked":   "{by} revoked a key that signs links",
	"preference.changed": "{by} changed which messages {whom} gets",
	"device.added":       "{by} added a device for notifications",
	"device.removed":     "{by} removed a device for notifications",

	"device.gone":         "A device of {whom} no longer takes notifications",
	"webpush.key_created": "{by} created the key for notifications on devices",

	"channel.failing":   "The channel {of} fails: {error}",
	"channel.off":       "The channel {of} is switched off: {error}",
	"channel.recovered": "The channel {of} works again",
	"archive.stored":    "{by} moved finished actions into the archive",
}

// heldSentences has the sentences of entries about a held rejection, and about an undo.
var heldSentences = map[string]string{
	"hitl.voted":      "{by} rejected {of}, with a hold",
	"hitl.rejected":   "The rejection of {of} by {by} took effect",
	"hitl.superseded": "{by} undid the decision on {of}, which is asked again",
	"hitl.proposed":   "{by} asked again about {of}, after an undo",
}

// stepSentence is the sentence of step.*, whose last word is a state.
const stepSentence = "Step {step} of {of}: "

// sentencePart is a piece of an entry's sentence.
type sentencePart struct {
	// text is the console's own text or, if value is set, text from the log.
	text  string
	value bool
	// phrase is the short line of an action, instead of text.
	phrase      card.Phrase
	href, title string
}

// sentence describes in words what an entry records.
func (p *auditPage) sentence(row auditRow) (parts []sentencePart) {
	l := row.leaf
	words, known := auditSentences[l.Type]
	if other := heldSentences[l.Type]; row.data["rejects_at"]+row.data["undone"]+row.data["hold"] != "" && other != "" {
		words = other
	}
	last := ""
	if state, step := strings.CutPrefix(l.Type, "step."); step {
		words, known, last = stepSentence, true, stateWord(state)
	}
	if !known {
		return []sentencePart{{text: l.Type, value: true}, {text: " " + transition(l)}}
	}
	for words != "" {
		before, rest, found := strings.Cut(words, "{")
		name := ""
		if found {
			name, rest, _ = strings.Cut(rest, "}")
		}
		words = rest
		// If the entry does not have the value, the ": " before it is omitted too.
		if found && !builtIn(name) && row.data[name] == "" {
			before = strings.TrimSuffix(before, ": ")
		}
		if before != "" {
			parts = append(parts, sentencePart{text: before})
		}
		switch {
		case !found:
		case name == "by":
			parts = append(parts, p.actorPart(l.Actor))
		case name == "of":
			parts = append(parts, p.subjectPart(l))
		case name == "whom":
			parts = append(parts, p.personPart(row.data["principal"]))
		case row.data[name] != "":
			parts = append(parts, sentencePart{text: row.data[name], value: true})
		}
	}
	if last != "" {
		parts = append(parts, sentencePart{text: last})
	}
	if tail := sentenceTail(l); tail != "" {
		parts = append(parts, sentencePart{text: tail})
	}
	if reason := row.data["reason"]; reason != "" {
		parts = append(parts, sentencePart{text: ": "}, sentencePart{text: reason, value: true})
	}
	return parts
}

func builtIn(name string) bool { return name == "by" || name == "of" || name == "whom" }

// sentenceTail is the text that the states of an entry add to its sentence.
func sentenceTail(l gatehouse.Leaf) string {
	switch {
	case l.Type == "hitl.proposed" && l.To == string(gatehouse.StatusApproved):
		return "; the policy allowed it"
	case l.Type == "hitl.escalation_timeout" && l.To == string(gatehouse.StatusPending):
		return "; the time was extended"
	case l.Type == "hitl.escalation_timeout", l.Type == "push.resolved" && l.To != "":
		return ": " + l.To
	}
	return ""
}

func (p *auditPage) actorPart(actor string) sentencePart {
	switch actor {
	case "system", "init", "schedule":
		return sentencePart{text: gatehouseName, title: actor}
	case "policy":
		return sentencePart{text: "The policy", title: actor}
	}
	return p.personPart(actor)
}

func (p *auditPage) personPart(id string) sentencePart {
	if name := p.names[id]; name != "" {
		return sentencePart{text: name, value: true, title: id}
	}
	return sentencePart{text: id, value: true}
}

// subjectPart is the subject of an entry, with a link if it has a page.
func (p *auditPage) subjectPart(l gatehouse.Leaf) sentencePart {
	if l.ActionID != "" {
		return sentencePart{text: short(l.ActionID), phrase: p.actions[l.ActionID], href: actionPath(l.ActionID),
			title: l.ActionID}
	}
	if strings.HasPrefix(l.Subject, "run_") {
		return sentencePart{text: short(l.Subject), href: runPath(l.Subject), title: l.Subject}
	}
	if name, group := strings.CutPrefix(l.Subject, "group:"); group {
		return sentencePart{text: "group " + name, value: true}
	}
	return p.personPart(l.Subject)
}

// plainSentence is the sentence as text, with full ids, for the export.
func (p *auditPage) plainSentence(row auditRow) string {
	var b strings.Builder
	for _, part := range p.sentence(row) {
		if part.href != "" {
			b.WriteString(part.title)
		} else {
			b.WriteString(part.text)
		}
	}
	return b.String()
}

// transition formats the states of a leaf, as "pending → approved".
func transition(l gatehouse.Leaf) string {
	if l.From == "" && l.To == "" || l.From == l.To {
		return ""
	}
	return strings.TrimSpace(l.From + " → " + l.To)
}
