package notify

import (
	"errors"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// addDelegated tells both people of a delegation that it was created or ended, except the one who
// did it, on every personal channel that reaches them.
func (s *fanOut) addDelegated(t trigger) error {
	data := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "delegation", Value: gatehouse.StringJSON(t.leaf.Data.Delegation)},
		gatehouse.Member{Name: "event", Value: gatehouse.StringJSON(t.leaf.Type)})
	var names []string
	for name, c := range s.routes.channels {
		if c.Trait().Personal && !s.routes.off(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, p := range s.people {
		if p.ID != t.leaf.Subject && p.ID != t.leaf.Data.To || p.ID == t.leaf.Actor || p.Disabled {
			continue
		}
		for _, name := range names {
			reached, err := s.reaches(s.routes.channels[name], p)
			if err != nil {
				return err
			}
			if reached {
				s.rows = append(s.rows, s.row(gatehouse.NotifyDelegated, "", t.index, name, p.ID, data))
			}
		}
	}
	return nil
}

// delegated fills in a message about a delegation. muted is the reason for sending none.
func (n *Notifier) delegated(tx gatehouse.DelegationReader, m *Message, id, event string) (muted string, err error) {
	d, err := tx.FindDelegation(id)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return "the delegation does not exist", nil
	}
	if err != nil {
		return "", err
	}
	m.Event = event
	m.Subject = "Gatehouse: " + line(d.FromName, maxSubject) + " and " + line(d.ToName, maxSubject)
	until := d.Ends.UTC().Format(TimeLayout)
	switch forMe := m.To != nil && m.To.ID == d.To; {
	case event == "delegation.ended" && forMe:
		m.Heading = "You no longer answer for " + line(d.FromName, maxLine)
	case event == "delegation.ended":
		m.Heading = line(d.ToName, maxLine) + " no longer answers for you"
	case forMe:
		m.Heading = "You answer for " + line(d.FromName, maxLine) + " until " + until
	default:
		m.Heading = line(d.ToName, maxLine) + " answers for you until " + until
	}
	m.Facts = append(m.Facts, Fact{"From", d.Starts.UTC().Format(TimeLayout)})
	if len(d.Types) > 0 {
		m.Facts = append(m.Facts, Fact{"For", line(strings.Join(d.Types, ", "), maxWhy)})
	}
	if d.Level > 0 {
		m.Facts = append(m.Facts, Fact{"Up to", card.Risk(d.Level).Code})
	}
	by := d.CreatedBy
	if event == "delegation.ended" && d.EndedBy != "" {
		by = d.EndedBy
	}
	m.Facts = append(m.Facts, Fact{"By", line(by, maxLine)})
	m.Link = n.page("/settings/delegations")
	return "", nil
}
