package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// MaxDiffLines limits the lines of a change that a message shows.
const MaxDiffLines = 6

const (
	maxLine    = 160 // of one line of a change, in characters
	maxSubject = 120
	maxWhy     = 300
)

// Message is the content for a channel. Its texts are plain text without line breaks, with
// invisible characters made visible; each channel escapes them for its own markup.
type Message struct {
	ID     string
	Tenant string
	Kind   gatehouse.NotificationKind
	// At is when the message was queued, AsOf the time that its texts describe.
	At, AsOf time.Time
	// Attempt counts from 1.
	Attempt int
	// To is the recipient on a personal channel, nil for a shared place.
	To *gatehouse.Principal
	// Devices are the devices of the recipient, on a channel that sends to devices.
	Devices []*gatehouse.Device
	// Action is the action that the message is about, nil for none. Figures are the counts of a
	// digest.
	Action  *gatehouse.Action
	Figures *gatehouse.NotificationFigures
	// Subject is one line, the same for all messages about an action.
	Subject string
	// Heading says what happened, Sentence what the action does.
	Heading, Sentence string
	Facts             []Fact
	// Diff are the first lines of the change, DiffMore is the number of omitted lines.
	Diff     []string
	DiffMore int
	// Link is a URL of the console; "" if the console's address is not known.
	Link string
	// Signed says that Link is valid for the recipient only. Code is the code that decides together
	// with the link; "" if the link needs none.
	Signed bool
	Code   string
	// Until is when a signed link expires.
	Until string
	// Unsubscribe is a URL that switches off the recipient's digests on the channel; "" for none.
	Unsubscribe string
	// Card is the Ref of the message that asked for the approval on this channel, "" for none.
	Card string
	// Event is the type of the log entry, "" for none.
	Event string
	// Reached is the status that a callback reports; "" for other messages.
	Reached gatehouse.Status
	// Deciding describes the possible decisions on the message itself, nil for none.
	Deciding *Deciding
	// cut says that the sentence or a line of the change is cut; cutFacts are the labels of the facts that are.
	cut      bool
	cutFacts []string
}

// TimeLayout is the format of the times in messages, which are in UTC.
const TimeLayout = "2006-01-02 15:04 MST"

// TimeLeft is the label of the fact with the remaining time, which changes by itself.
const TimeLeft = "Time left"

// Fact is a line under the sentence.
type Fact struct{ Label, Value string }

// compose makes a notification's message from the present state. muted is the reason for not
// sending it, "" to send it.
func (n *Notifier) compose(
	ctx context.Context, c *Configured, row *gatehouse.Notification,
) (m *Message, muted string, err error) {
	err = n.store.View(ctx, row.Tenant, func(tx gatehouse.ReadTx) (err error) {
		m, muted, err = n.message(tx, c, row)
		return err
	})
	if err == nil && muted == "" {
		n.sign(ctx, c, m)
	}
	return m, muted, err
}

// sign adds a signed link to a message that asks one person to decide, and an unsubscribe link
// to a digest.
func (n *Notifier) sign(ctx context.Context, c *Configured, m *Message) {
	if m.Kind == gatehouse.NotifyDigest {
		n.signUnsubscribe(ctx, c, m)
	}
	if !m.Kind.Asks() || m.To == nil || m.Link == "" || n.config.Reviews == nil || !c.Trait().Private {
		return
	}
	l, err := n.config.Reviews.ReviewLink(ctx, m.Action, m.To)
	if err != nil {
		// A mail with a plain link to the console is better than no mail.
		n.log.WarnContext(ctx, "notify: link not signed", "notification", m.ID, "error", err)
		return
	}
	if l == nil {
		return
	}
	m.Link = n.page(gatehouse.ReviewPath(l.ID, "") + "?token=" + l.Token)
	m.Signed, m.Code, m.Until = true, l.Code, l.ExpiresAt.UTC().Format(TimeLayout)
	m.Facts = append(m.Facts, Fact{"Review", l.ID})
}

// page is the URL of a page of the console, "" if the console's address is not known.
func (n *Notifier) page(path string) string {
	if n.config.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(n.config.PublicURL, "/") + path
}

// signUnsubscribe adds the link by which a person switches off digests on the channel.
func (n *Notifier) signUnsubscribe(ctx context.Context, c *Configured, m *Message) {
	if m.To == nil || n.config.PublicURL == "" || n.config.Reviews == nil || !c.Trait().Private {
		return
	}
	token, err := n.config.Reviews.UnsubscribeToken(ctx, m.To, c.Name)
	if err != nil {
		n.log.WarnContext(ctx, "notify: unsubscribe link not signed", "notification", m.ID, "error", err)
		return
	}
	if token != "" {
		m.Unsubscribe = n.page(gatehouse.UnsubscribePath + "?t=" + url.QueryEscape(token))
	}
}

