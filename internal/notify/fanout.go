package notify

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

const (
	// fanOutBatch limits the entries of one round.
	fanOutBatch = 200
	// maxEntryAge is the greatest age of an entry that still causes messages when a tenant's log is read
	// for the first time.
	maxEntryAge = 24 * time.Hour
)

// leaf is the part of a log entry that the notifier uses.
type leaf struct {
	Type     string    `json:"type"`
	ActionID string    `json:"action_id"`
	Subject  string    `json:"subject"`
	Actor    string    `json:"actor"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	At       time.Time `json:"at"`
	Data     struct {
		Stage int `json:"stage"`
		// Delegation and To are ids in an entry about a delegation: of the delegation, and of the
		// delegate. The entry's subject is the delegating person.
		Delegation string `json:"delegation"`
		To         string `json:"to"`
		// Assignee and Asker are ids: of the person to whom an action was assigned, and of
		// the author of an answered question.
		Assignee string `json:"assignee_id"`
		Asker    string `json:"asker"`
		// Code says why the server withdrew an action; "" if a principal or a run canceled it.
		Code string `json:"code"`
	} `json:"data"`
}

// kindOf is the kind of message that an entry causes; "" for none.
func (l *leaf) kindOf() gatehouse.NotificationKind {
	switch l.Type {
	case "hitl.proposed":
		if l.To == string(gatehouse.StatusPending) {
			return gatehouse.NotifyAsked
		}
	case string(gatehouse.MomentEscalated):
		return gatehouse.NotifyEscalated
	case string(gatehouse.MomentReminded):
		return gatehouse.NotifyReminded
	case string(gatehouse.MomentExtended):
		if l.To == string(gatehouse.StatusPending) {
			return gatehouse.NotifyReminded
		}
		return gatehouse.NotifyExpired
	case "hitl.approved", "hitl.rejected", "hitl.canceled":
		return gatehouse.NotifyDecided
	case "hitl.expired":
		return gatehouse.NotifyExpired
	case gatehouse.EventAssigned, gatehouse.EventCommented:
		if l.soleRecipient() != "" {
			return gatehouse.NotifyReminded
		}
	case "delegation.made", "delegation.ended":
		return gatehouse.NotifyDelegated
	case "push.failed":
		return gatehouse.NotifyDeadLetter
	case "push.unknown":
		return gatehouse.NotifyUnknown
	}
	return ""
}

// soleRecipient is the id of the only person to notify; "" when the recipients follow from the action.
func (l *leaf) soleRecipient() string {
	switch l.Type {
	case gatehouse.EventAssigned:
		return l.Data.Assignee
	case gatehouse.EventCommented:
		return l.Data.Asker
	}
	return ""
}

// trigger is an entry, with the kind of the messages that it may cause.
type trigger struct {
	index int64
	kind  gatehouse.NotificationKind
	leaf  leaf
}

// FanOut reads the next entries of a tenant's log and queues their messages. more says that there
// are further entries.
func (n *Notifier) FanOut(ctx context.Context, tenant string) (more bool, err error) {
	var (
		from, to     int64
		s            *fanOut
		changedCards []string
	)
	err = n.store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		s, changedCards, to = nil, nil, 0
		if from, err = tx.LogPosition(); err != nil {
			return err
		}
		next := from
		if from < 0 {
			if _, err := tx.FindTenant(); err != nil {
				return err // the tenant may be created later
			}
			if next, err = since(tx, tx.Now().Add(-maxEntryAge)); err != nil {
				return err
			}
		}
		entries, err := tx.ListEntries(next, fanOutBatch)
		if err != nil {
			return err
		}
		more, to = len(entries) == fanOutBatch, next
		if len(entries) > 0 {
			to = entries[len(entries)-1].Index + 1
		}
		list, err := triggersOf(entries)
		if err != nil {
			return err
		}
		changedCards = n.cardsToUpdate(list)
		callbacks := n.callsBack(tenant)
		list = slices.DeleteFunc(list, func(t trigger) bool { return !t.sends(callbacks) })
		if len(list) == 0 {
			return nil
		}
		s, err = n.newFanOut(tx, tenant, list)
		return err
	})
	if err != nil || to == from {
		return false, ignoreNotFound(err)
	}
	err = n.store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		if err := tx.MoveLogPosition(from, to); err != nil {
			return err
		}
		for _, action := range changedCards {
			if err := tx.TouchCards(action); err != nil {
				return err
			}
		}
		if s == nil {
			return nil
		}
		if err := s.write(tx); err != nil {
			return err
		}
		if len(s.rows) > 0 {
			failpoint.Here("notify/queued")
		}
		return nil
	})
	if errors.Is(err, gatehouse.ErrConflict) { // another notifier was first, or a digest was sent meanwhile
		return true, nil
	}
	if err == nil && s != nil && len(s.rows) > 0 {
		n.hints.Notify(Topic)
	}
	if err == nil && len(changedCards) > 0 {
		n.hints.Notify(TopicCards)
	}
	return more, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil
	}
	return err
}

// since returns the index of the first entry after a time.
func since(tx gatehouse.LogReader, at time.Time) (int64, error) {
	size, err := tx.LogSize()
	if err != nil {
		return 0, err
	}
	// The entries are almost in the order of their times.
	first := sort.Search(int(size), func(i int) bool {
		entries, e := tx.ListEntries(int64(i), 1)
		if e != nil || len(entries) == 0 {
			err = errors.Join(err, e)
			return true
		}
		var l leaf
		return json.Unmarshal([]byte(entries[0].Body), &l) == nil && l.At.After(at)
	})
	return int64(first), err
}

func triggersOf(entries []*gatehouse.Entry) ([]trigger, error) {
	list := make([]trigger, len(entries))
	for i, e := range entries {
		t := &list[i]
		if err := json.Unmarshal([]byte(e.Body), &t.leaf); err != nil {
			return nil, err
		}
		t.index, t.kind = e.Index, t.leaf.kindOf()
	}
	return list, nil
}

// sends reports whether an entry causes messages to people or callbacks to proposers.
func (t *trigger) sends(callbacks bool) bool {
	return t.kind != "" && (t.leaf.ActionID != "" || t.kind == gatehouse.NotifyDelegated) ||
		callbacks && len(t.leaf.callbackKinds()) > 0
}

// fanOut collects the rows of one round.
type fanOut struct {
	n      *Notifier
	tx     gatehouse.ReadTx
	tenant string
	now    time.Time
	routes *routing
	people []*gatehouse.Principal
	// standings are the delegations in force.
	standings []gatehouse.Standing
	// loads holds the recipients' messages in the window, by channel and recipient.
	loads       map[[2]string]*load
	preferences preferences
	// owners are the people with a device; nil until they are read.
	owners map[string]bool
	rows   []*gatehouse.Notification
}

func (n *Notifier) newFanOut(tx gatehouse.ReadTx, tenant string, list []trigger) (*fanOut, error) {
	s := &fanOut{n: n, tx: tx, tenant: tenant, now: tx.Now(), loads: make(map[[2]string]*load)}
	var err error
	if s.routes, err = n.routing(tx, tenant); err != nil {
		return s, err
	}
	callbacks := n.callsBack(tenant)
	if len(s.routes.channels) == 0 && !callbacks {
		return s, nil
	}
	if s.people, err = tx.ListPeople(); err != nil {
		return nil, err
	}
	if s.standings, err = gatehouse.Standings(tx, ""); err != nil {
		return nil, err
	}
	if s.preferences, err = preferencesOf(tx, ""); err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.kind == gatehouse.NotifyDelegated {
			if err := s.addDelegated(t); err != nil {
				return nil, err
			}
			continue
		}
		a, err := tx.FindAction(t.leaf.ActionID)
		if errors.Is(err, gatehouse.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if callbacks {
			if err := s.queueCallbacks(t, a); err != nil {
				return nil, err
			}
		}
		if t.kind == "" {
			continue
		}
		if err := s.addRows(t, a); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addRows adds the rows for one entry.
func (s *fanOut) addRows(t trigger, a *gatehouse.Action) error {
	if old, err := stale(s.tx, t.kind, a); err != nil || old {
		return err
	}
	channels := s.routes.channelsFor(t.kind, a, stageChannels(t, a)...)
	if len(channels) == 0 {
		return nil
	}
	to, err := s.recipients(t, a)
	if err != nil {
		return err
	}
	for _, c := range channels {
		if !c.Trait().Personal {
			if t.leaf.soleRecipient() != "" {
				continue
			}
			if err := s.add(t, a, c, ""); err != nil {
				return err
			}
			continue
		}
		for _, p := range to {
			reached, err := s.reaches(c, p)
			if err != nil {
				return err
			}
			if !reached {
				continue
			}
			muted, err := s.mutes(t.kind, c, p, channels)
			if err != nil {
				return err
			}
			if muted {
				s.rows = append(s.rows, s.mute(s.entryRow(t, a, c, p.ID)))
				continue
			}
			if err := s.add(t, a, c, p.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// stageChannels are the additional channels that the policy names for the entry's stage.
func stageChannels(t trigger, a *gatehouse.Action) []string {
	number := 0
	switch {
	case a.Approval == nil:
	case t.kind == gatehouse.NotifyAsked:
		number = 1
	case t.kind == gatehouse.NotifyEscalated:
		number = t.leaf.Data.Stage
	}
	if number < 1 || number > len(a.Approval.Stages) {
		return nil
	}
	return a.Approval.Stages[number-1].Notify
}

// stale reports whether a message is no longer relevant.
func stale(tx gatehouse.PushReader, kind gatehouse.NotificationKind, a *gatehouse.Action) (bool, error) {
	switch kind {
	case gatehouse.NotifyAsked, gatehouse.NotifyEscalated, gatehouse.NotifyReminded:
		return a.Status != gatehouse.StatusPending || a.Approval == nil || a.Approval.RejectsAt != nil, nil
	case gatehouse.NotifyDeadLetter, gatehouse.NotifyUnknown:
		if a.Push == nil {
			return true, nil
		}
		p, err := tx.FindPush(a.Push.ID)
		if err != nil {
			return errors.Is(err, gatehouse.ErrNotFound), ignoreNotFound(err)
		}
		return !p.DeadLetter(), nil
	case gatehouse.NotifyHeartbeat:
		return !taskWaits(a), nil
	}
	return false, nil
}

// recipients are the people whom an entry concerns, except the one who caused it.
func (s *fanOut) recipients(t trigger, a *gatehouse.Action) ([]*gatehouse.Principal, error) {
	concerned := func(*gatehouse.Principal) bool { return false }
	switch t.kind {
	case gatehouse.NotifyEscalated:
		// The people of earlier stages already know.
		concerned = func(p *gatehouse.Principal) bool {
			return a.Approval.AsksFirst(p, t.leaf.Data.Stage) && mayAnswer(a, p, s.now) ||
				slices.ContainsFunc(answersFor(a, p, s.standings, s.now), func(from *gatehouse.Principal) bool {
					return a.Approval.AsksFirst(from, t.leaf.Data.Stage)
				})
		}
	case gatehouse.NotifyAsked, gatehouse.NotifyReminded:
		concerned = func(p *gatehouse.Principal) bool {
			return mayAnswer(a, p, s.now) || len(answersFor(a, p, s.standings, s.now)) > 0
		}
	case gatehouse.NotifyDeadLetter, gatehouse.NotifyUnknown:
		concerned = func(p *gatehouse.Principal) bool { return p.Has(gatehouse.RoleOperator) }
	case gatehouse.NotifyDecided, gatehouse.NotifyExpired:
		names := []string{a.ProposerID}
		if a.OnBehalfOf != "" {
			names = append(names, a.OnBehalfOf)
		}
		proposer, err := s.tx.FindPrincipal(a.ProposerID)
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		if proposer != nil && proposer.Sponsor != "" {
			names = append(names, proposer.Sponsor)
		}
		concerned = func(p *gatehouse.Principal) bool {
			return slices.ContainsFunc(
				names,
				func(name string) bool { return p.ID == name || strings.EqualFold(p.Name, name) },
			)
		}
	}
	if alone := t.leaf.soleRecipient(); alone != "" {
		concerned = func(p *gatehouse.Principal) bool { return p.ID == alone }
	}
	self := s.person(t.leaf.Actor)
	var list []*gatehouse.Principal
	for _, p := range s.people {
		if !p.Disabled && p.Person != self && p.ID != t.leaf.Actor && concerned(p) {
			list = append(list, p)
		}
	}
	return list, nil
}

// person is the human behind a principal, "" for none.
func (s *fanOut) person(id string) string {
	for _, p := range s.people {
		if p.ID == id {
			return p.Person
		}
	}
	return ""
}

// mayAnswer reports whether a question asks a person who has not answered it yet.
func mayAnswer(a *gatehouse.Action, p *gatehouse.Principal, now time.Time) bool {
	return a.Approval != nil && p.MayDecide() && a.Approval.Asks(p, now) && !a.Approval.Bars(p) &&
		a.Approval.VoteOf(p.Person) == nil
}

// answersFor lists the people for whom a person may answer a question by a delegation, if
// neither of the two has answered it.
func answersFor(
	a *gatehouse.Action, p *gatehouse.Principal, list []gatehouse.Standing, now time.Time,
) []*gatehouse.Principal {
	if a.Approval == nil || a.Approval.VoteOf(p.Person) != nil {
		return nil
	}
	return slices.DeleteFunc(a.StandsFor(p, list, now), func(from *gatehouse.Principal) bool {
		return a.Approval.VoteOf(from.Person) != nil
	})
}

// add queues a message, or counts it in the recipient's digest.
func (s *fanOut) add(t trigger, a *gatehouse.Action, c *Configured, recipient string) error {
	l, err := s.load(c, recipient)
	if err != nil {
		return err
	}
	full := !c.Trait().Every && l.count >= s.n.config.DigestAfter
	if full && recipient == "" && (t.kind == gatehouse.NotifyDecided || t.kind == gatehouse.NotifyExpired) {
		// If the question's message is posted or queued, this one updates it, and need not go into the digest.
		ref, waits, err := questionMessage(s.tx, a.ID, c.Name)
		if err != nil {
			return err
		}
		full = ref == "" && !waits
	}
	if full {
		l.digest(s, t.kind, a, c, recipient)
		return nil
	}
	l.count++
	row := s.entryRow(t, a, c, recipient)
	*row.DueAt = dueAt(s.now, t.kind, a, c.Quiet, s.preferences.quiet(recipient, c.Name))
	s.rows = append(s.rows, row)
	return nil
}

// entryRow is the message about an entry.
func (s *fanOut) entryRow(t trigger, a *gatehouse.Action, c *Configured, recipient string) *gatehouse.Notification {
	return s.row(t.kind, a.ID, t.index, c.Name, recipient,
		gatehouse.ObjectJSON(gatehouse.Member{Name: "event", Value: gatehouse.StringJSON(t.leaf.Type)}))
}

// row is a message that is due now.
func (s *fanOut) row(
	kind gatehouse.NotificationKind, action string, entry int64, channel, recipient string, data gatehouse.JSON,
) *gatehouse.Notification {
	due := s.now
	return &gatehouse.Notification{
		ID: newID(), Tenant: s.tenant, CreatedAt: s.now, Kind: kind, ActionID: action, Entry: entry, Channel: channel,
		Recipient: recipient, Status: gatehouse.NotificationQueued, DueAt: &due, Data: data,
	}
}

// write stores the new rows and the changes of the digests.
func (s *fanOut) write(tx gatehouse.Tx) error {
	if err := tx.InsertNotifications(s.rows); err != nil {
		return err
	}
	for _, l := range s.loads {
		if err := l.write(tx); err != nil {
			return err
		}
	}
	return nil
}
