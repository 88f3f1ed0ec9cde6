package notify

import (
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
)

// otherTypes is the label for the action types beyond the first [gatehouse.MaxDigestTypes].
const otherTypes = "others"

// load is a recipient's load on a channel: the messages in the window, and the digest for the
// messages beyond the limit.
type load struct {
	count int
	// open is the digest that still collects, nil for none. stored is set when the store has it, grown when this
	// round has counted messages in it.
	open    *gatehouse.Notification
	stored  bool
	grown   bool
	figures gatehouse.NotificationFigures
}

func (s *fanOut) load(c *Configured, recipient string) (*load, error) {
	key := [2]string{c.Name, recipient}
	if l := s.loads[key]; l != nil {
		return l, nil
	}
	l := &load{}
	s.loads[key] = l
	if c.Trait().Every {
		return l, nil
	}
	var err error
	l.count, l.open, err = s.tx.RecentNotifications(c.Name, recipient, s.now.Add(-s.n.config.DigestEvery))
	if err != nil || l.open == nil {
		return l, err
	}
	l.stored = true
	return l, json.Unmarshal([]byte(l.open.Data), &l.figures)
}

// digest counts a message in the digest. The first one creates the digest, which is sent at the end
// of the window.
func (l *load) digest(
	s *fanOut, kind gatehouse.NotificationKind, a *gatehouse.Action, c *Configured, recipient string,
) {
	if l.open == nil {
		l.figures = gatehouse.NotificationFigures{
			Since: s.now, ByKind: make(map[string]int), ByType: make(map[string]int), ByRisk: make(map[string]int),
		}
		l.open = s.row(gatehouse.NotifyDigest, "", -1, c.Name, recipient, "")
		due := afterAll(s.now.Add(s.n.config.DigestEvery), c.Quiet, s.preferences.quiet(recipient, c.Name))
		l.open.DueAt = &due
	}
	l.grown = true
	f := &l.figures
	f.Total++
	f.ByKind[string(kind)]++
	name := a.ActionType
	if _, known := f.ByType[name]; !known && len(f.ByType) >= gatehouse.MaxDigestTypes {
		name = otherTypes
	}
	f.ByType[name]++
	f.ByRisk[a.RiskLevel.String()]++
	if len(f.First) < gatehouse.MaxDigestActions {
		f.First = append(f.First, a.ID)
	}
}

// write stores a new or updated digest; a conflict says that the digest has been sent meanwhile.
func (l *load) write(tx gatehouse.NotificationWriter) error {
	if l.open == nil || !l.grown {
		return nil
	}
	l.open.Data = gatehouse.MustJSON(l.figures)
	if l.stored {
		return tx.UpdateNotification(l.open, gatehouse.NotificationQueued, l.open.Generation)
	}
	return tx.InsertNotifications([]*gatehouse.Notification{l.open})
}