func (n *Notifier) message(tx gatehouse.ReadTx, c *Configured, row *gatehouse.Notification) (*Message, string, error) {
	m := &Message{
		ID: row.ID, Tenant: row.Tenant, Kind: row.Kind, At: row.CreatedAt, AsOf: tx.Now(), Attempt: row.Attempts,
	}
	if !slices.Contains(c.Tenants, row.Tenant) {
		return nil, "the channel does not serve the tenant", nil
	}
	if row.Recipient != "" {
		p, err := tx.FindPrincipal(row.Recipient)
		if err != nil {
			return nil, "", err
		}
		if p.Disabled {
			return nil, "the recipient is disabled", nil
		}
		if m.Devices, err = devices(tx, c, row); err != nil {
			return nil, "", err
		}
		if !c.Reaches(p) && len(m.Devices) == 0 {
			return nil, "the recipient has no address on this channel", nil
		}
		m.To = p
		if topic := row.Kind.Topic(); !topic.Vital() {
			preferences, err := preferencesOf(tx, p.ID)
			if err != nil {
				return nil, "", err
			}
			if preferences.mute(p.ID, c.Name, topic) {
				return nil, unwanted(row.Kind), nil
			}
		}
	}
	var data struct {
		Event   string `json:"event"`
		Channel string `json:"channel"`
		Error   string `json:"error"`

		Delegation string           `json:"delegation"`
		Status     gatehouse.Status `json:"status"`
	}
	switch row.Kind {
	case gatehouse.NotifyTest:
		m.Subject, m.Heading = "Gatehouse: a test of the channel "+c.Name, "This is a test. Nothing waits for you."
		if row.Data == weekly {
			m.Heading = "This is the weekly test of a channel without messages. Nothing waits for you."
		}
		return m, "", nil
	case gatehouse.NotifyDigest:
		m.Figures = new(gatehouse.NotificationFigures)
		if err := json.Unmarshal([]byte(row.Data), m.Figures); err != nil {
			return nil, "", err
		}
		n.digest(m)
		return m, "", nil
	}
	if row.Data != "" {
		if err := json.Unmarshal([]byte(row.Data), &data); err != nil {
			return nil, "", err
		}
	}
	m.Event = data.Event
	if row.Kind.Calls() {
		m.Reached = data.Status
	}
	if row.Kind == gatehouse.NotifyDelegated {
		muted, err := n.delegated(tx, m, data.Delegation, data.Event)
		return m, muted, err
	}
	if row.Kind == gatehouse.NotifyChannelFailing {
		m.Subject = "Gatehouse: the channel " + data.Channel + " does not work"
		m.Heading = "The channel " + data.Channel + " fails. Messages for it wait."
		if data.Event == "channel.off" {
			m.Heading = "The channel " + data.Channel + " is off. Nothing is sent until a test of it succeeds."
		}
		m.Facts = []Fact{{"Error", line(data.Error, maxWhy)}}
		return m, "", nil
	}
	a, err := tx.FindAction(row.ActionID)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, "the action does not exist", nil
	}
	if err != nil {
		return nil, "", err
	}
	old, err := stale(tx, row.Kind, a)
	if err != nil {
		return nil, "", err
	}
	if old {
		return nil, "there is nothing left to do: the action is " + string(a.Status), nil
	}
	var answered []*gatehouse.Principal // for whom the recipient answers
	if row.Kind.Asks() && m.To != nil && !mayAnswer(a, m.To, tx.Now()) {
		standings, err := gatehouse.Standings(tx, m.To.ID)
		if err != nil {
			return nil, "", err
		}
		if answered = answersFor(a, m.To, standings, tx.Now()); len(answered) == 0 {
			return nil, "the recipient may not answer, or has answered", nil
		}
	}
	if !row.Kind.Asks() && row.Recipient == "" && !c.Trait().Every {
		var waits bool
		if m.Card, waits, err = questionMessage(tx, row.ActionID, c.Name); err != nil {
			return nil, "", err
		}
		if waits {
			return nil, "", errCardWaits
		}
	}
	n.about(m, a)
	for _, p := range answered {
		m.Facts = slices.Insert(m.Facts, len(m.Facts)-1, Fact{"You answer for", line(p.Name, maxLine)})
	}
	if err := iteration(tx, m, a); err != nil {
		return nil, "", err
	}
	if k, ok := c.Channel.(Keeper); ok && m.Kind == gatehouse.NotifyAsked {
		err = n.addDecisions(tx, k, m, a)
	}
	return m, "", err
}

// errCardWaits is the error of an outcome whose question is still being sent: the outcome must
// arrive after the question.
var errCardWaits = &Refusal{Recipient: true, Err: errors.New("the question is still being sent")}

