package workflow

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// withKeys lists the permitted keys of `with`, by kind. An absent kind permits
// all keys. The JSON Schema has the same keys.
var withKeys = map[Kind][]string{
	KindConnector: {
		"target", "change", "current_state", "rationale", "magnitude", "evaluations", "metadata", "context", "expires_in",
		"artifact_diff",
	},
	KindApproval: {
		"title", "about", "change", "current_state", "rationale", "magnitude", "evaluations", "metadata", "context",
		"expires_in", "artifact_diff",
	},
	KindModel: {"model", "system", "prompt", "messages", "max_tokens", "temperature", "json", "stop"},
	KindWait:  {"for", "until", "event", "timeout", "from"},
}

// partKeys lists the permitted keys of the parts of a proposal. An absent part
// permits all keys.
var partKeys = map[string][]string{
	"target":        {"entity_type", "entity_ref", "entity_refs", "version"},
	"about":         {"connector", "operation", "entity_type", "entity_ref", "version"},
	"magnitude":     {"amount", "currency"},
	"artifact_diff": {"type", "text", "summary", "lines_added", "lines_removed"},
}

// with checks `with` as far as possible without evaluating it.
func (p *parser) with(s *Step, f form.Fields) {
	n := f.Values["with"]
	known, restricted := withKeys[s.Kind]
	if n == nil {
		if s.Kind == KindConnector || s.Kind == KindModel || s.Kind == KindWait || s.Kind == KindTransform {
			p.Fail(f.Node, "a step that uses %s needs with", s.Kind)
		}
		return
	}
	if !restricted {
		if s.Kind == KindWorkflow && n.Kind != yaml.MappingNode && !isExpression(n) {
			p.Fail(n, "with must be a mapping: the child run's input")
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		p.Fail(n, "with must be a mapping")
		return
	}
	w := p.Mapping(n, "with of "+string(s.Kind), known...)
	for _, key := range w.Keys {
		s.withKeys = append(s.withKeys, key.Value)
	}
	switch s.Kind {
	case KindConnector:
		p.need(w, "with", "target", "change")
		p.proposal(w)
	case KindApproval:
		p.proposal(w)
	case KindModel:
		p.need(w, "with", "model")
		if w.Node != nil && (w.Values["prompt"] == nil) == (w.Values["messages"] == nil) {
			p.Fail(w.Node, "with needs one of prompt and messages")
		}
	case KindWait:
		p.wait(s, w)
	}
}

func isExpression(n *yaml.Node) bool {
	list, bad := pieces(n.Value)
	return n.Kind == yaml.ScalarNode && bad < 0 && len(list) == 1 && list[0].source
}

// proposal checks the mappings in the parts of a proposal.
func (p *parser) proposal(w form.Fields) {
	for _, part := range []string{
		"target", "about", "magnitude", "artifact_diff", "change", "current_state", "metadata", "context",
	} {
		n := w.Values[part]
		switch {
		case n == nil || isExpression(n):
		case n.Kind != yaml.MappingNode:
			p.Fail(n, "%s must be a mapping", part)
		case partKeys[part] != nil:
			f := p.Mapping(n, part, partKeys[part]...)
			if part == "about" {
				p.need(f, part, "connector", "entity_type", "entity_ref")
				if f.Node != nil && f.Values["version"] == nil && w.Values["current_state"] == nil {
					p.Fail(n, "about needs a version, or a current_state beside it")
				}
			}
		}
	}
	if n := w.Values["expires_in"]; n != nil && !hasExpression(n) {
		p.Duration(n, "expires_in", gatehouse.Duration(time.Second), gatehouse.Duration(gatehouse.MaxExpiry))
	}
}

func hasExpression(n *yaml.Node) bool {
	list, _ := pieces(n.Value)
	for _, one := range list {
		if one.source {
			return true
		}
	}
	return false
}

// wait checks a wait step: exactly one of for, until and event.
func (p *parser) wait(s *Step, w form.Fields) {
	if w.Node == nil {
		return
	}
	n := 0
	for _, key := range []string{"for", "until", "event"} {
		if w.Values[key] != nil {
			n++
		}
	}
	if n != 1 {
		p.Fail(w.Node, "a wait has one of for, until and event")
	}
	if v := w.Values["timeout"]; v != nil {
		if w.Values["event"] == nil {
			p.Fail(v, "timeout needs event")
		}
	}
	for _, key := range []string{"for", "timeout"} {
		if v := w.Values[key]; v != nil && !hasExpression(v) {
			p.Duration(v, key, 0, maxWait)
		}
	}
	if v := w.Values["event"]; v != nil && !hasExpression(v) {
		s.event = p.Name(v, "event")
	}
	p.from(s, w)
	if v := w.Values["until"]; v != nil && !hasExpression(v) {
		if _, err := parseTime(v.Value); err != nil {
			p.Fail(v, "until must be a time such as 2026-11-21T08:00:00Z")
		}
	}
}
