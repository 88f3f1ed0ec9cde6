package console

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// The limits for the outputs of earlier steps on the page of an approval step's action. The run's page shows more.
const (
	maxProducedFields = 12  // of one step
	maxProducedText   = 400 // bytes of one field
)

// produced is the output of a step that an approval step has waited for.
type produced struct {
	step   string
	fields []producedField
	more   int // fields that are not shown
}

// producedField is one field of an output. An output that is not an object is shown as one field, named "output".
type producedField struct {
	name, text string
	cut        bool
}

// producedBefore returns the outputs of the steps that an approval step needs. For any other
// step it returns nil.
func (c *Console) producedBefore(v *view, s *gatehouse.Step) ([]produced, error) {
	if s == nil || s.Uses != "approval" {
		return nil, nil
	}
	d, err := c.cfg.Runs.RunDetail(v.ctx, s.RunID)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, _ := s.Iteration()
	var list []produced
	for _, need := range d.Needs[id] {
		of := d.Latest(need)
		if of == nil || of.Status != gatehouse.StepSucceeded || of.Skipped {
			continue
		}
		if p := producedBy(of); len(p.fields) > 0 {
			list = append(list, p)
		}
	}
	return list, nil
}

func producedBy(s *gatehouse.Step) produced {
	p := produced{step: s.Key}
	if !s.Output.IsObject() {
		if s.Output != "" && s.Output != "null" {
			p.fields = []producedField{newProducedField("output", s.Output)}
		}
		return p
	}
	fields, err := s.Output.Fields()
	if err != nil {
		return p
	}
	p.more = max(0, len(fields)-maxProducedFields)
	for _, f := range fields[:len(fields)-p.more] {
		p.fields = append(p.fields, newProducedField(f.Name, f.Value))
	}
	return p
}

// newProducedField shows a string as its text, and any other value as JSON.
func newProducedField(name string, value gatehouse.JSON) producedField {
	text, ok := value.Text()
	if !ok {
		text = string(value)
	}
	f := producedField{name: name, text: text}
	if len(text) > maxProducedText {
		f.text, f.cut = strings.ToValidUTF8(text[:maxProducedText], "")+"…", true
	}
	return f
}