// cardTries is the number of attempts to send a question after which the outcome no longer waits
// for the question.
const cardTries = 2

// questionMessage finds the message that asked for the approval in a shared place. ref is the message's id on
// the channel, "" if none is known. waits says that the message is not posted yet, and has not failed cardTries
// times.
func questionMessage(tx gatehouse.NotificationReader, action, channel string) (ref string, waits bool, err error) {
	page, err := tx.ListNotifications(gatehouse.NotificationFilter{
		Channel: channel, ActionID: action, Limit: gatehouse.MaxLimit,
	})
	for _, m := range page.Items {
		if m.Kind != gatehouse.NotifyAsked {
			continue
		}
		if m.Ref != "" {
			ref = m.Ref
		}
		waits = waits || !m.Finished() &&
			(m.Attempts < cardTries || m.Attempts == cardTries && m.Status == gatehouse.NotificationSent)
	}
	return ref, waits && ref == "", err
}

// about fills in the part of a message that describes an action.
func (n *Notifier) about(m *Message, a *gatehouse.Action) {
	now := m.AsOf
	m.Action = a
	m.Subject = "[Gatehouse] " + line(card.Short(a), maxSubject)
	m.Sentence, m.cut = cutLine(card.Sentence(a), 2*maxWhy)
	m.Heading = heading(m, a)
	m.Link = n.page("/actions/" + a.ID)
	risk := card.Risk(a.RiskLevel)
	m.Facts = append(m.Facts, Fact{"Risk", risk.Code + ", " + risk.Word})
	m.addFact("Proposed by", a.ProposedBy, maxLine)
	if a.OnBehalfOf != "" {
		m.addFact("On behalf of", a.OnBehalfOf, maxLine)
	}
	switch m.Kind {
	case gatehouse.NotifyAsked, gatehouse.NotifyEscalated, gatehouse.NotifyReminded:
		if len(a.Policy.Reasons) > 0 {
			m.addFact("Why people are asked", strings.Join(a.Policy.Reasons, "; "), maxWhy)
		}
		if a.Approval.Required > 1 {
			m.Facts = append(
				m.Facts,
				Fact{"Approvals", fmt.Sprintf("%d of %d", a.Approval.Approvals(), a.Approval.Required)},
			)
		}
		if about := a.Approval.About; about != nil {
			text := about.EntityType + " " + about.EntityRef + " in " + about.Connector
			if about.Version != "" {
				text += ", version " + about.Version
			}
			m.addFact("About", text, maxLine)
		}
		m.addProposerFacts(a)
		if undo := card.UndoText(a, now); undo != "" {
			m.addFact("Undo", undo, maxLine)
		}
		if mark := a.Approval.TargetChanged; mark != nil {
			m.addFact("Target", "changed since the proposal"+changedTo(mark)+", reported by "+mark.By, maxLine)
		}
		if n := len(a.Approval.Stages); n > 1 {
			m.Facts = append(m.Facts, Fact{"Stage", fmt.Sprintf("%d of %d", a.Approval.Stage, n)})
		}
		m.Facts = append(m.Facts, Fact{TimeLeft, card.Duration(a.Approval.ExpiresAt.Sub(now)) + ", until " +
			a.Approval.ExpiresAt.UTC().Format(TimeLayout)})
		m.addDiff(a)
	case gatehouse.NotifyDeadLetter, gatehouse.NotifyUnknown:
		if a.Failure != nil {
			m.addFact("Error", a.Failure.Code+": "+a.Failure.Detail, maxWhy)
		}
	}
	m.addShortened()
	m.Facts = append(m.Facts, Fact{"Action", a.ID})
}

// addFact adds a fact about a text. It cuts the text if it is long.
func (m *Message) addFact(label, text string, n int) {
	value, cut := cutLine(text, n)
	m.Facts = append(m.Facts, Fact{label, value})
	if cut {
		m.cutFacts = append(m.cutFacts, label)
	}
}

// iteration adds to a repeated question its number and why the previous iteration was rejected.
func iteration(tx gatehouse.ActionReader, m *Message, a *gatehouse.Action) error {
	n, previous := card.Iteration(a)
	if n < 2 || previous == "" || !m.Kind.Asks() {
		return nil
	}
	before, err := tx.FindAction(previous)
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && !card.Precedes(before, a) {
		return nil
	}
	if err != nil {
		return err
	}
	text := strconv.Itoa(n) + "; the previous iteration is " + string(before.Status)
	for _, v := range card.Refusers(before) {
		text += "; " + v.Name + ": " + v.Notes
	}
	m.Facts = slices.Insert(m.Facts, len(m.Facts)-1, Fact{"Iteration", line(text, maxWhy)})
	return nil
}

