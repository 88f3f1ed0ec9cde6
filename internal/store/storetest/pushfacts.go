package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// pushFacts checks that PushFacts returns the pushes of one tenant since a time, and the older ones that are still
// open, each once.
func (s *suite) pushFacts() {
	start := s.now()
	for _, status := range []gatehouse.PushStatus{
		gatehouse.PushQueued, gatehouse.PushPicking, gatehouse.PushSent, gatehouse.PushApplied, gatehouse.PushCanceled,
	} {
		s.pushIn(status)
	}
	dead := s.deadIn(gatehouse.PushFailed, gatehouse.Hash{1})
	read := func(tenant string, since time.Time, readBy string) (got []string, facts []gatehouse.PushFact) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) error {
			got, facts = nil, nil
			return tx.PushFacts(since, readBy, func(f gatehouse.PushFact) {
				got, facts = append(got, string(f.Status)), append(facts, f)
			})
		})
		slices.Sort(got)
		return got, facts
	}
	all, facts := read(tenant, start.Add(-time.Hour), "")
	s.same("all", strings.Join(all, " "), "applied canceled failed picking queued sent")
	for _, f := range facts {
		if f.Status != gatehouse.PushFailed {
			continue
		}
		s.same("the dead letter", f, gatehouse.PushFact{
			Connector: dead.Connector, Status: dead.Status, ErrorCode: dead.ErrorCode, LastError: dead.LastError,
			TargetSays: dead.TargetSays, CreatedAt: dead.CreatedAt, NotBefore: dead.NotBefore, SentAt: dead.SentAt,
			AppliedAt: dead.AppliedAt, FinishedAt: dead.FinishedAt,
		})
	}
	open, _ := read(tenant, s.now().Add(time.Hour), "")
	s.same("open from before", strings.Join(open, " "), "picking queued sent")
	none, _ := read(tenant, start.Add(-time.Hour), "prn_other")
	s.same("of another proposer", len(none), 0)
	foreign, _ := read("acme", start.Add(-time.Hour), "")
	s.same("of another tenant", len(foreign), 0)
}
