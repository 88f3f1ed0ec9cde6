package console

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// reviewTitle names a state in which the link cannot decide.
func reviewTitle(s gatehouse.ReviewState) string {
	switch s {
	case gatehouse.ReviewExpired:
		return "Expired"
	case gatehouse.ReviewSuperseded:
		return "Replaced by a newer revision"
	case gatehouse.ReviewRevoked:
		return "This link was revoked"
	}
	return "Not yours to decide"
}

// reviewAnswered describes the result of an answer.
func reviewAnswered(p *reviewPage) string {
	if p.answer.Code == gatehouse.VoteRecorded {
		return "Your vote is recorded: " + strconv.Itoa(p.answer.Votes) + " of " + strconv.Itoa(p.answer.Required) +
			" approvals"
	}
	if p.choice == gatehouse.Reject {
		return "Rejected"
	}
	return "Approved"
}
