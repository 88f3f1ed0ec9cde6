package gatehouse

import (
	"context"
	"time"
)

// Evaluated is the result of a registered evaluator for a pending action. An evaluator is a
// service with the role evaluator and no other role, so its credential proves that the proposer
// did not write the result. Neither the policy nor the gate acts on the result; people see it.
type Evaluated struct {
	// ByID and By are the evaluator's principal id and name.
	ByID string `json:"by_id"`
	By   string `json:"by"`
	NewEvaluated
	// At is when the result arrived.
	At time.Time `json:"at"`
}

// NewEvaluated is an evaluator's result for the revision of an action that has the digest.
type NewEvaluated struct {
	// Digest is the digest of the evaluated revision.
	Digest Digest `json:"digest"`
	// Result is pass, warn or fail.
	Result string `json:"result"`
	// Score is a number from 0 to 1, "" for none.
	Score Decimal `json:"score,omitempty"`
	// Text is the evaluator's explanation, at most [MaxEvaluationText] bytes.
	Text string `json:"text,omitempty"`
}

// The limits of evaluations.
const (
	// MaxEvaluationText bounds the text of an evaluation, in bytes.
	MaxEvaluationText = 4 << 10
	// MaxEvaluated bounds the evaluations of one action.
	MaxEvaluated = 20
)

// Validate checks the fields. The error has code invalid.
func (n *NewEvaluated) Validate() error {
	var v Violations
	if n.Digest == "" {
		v.Add("/digest", "is required: it names what was evaluated")
	}
	switch n.Result {
	case "pass", "warn", "fail":
	default:
		v.Add("/result", "must be pass, warn or fail")
	}
	if n.Score != "" && (n.Score.Sign() < 0 || n.Score.Cmp("1") > 0) {
		v.Add("/score", "must be a number from 0 to 1")
	}
	if len(n.Text) > MaxEvaluationText {
		v.Add("/text", "has more than %d bytes", MaxEvaluationText)
	}
	return v.Err()
}

// EvaluationService takes the results of registered evaluators.
type EvaluationService interface {
	// Evaluate stores the caller's result for a pending action. The error has code
	// digest_mismatch if the action has another digest, too_late if it is not pending or has
	// expired, and already_exists if the caller has evaluated the action already, or if the
	// action has [MaxEvaluated] evaluations.
	Evaluate(ctx context.Context, id string, n NewEvaluated) (*Evaluated, error)
}