// changedTo names the target's present version, if it is known.
func changedTo(m *gatehouse.TargetMark) string {
	if m.Version == "" {
		return ""
	}
	return ": version " + m.Version
}

// heading says what happened.
func heading(m *Message, a *gatehouse.Action) string {
	by := ""
	if a.DecidedBy != "" {
		by = " by " + line(a.DecidedBy, maxLine)
	}
	switch m.Kind {
	case gatehouse.NotifyAsked:
		if m.To != nil {
			return "An approval waits for you"
		}
		return "An approval waits"
	case gatehouse.NotifyEscalated:
		if m.To != nil {
			return "Nobody has decided yet: an approval waits for you now"
		}
		return "Nobody has decided yet: an approval goes to stage " + strconv.Itoa(a.Approval.Stage)
	case gatehouse.NotifyReminded:
		switch m.Event {
		case string(gatehouse.MomentExtended):
			return "Nobody decided in time. The time was extended once"
		case gatehouse.EventAssigned:
			return "An approval is assigned to you"
		case gatehouse.EventCommented:
			return "Your question about an approval was answered"
		}
		if m.To != nil {
			return "Reminder: an approval waits for you"
		}
		return "Reminder: an approval waits"
	case gatehouse.NotifyExpired:
		if m.Event == string(gatehouse.MomentExtended) {
			return "Nobody decided in time. The policy rejected the action"
		}
		return "Nobody decided in time"
	case gatehouse.NotifyDeadLetter:
		return "An approved change failed and needs a person"
	case gatehouse.NotifyUnknown:
		return "The outcome of an approved change is unknown"
	case gatehouse.NotifyCallbackDecided, gatehouse.NotifyCallbackFinished, gatehouse.NotifyHeartbeat:
		return "The action is " + string(m.Reached)
	}
	switch m.Event {
	case "hitl.approved":
		return "Approved" + by
	case "hitl.rejected":
		return "Rejected" + by
	}
	return "Withdrawn"
}

// digest fills in a message that replaces many.
func (n *Notifier) digest(m *Message) {
	f := m.Figures
	m.Subject = "Gatehouse: " + strconv.Itoa(f.Total) + " more messages"
	m.Heading = strconv.Itoa(f.Total) + " more messages since " + f.Since.UTC().Format(TimeLayout)
	m.Facts = append(
		m.Facts,
		Fact{"Messages", counts(f.ByKind, kindWords)},
		Fact{"Action types", counts(f.ByType, nil)},
		Fact{"Risk", counts(f.ByRisk, nil)},
	)
	if len(f.First) > 0 {
		m.Facts = append(m.Facts, Fact{"First actions", strings.Join(f.First, ", ")})
	}
	m.Link = n.page("/inbox")
}

// kindWords are the words for kinds in a digest.
var kindWords = map[string]string{
	string(gatehouse.NotifyAsked): "approvals requested", string(gatehouse.NotifyDecided): "decided",
	string(gatehouse.NotifyExpired):   "expired",
	string(gatehouse.NotifyEscalated): "approvals escalated", string(gatehouse.NotifyReminded): "reminders",
	string(gatehouse.NotifyDeadLetter): "failed pushes", string(gatehouse.NotifyUnknown): "unknown outcomes",
}

// counts formats "9000 price_change, 12 note", the highest count first.
func counts(by map[string]int, words map[string]string) string {
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		word := words[name]
		if word == "" {
			word = line(name, maxLine)
		}
		names[i] = strconv.Itoa(by[name]) + " " + word
	}
	return strings.Join(names, ", ")
}

// addDiff adds the first lines of the change.
func (m *Message) addDiff(a *gatehouse.Action) {
	for _, c := range card.Written(a) {
		if len(m.Diff) == MaxDiffLines {
			m.DiffMore++
			continue
		}
		text := c.Path + ": "
		switch c.Kind {
		case card.Added:
			text += c.After.Text
		case card.Removed:
			text += c.Before.Text + " → (removed)"
		case card.Same:
			text += "set to " + c.After.Text + card.UnchangedClaim
		default:
			text += c.Before.Text + " → " + c.After.Text
		}
		if c.Delta != nil {
			text += " (" + c.Delta.String() + ")"
		}
		shown, cut := cutLine(text, maxLine)
		m.Diff, m.cut = append(m.Diff, shown), m.cut || cut
	}
}

// line makes one line with every character visible, and cuts it if it is long.
func line(s string, n int) string {
	shown, _ := cutLine(s, n)
	return shown
}

// cutLine is line; cut says that it has cut the text.
func cutLine(s string, n int) (shown string, cut bool) {
	shown, hidden := card.Truncate(card.Terminal(s), n)
	if hidden > 0 {
		shown += "…"
	}
	return shown, hidden > 0
}
