package notify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// proposerFacts are the facts that a proposer sends for the reviewer: the rationale, the project and progress of
// its work, the evaluations, and the size of a text diff.
func proposerFacts(a *gatehouse.Action) (facts []Fact) {
	if a.Rationale != "" {
		facts = append(facts, Fact{"Rationale of the proposer", line(a.Rationale, maxWhy)})
	}
	var work []string
	for _, name := range []string{"project_id", "feature", "edge", "iteration"} {
		if value, ok := a.Context.Get(name); ok && value != "null" && value != `""` {
			work = append(work, strings.TrimSuffix(name, "_id")+" "+plainText(value))
		}
	}
	if len(work) > 0 {
		facts = append(facts, Fact{"Work", line(strings.Join(work, ", "), maxLine)})
	}
	if state, ok := a.Context.Get("feature_vector_state"); ok && state != "null" {
		facts = append(facts, Fact{"State of the work", line(plainText(state), maxWhy)})
	}
	if len(a.Evaluations) > 0 {
		facts = append(facts, Fact{"Evaluations", line(evaluations(a.Evaluations), 2*maxWhy)})
	}
	if d := a.ArtifactDiff; d != nil {
		text := d.Type
		if d.LinesAdded != nil && d.LinesRemoved != nil {
			text += fmt.Sprintf(", %d lines added, %d removed", *d.LinesAdded, *d.LinesRemoved)
		}
		if d.Summary != "" {
			text += ": " + d.Summary
		}
		facts = append(facts, Fact{"Artifact", line(text, maxWhy)})
	}
	return facts
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

// shortened returns a fact that names the facts that were cut, nil if none was.
func shortened(facts []Fact) []Fact {
	var labels []string
	for _, f := range facts {
		if strings.Contains(f.Value, "…") {
			labels = append(labels, f.Label)
		}
	}
	if len(labels) == 0 {
		return nil
	}
	return []Fact{{"Shortened here", strings.Join(labels, ", ") + ". Gatehouse shows them in full."}}
}

// evaluations lists the evaluations. Failures and warnings come first, since the end may be cut.
func evaluations(list []gatehouse.Evaluation) string {
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
			texts[i] += ": " + line(e.Details, maxLine/2)
		}
	}
	return strings.Join(texts, "; ")
}
