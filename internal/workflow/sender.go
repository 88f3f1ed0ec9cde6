package workflow

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// maxSenders bounds the from of a wait.
const maxSenders = 50

// Sender is one entry of a wait's from. Exactly one field is set.
type Sender struct {
	Starter bool // the principal that started the run
	Kind    gatehouse.Kind
	Role    gatehouse.Role
	Name    string
}

// String returns the entry in the workflow's notation.
func (s Sender) String() string {
	switch {
	case s.Starter:
		return "starter"
	case s.Kind != "":
		return "kind:" + string(s.Kind)
	case s.Role != "":
		return "role:" + string(s.Role)
	}
	return s.Name
}

// Is reports whether the entry matches a principal. starter says that the principal
// started the run.
func (s Sender) Is(p *gatehouse.Principal, starter bool) bool {
	switch {
	case s.Starter:
		return starter
	case s.Kind != "":
		return p.Kind == s.Kind
	case s.Role != "":
		return p.Has(s.Role)
	}
	return s.Name != "" && strings.EqualFold(s.Name, p.Name)
}

// Senders returns the from of the steps that wait for an event; nil when they
// have none. All steps that wait for one event have the same from.
func (d *Definition) Senders(event string) []Sender {
	for _, s := range d.Steps {
		if s.Kind == KindWait && s.event == event && len(s.From) > 0 {
			return s.From
		}
	}
	return nil
}

// takesFrom reports whether the event is accepted from a simulated sender,
// which is written like an entry of from.
func (d *Definition) takesFrom(event, by string) bool {
	from := d.Senders(event)
	switch {
	case by == "":
		return true
	case len(from) == 0: // an agent may send events only to a run that it started
		return by != Sender{Kind: gatehouse.KindAgent}.String()
	}
	return slices.ContainsFunc(from, func(s Sender) bool { return strings.EqualFold(s.String(), by) })
}

// from reads the senders of a wait. They are literals, so that no data decides
// who may answer. The event's name is a literal, too, because the sender is checked
// when an event arrives, which may be before the step evaluates the name.
func (p *parser) from(s *Step, w form.Fields) {
	v := w.Values["from"]
	switch {
	case v != nil && w.Values["event"] == nil:
		p.Fail(v, "from needs event")
	case v != nil && s.event == "":
		p.Fail(v, "from needs an event without expressions")
	}
	items := p.List(v, "from")
	if v != nil && (len(items) == 0 || len(items) > maxSenders) {
		p.Fail(v, "from must list 1 to %d senders", maxSenders)
		return
	}
	for _, item := range items {
		one, ok := parseSender(p.Text(item, "from"))
		switch {
		case !ok:
			p.Fail(item, "from must list starter, kind:<person, agent or service>, role:<role> or names of principals, "+
				"without expressions")
		case slices.Contains(s.From, one):
			p.Fail(item, "%s appears twice", gatehouse.Quote(one.String()))
		default:
			s.From = append(s.From, one)
		}
	}
	for _, other := range p.def.Steps {
		if s.event != "" && other.event == s.event && !slices.Equal(other.From, s.From) {
			at := v
			if at == nil {
				at = w.Node
			}
			p.Fail(at, "the step %s waits for the same event with another from", other.ID)
		}
	}
}

func parseSender(text string) (Sender, bool) {
	prefix, rest, cut := strings.Cut(text, ":")
	switch {
	case text == "starter":
		return Sender{Starter: true}, true
	case cut && prefix == "kind":
		k := gatehouse.Kind(rest)
		return Sender{Kind: k}, k == gatehouse.KindPerson || k == gatehouse.KindAgent || k == gatehouse.KindService
	case cut && prefix == "role":
		return Sender{Role: gatehouse.Role(rest)}, slices.Contains(gatehouse.Roles(), gatehouse.Role(rest))
	}
	return Sender{Name: text}, gatehouse.ValidName(text)
}
