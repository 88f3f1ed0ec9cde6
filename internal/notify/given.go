package notify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// given are the facts that a proposer sends for the reviewer: what its work belongs to, what
// evaluators said, and the size of a text diff.
func given(a *gatehouse.Action) (facts []Fact) {
	var about map[string]json.RawMessage
	_ = json.Unmarshal([]byte(a.Context), &about) // not an object: there is nothing to say
	var work []string
	for _, name := range []string{"project_id", "feature", "edge", "iteration"} {
		text := string(about[name]) // of a number, exactly as it was sent
		if strings.HasPrefix(text, `"`) {
			_ = json.Unmarshal(about[name], &text) // it was parsed before
		}
		if text != "" && text != "null" {
			work = append(work, strings.TrimSuffix(name, "_id")+" "+text)
		}
	}
	if len(work) > 0 {
		facts = append(facts, Fact{"Work", line(strings.Join(work, ", "), maxLine)})
	}
	if len(a.Evaluations) > 0 {
		facts = append(facts, Fact{"Evaluations", line(evaluations(a.Evaluations), maxWhy)})
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

// evaluations lists what evaluators said. Failures and warnings come first, since the end may be cut.
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
	}
	return strings.Join(texts, "; ")
}
