package notify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// addProposerFacts adds the facts that a proposer sends for the reviewer: the rationale, the project and progress of
// its work, the evaluations, and the size of a text diff.
func (m *Message) addProposerFacts(a *gatehouse.Action) {
	if a.Rationale != "" {
		m.addFact("Rationale of the proposer", a.Rationale, maxWhy)
	}
	var work []string
	for _, name := range []string{"project_id", "feature", "edge", "iteration"} {
		if value, ok := a.Context.Get(name); ok && value != "null" && value != `""` {
			work = append(work, strings.TrimSuffix(name, "_id")+" "+plainText(value))
		}
	}
	if len(work) > 0 {
		m.addFact("Work", strings.Join(work, ", "), maxLine)
	}
	if state, ok := a.Context.Get("feature_vector_state"); ok && state != "null" {
		m.addFact("State of the work", plainText(state), maxWhy)
	}
	if len(a.Evaluations) > 0 {
		text, cut := evaluations(a.Evaluations)
		m.addFact("Evaluations", text, 2*maxWhy)
		if cut {
			m.cutFacts = append(m.cutFacts, "Evaluations")
		}
	}
	if d := a.ArtifactDiff; d != nil {
		text := d.Type
		if d.LinesAdded != nil && d.LinesRemoved != nil {
			text += fmt.Sprintf(", %d lines added, %d removed", *d.LinesAdded, *d.LinesRemoved)
		}
		if d.Summary != "" {
			text += ": " + d.Summary
		}
		m.addFact("Artifact", text, maxWhy)
	}
}

// plainText writes a JSON value as text: "current_edge design; edges_completed intent, requirements". Numbers
// stay exactly as they were sent.
func plainText(v gatehouse.JSON) string {
	if text, ok := v.Text(); ok {
		return text
	}
	var parts []string
	if fields, err := v.Fields(); err == nil {
		for _, f := range fields {
			parts = append(parts, f.Name+" "+plainText(f.Value))
		}
		return strings.Join(parts, "; ")
	}
	if list, err := v.Elements(); err == nil {
		for _, one := range list {
			parts = append(parts, plainText(one))
		}
		return strings.Join(parts, ", ")
	}
	return string(v)
}

// addShortened adds a fact that names the facts that were cut, if any.
func (m *Message) addShortened() {
	if labels := slices.Compact(m.cutFacts); len(labels) > 0 {
		m.Facts = append(m.Facts, Fact{"Shortened here", strings.Join(labels, ", ") + ". Gatehouse shows them in full."})
	}
}

// evaluations lists the evaluations. Failures and warnings come first, since the end may be cut. cut says that the
// details of one are cut.
func evaluations(list []gatehouse.Evaluation) (text string, cut bool) {
	order := []string{"fail", "warn", "pass"}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b gatehouse.Evaluation) int {
		return slices.Index(order, a.Result) - slices.Index(order, b.Result)
	})
	texts := make([]string, len(sorted))
	for i, e := range sorted {
		texts[i] = e.Name + " (" + e.Kind + ") " + e.Result
		if e.Confidence != "" {
			texts[i] += ", confidence " + string(e.Confidence)
		}
		if e.Details != "" {
			details, long := cutLine(e.Details, maxLine/2)
			texts[i], cut = texts[i]+": "+details, cut || long
		}
	}
	return strings.Join(texts, "; "), cut
}
