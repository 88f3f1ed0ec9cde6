package gatehouse_test

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestEditResult: an edit with approve counts like any other decision.
func TestEditResult(t *testing.T) {
	t.Parallel()
	with := func(s gatehouse.Status) *gatehouse.Action { return &gatehouse.Action{Status: s} }
	for name, c := range map[string]struct {
		revision *gatehouse.Action
		err      error
		want     gatehouse.DecisionResult
	}{
		"approved":         {with(gatehouse.StatusApproved), nil, gatehouse.ResultWon},
		"an open quorum":   {with(gatehouse.StatusPending), nil, gatehouse.ResultVoted},
		"a repetition":     {nil, &gatehouse.Replay{}, gatehouse.ResultReplayed},
		"decided before":   {nil, gatehouse.E(gatehouse.CodeAlreadyDecided, "x"), gatehouse.ResultConflict},
		"voted before":     {nil, gatehouse.E(gatehouse.CodeAlreadyVoted, "x"), gatehouse.ResultConflict},
		"another digest":   {nil, gatehouse.E(gatehouse.CodeDigestMismatch, "x"), gatehouse.ResultRefused},
		"not by an editor": {nil, gatehouse.E(gatehouse.CodeSelfApproval, "x"), gatehouse.ResultRefused},
		"no store":         {nil, errors.New("x"), gatehouse.ResultRefused},
	} {
		if got := gatehouse.EditResult(c.revision, c.err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
