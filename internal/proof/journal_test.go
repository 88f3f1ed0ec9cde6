package proof

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// journal records outside the server what clients were told with 2xx.
type journal struct {
	mu sync.Mutex
	// proposed maps an action to the digest in its answer.
	proposed map[string]gatehouse.Digest
	// decided and canceled map an action to the person who was told that they
	// did it.
	decided  map[string]verdict
	canceled map[string]string
	// voted maps an action to the persons who were told that their vote counts.
	voted map[string][]string
	acks  int
	wrong []string
}

// verdict is one acknowledged decision.
type verdict struct{ outcome, by string }

func newJournal() *journal {
	return &journal{
		proposed: make(map[string]gatehouse.Digest), decided: make(map[string]verdict), canceled: make(map[string]string),
		voted: make(map[string][]string),
	}
}

// soFar returns a copy of the present journal.
func (j *journal) soFar() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &journal{
		proposed: maps.Clone(j.proposed), decided: maps.Clone(j.decided), canceled: maps.Clone(j.canceled),
		voted: maps.Clone(j.voted),
		acks:  j.acks, wrong: slices.Clone(j.wrong),
	}
	for id, names := range c.voted {
		c.voted[id] = slices.Clone(names)
	}
	return c
}

// propose records an acknowledged proposal.
func (j *journal) propose(id string, d gatehouse.Digest) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acks++
	if old, ok := j.proposed[id]; ok && old != d {
		j.wrong = append(j.wrong, id+" was answered with two digests")
	}
	j.proposed[id] = d
}

// decide records a 2xx answer to a decision. If the first answer was lost, its
// sender's retry is answered "already", which counts, too.
func (j *journal) decide(id, outcome, by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acks++
	v := verdict{outcome, by}
	if old, ok := j.decided[id]; ok && old != v {
		j.wrong = append(j.wrong, id+" was answered "+old.outcome+" by "+old.by+" and "+outcome+" by "+by)
	}
	j.decided[id] = v
}

// vote records an acknowledged vote that did not decide.
func (j *journal) vote(id, by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acks++
	j.voted[id] = append(j.voted[id], by)
}

// cancel records an acknowledged cancellation.
func (j *journal) cancel(id, by string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.acks++
	j.canceled[id] = by
}

// learn records the winner among a storm's answers.
func (j *journal) learn(t *testing.T, a *gatehouse.Action, people []*person, answers []answer) {
	t.Helper()
	j.propose(a.ID, a.Digest)
	for i, res := range answers {
		switch res.word() {
		case "decided":
			outcome := "approved"
			if d, ok := res.body["action"].(object); ok && d["status"] == "rejected" {
				outcome = "rejected"
			}
			if res.body["action"] == nil { // a bulk item does not say
				outcome = ""
			}
			j.decide(a.ID, outcome, people[i].name)
		case "approved", "rejected":
			j.decide(a.ID, res.word(), people[i].name)
		}
	}
}
