package console

import (
	"bytes"
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// firstWeight is how much of a payload is shown at first: fields, lines of
// texts, and references count one each. What has more is shown in full on
// demand, and can be approved only then.
const firstWeight = 300

// payload is the change field by field, as much of it as is shown.
type payload struct {
	changes []card.Change
	// context are the fields that stay.
	context []card.Change
	refs    []string
	// hidden counts what is left out: nothing when full.
	hidden int
	full   bool
}

func newPayload(a *gatehouse.Action, full bool) payload {
	p := payload{refs: a.Target.EntityRefs, full: full}
	for _, c := range card.Changes(a) {
		if c.Context {
			p.context = append(p.context, c)
		} else {
			p.changes = append(p.changes, c)
		}
	}
	if full {
		return p
	}
	budget := firstWeight
	for i, c := range p.changes {
		if budget -= weight(c); budget < 0 {
			p.hidden += len(p.changes) - i
			p.changes = p.changes[:i]
			break
		}
	}
	if n := len(p.refs); n > firstWeight {
		p.hidden += n - firstWeight
		p.refs = p.refs[:firstWeight]
	}
	if n := len(p.context); n > firstWeight {
		p.hidden += n - firstWeight
		p.context = p.context[:firstWeight]
	}
	return p
}

// weight is how much room a change takes, in lines.
func weight(c card.Change) int {
	if c.Text == nil {
		return 1
	}
	n := 1
	for _, b := range c.Text.Blocks {
		n += len(b.Lines)
	}
	return n
}

// pretty indents a JSON text; the lexemes stay as they are.
func pretty(j gatehouse.JSON) string {
	if j == "" {
		return "null"
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(j), "", "  "); err != nil {
		return string(j)
	}
	return b.String()
}
