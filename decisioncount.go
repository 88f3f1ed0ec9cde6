package gatehouse

import "errors"

// DecisionResult classifies a request for a decision. A rising share of replayed or
// conflict can reveal a fault of a client, such as requests that it sends twice.
type DecisionResult string

// The results of requests for a decision.
const (
	ResultWon      DecisionResult = "won"      // the request decided
	ResultVoted    DecisionResult = "voted"    // the vote counts, and the quorum is not met
	ResultReplayed DecisionResult = "replayed" // the same decision was already taken
	ResultConflict DecisionResult = "conflict" // another decision or vote came before
	ResultRefused  DecisionResult = "refused"  // any other refusal
)

// DecisionResults returns all results.
func DecisionResults() []DecisionResult {
	return []DecisionResult{ResultWon, ResultVoted, ResultReplayed, ResultConflict, ResultRefused}
}

// DecisionResultOf classifies a successful answer. code is the Code of an Answer,
// the Status of a ShortAnswer or the Result of a BulkResult.
func DecisionResultOf(code string, replayed bool) DecisionResult {
	switch {
	case replayed, code == AlreadyApproved, code == AlreadyRejected:
		return ResultReplayed
	case code == VoteRecorded:
		return ResultVoted
	}
	return ResultWon
}

// RefusedResult classifies a request that failed with the code.
func RefusedResult(code Code) DecisionResult {
	switch code {
	case CodeAlreadyDecided, CodeNotAwaitingApproval, CodeAlreadyVoted:
		return ResultConflict
	}
	return ResultRefused
}

// FailedResult classifies a request that failed with the error; a [Replay] is not a
// failure.
func FailedResult(err error) DecisionResult {
	var replay *Replay
	if errors.As(err, &replay) {
		return ResultReplayed
	}
	return RefusedResult(CodeOf(err))
}

// EditResult classifies an edit with approve: the approval is only a vote while the revision is pending.
func EditResult(revision *Action, err error) DecisionResult {
	switch {
	case err != nil:
		return FailedResult(err)
	case revision.Status == StatusPending:
		return ResultVoted
	}
	return ResultWon
}

// Outcome classifies one item of a bulk decision.
func (r *BulkResult) Outcome() DecisionResult {
	if r.Skipped != "" {
		return RefusedResult(Code(r.Skipped))
	}
	return DecisionResultOf(r.Result, false)
}

// DecisionCount counts the requests for a decision at one endpoint, by result.
type DecisionCount struct {
	// Endpoint is decide, bulk-decide (each item counts; a request that fails or is
	// repeated counts once), approve, reject, or console for every decision of a
	// signed-in browser.
	Endpoint string `json:"endpoint"`
	// Won counts the requests that settled the question.
	Won int64 `json:"won"`
	// Voted counts votes that left the quorum open.
	Voted int64 `json:"voted"`
	// Replayed counts repetitions of a decision that stands.
	Replayed int64 `json:"replayed"`
	// Conflict counts requests that came after another decision, or after another vote of the
	// same person.
	Conflict int64 `json:"conflict"`
	// Refused counts all other errors, such as a missing right.
	Refused int64 `json:"refused"`
}

// Add adds n to the count of a result.
func (c *DecisionCount) Add(result DecisionResult, n int64) {
	switch result {
	case ResultWon:
		c.Won += n
	case ResultVoted:
		c.Voted += n
	case ResultReplayed:
		c.Replayed += n
	case ResultConflict:
		c.Conflict += n
	default:
		c.Refused += n
	}
}
