// Package storetest is the conformance suite of gatehouse.Store. Every engine
// passes all of it, without exceptions. An engine's whole test is
//
//	storetest.Run(t, func(t *testing.T) gatehouse.Store { … })
//
// where each call opens a new store, empty except for the default tenant, and
// closes it when the test ends.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-dev/gatehouse"
)

// Clocked is a store whose wall clock a test can set. If open returns one, the
// suite also tests a clock that jumps.
type Clocked interface {
	gatehouse.Store
	SetClock(now func() time.Time)
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) gatehouse.Store) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"ActionRoundTrip", (*suite).actionRoundTrip},
		{"ActionsByID", (*suite).actionsByID},
		{"ActionFacts", (*suite).actionFacts},
		{"DecisionCounts", (*suite).decisionCounts},
		{"IDs", (*suite).ids},
		{"SavedViews", (*suite).savedViews},
		{"Notices", (*suite).notices},
		{"Notifications", (*suite).notifications},
		{"NotificationRace", (*suite).notificationRace},
		{"SlackClicks", (*suite).slackClicks},
		{"SlackClickRace", (*suite).slackClickRace},
		{"Cards", (*suite).cards},
		{"LogPosition", (*suite).logPosition},
		{"ChannelStates", (*suite).channelStates},
		{"RingKeys", (*suite).ringKeys},
		{"Secrets", (*suite).secrets},
		{"Reviews", (*suite).reviews},
		{"ApproverSince", (*suite).approverSince},
		{"PolicyActions", (*suite).policyActions},
		{"ConnectorVersions", (*suite).connectorVersions},
		{"ActionKeys", (*suite).actionKeys},
		{"ActionMoves", (*suite).actionMoves},
		{"ActionMoveColumns", (*suite).actionMoveColumns},
		{"ActionFirstStatus", (*suite).actionFirstStatus},
		{"ActionLinks", (*suite).actionLinks},
		{"ApprovalMoves", (*suite).approvalMoves},
		{"Votes", (*suite).votes},
		{"Expiry", (*suite).expiry},
		{"OpenReversal", (*suite).openReversal},
		{"Lessons", (*suite).corpusAndMirror},
		{"Ceilings", (*suite).ceilings},
		{"CeilingRace", (*suite).ceilingRace},
		{"CeilingGroups", (*suite).ceilingGroups},
		{"CeilingExcess", (*suite).ceilingExcess},
		{"Stages", (*suite).stages},
		{"HeldRejections", (*suite).heldRejections},
		{"Delegations", (*suite).delegations},
		{"Grants", (*suite).grants},
		{"Devices", (*suite).devices},
		{"Preferences", (*suite).preferences},
		{"Mandates", (*suite).mandates},
		{"Targets", (*suite).targets},
		{"Conversations", (*suite).conversations},
		{"Snoozes", (*suite).snoozes},
		{"Moments", (*suite).moments},
		{"Opens", (*suite).opens},
		{"Settles", (*suite).settles},
		{"WriteAfterLock", (*suite).writeAfterLock},
		{"PushRoundTrip", (*suite).pushRoundTrip},
		{"DeadLetters", (*suite).deadLetters},
		{"PushFacts", (*suite).pushFacts},
		{"ReplayFromUnknown", (*suite).replayFromUnknown},
		{"PushMoves", (*suite).pushMoves},
		{"PushNeedsApproval", (*suite).pushNeedsApproval},
		{"PushFence", (*suite).pushFence},
		{"Claims", (*suite).claims},
		{"ClaimOrder", (*suite).claimOrder},
		{"ClaimRace", (*suite).claimRace},
		{"ClaimShares", (*suite).claimShares},
		{"ClaimBound", (*suite).claimBound},
		{"DueTenants", (*suite).dueTenants},
		{"Lanes", (*suite).lanes},
		{"DueInLane", (*suite).dueInLane},
		{"NextExcept", (*suite).nextExcept},
		{"Leases", (*suite).leases},
		{"Receipts", (*suite).receipts},
		{"Principals", (*suite).principals},
		{"FirstPrincipal", (*suite).firstPrincipal},
		{"Groups", (*suite).groups},
		{"Answerers", (*suite).answerers},
		{"Keys", (*suite).keys},
		{"Sessions", (*suite).sessions},
		{"SessionLists", (*suite).sessionLists},
		{"SetupLinks", (*suite).setupLinks},
		{"Credentials", (*suite).credentials},
		{"Ceremonies", (*suite).ceremonies},
		{"StepUps", (*suite).stepUps},
		{"SessionPurge", (*suite).sessionPurge},
		{"Tenants", (*suite).tenants},
		{"Idempotency", (*suite).idempotency},
		{"Policies", (*suite).policies},
		{"AuditNumbering", (*suite).auditNumbering},
		{"AuditRanges", (*suite).auditRanges},
		{"AuditConflict", (*suite).auditConflict},
		{"AuditLeafBytes", (*suite).auditLeafBytes},
		{"ListFilters", (*suite).listFilters},
		{"ListUrgency", (*suite).listUrgency},
		{"ListWalk", (*suite).listWalk},
		{"ListCursors", (*suite).listCursors},
		{"ListLarge", (*suite).listLarge},
		{"MirrorLarge", (*suite).mirrorLarge},
		{"Search", (*suite).search},
		{"SearchBlocks", (*suite).searchBlocks},
		{"SearchBlocksReused", (*suite).searchBlocksReused},
		{"ListAttaches", (*suite).listAttaches},
		{"Readers", (*suite).readers},
		{"ReadPushes", (*suite).readPushes},
		{"BulkCalls", (*suite).bulkCalls},
		{"Workflows", (*suite).workflows},
		{"RunRoundTrip", (*suite).runRoundTrip},
		{"RunKeys", (*suite).runKeys},
		{"RunLists", (*suite).runLists},
		{"RunMoves", (*suite).runMoves},
		{"StepMoves", (*suite).stepMoves},
		{"StepColumns", (*suite).stepColumns},
		{"StepPass", (*suite).stepPass},
		{"StepOfAction", (*suite).stepOfAction},
		{"RunLock", (*suite).runLock},
		{"RunItems", (*suite).runItems},
		{"RunContributors", (*suite).runContributors},
		{"RunLineage", (*suite).runLineage},
		{"BudgetClaims", (*suite).budgetClaims},
		{"StepClaims", (*suite).stepClaims},
		{"OpenLeases", (*suite).openLeases},
		{"StepShares", (*suite).stepShares},
		{"StepClaimRace", (*suite).stepClaimRace},
		{"DueLanes", (*suite).dueLanes},
		{"ReadyTools", (*suite).readyTools},
		{"ActionWakes", (*suite).actionWakes},
		{"WakesGo", (*suite).wakesGo},
		{"ChildWakes", (*suite).childWakes},
		{"WakeRace", (*suite).wakeRace},
		{"WakeOrders", (*suite).wakeOrders},
		{"DueSteps", (*suite).dueSteps},
		{"ExpiredSteps", (*suite).expiredSteps},
		{"OverdueRuns", (*suite).overdueRuns},
		{"WorkTies", (*suite).workTies},
		{"NextRunWork", (*suite).nextRunWork},
		{"QueuedRuns", (*suite).queuedRuns},
		{"Schedules", (*suite).schedules},
		{"RunCounts", (*suite).runCounts},
		{"Attempts", (*suite).attempts},
		{"Usage", (*suite).usage},
		{"Signals", (*suite).signals},
		{"Reflexions", (*suite).reflexions},
		{"Bundles", (*suite).bundles},
		{"RunEntries", (*suite).runEntries},
		{"RunWalls", (*suite).runWalls},
		{"ArchiveRoundTrip", (*suite).archiveRoundTrip},
		{"ArchivePins", (*suite).archivePins},
		{"ArchiveFamilies", (*suite).archiveFamilies},
		{"ArchiveStays", (*suite).archiveStays},
		{"ArchiveUndone", (*suite).archiveUndone},
		{"ArchiveLists", (*suite).archiveLists},
		{"ArchiveRace", (*suite).archiveRace},
		{"ArchiveWalls", (*suite).archiveWalls},
		{"ConversationWalls", (*suite).conversationWalls},
		{"OtherTenantsRows", (*suite).otherTenantsRows},
		{"TenantWalls", (*suite).tenantWalls},
		{"SessionWalls", (*suite).sessionWalls},
		{"DecideRace", (*suite).decideRace},
		{"FailureIsolated", (*suite).failureIsolated},
		{"PanicIsolated", (*suite).panicIsolated},
		{"GoexitIsolated", (*suite).goexitIsolated},
		{"Snapshot", (*suite).snapshot},
		{"CanceledCaller", (*suite).canceledCaller},
		{"Clock", (*suite).clock},
		{"ClockJumps", (*suite).clockJumps},
		{"Closed", (*suite).closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(newSuite(t, open(t)))
		})
	}
}

// suite is one test on one store.
type suite struct {
	*testing.T
	store gatehouse.Store
	// tenant is the tenant of the suite's transactions.
	tenant string
	last   *atomic.Int64
}

const tenant = gatehouse.DefaultTenant

// next returns ids that sort in the order of the calls, as real ones do.
func (s *suite) next() string { return fmt.Sprintf("%08d", s.last.Add(1)) }

func newSuite(t *testing.T, store gatehouse.Store) *suite {
	return &suite{T: t, store: store, tenant: tenant, last: new(atomic.Int64)}
}

// as returns the suite for another tenant.
func (s *suite) as(tenant string) *suite {
	o := *s
	o.tenant = tenant
	return &o
}

func (s *suite) updateQueues(fn func(q gatehouse.Queues) error) {
	s.Helper()
	if err := s.store.UpdateQueues(context.Background(), fn); err != nil {
		s.Fatalf("UpdateQueues: %v", err)
	}
}

func (s *suite) viewQueues(fn func(q gatehouse.ReadQueues) error) {
	s.Helper()
	if err := s.store.ViewQueues(context.Background(), fn); err != nil {
		s.Fatalf("ViewQueues: %v", err)
	}
}

func (s *suite) update(fn func(tx gatehouse.Tx) error) {
	s.Helper()
	if err := s.store.Update(context.Background(), s.tenant, fn); err != nil {
		s.Fatalf("Update: %v", err)
	}
}

func (s *suite) view(fn func(tx gatehouse.ReadTx) error) {
	s.Helper()
	if err := s.store.View(context.Background(), s.tenant, fn); err != nil {
		s.Fatalf("View: %v", err)
	}
}

// updateReturns runs a closure in an Update, which must return the error want; nil means that it must succeed.
func (s *suite) updateReturns(want error, what string, fn func(tx gatehouse.Tx) error) {
	s.Helper()
	if err := s.store.Update(context.Background(), s.tenant, fn); !errors.Is(err, want) {
		s.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// same compares values: times by instant, nil slices equal to empty ones.
func (s *suite) same(what string, got, want any) {
	s.Helper()
	if reflect.DeepEqual(want, got) { // which takes a tenth of the time of a diff
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		s.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func (s *suite) find(id string) *gatehouse.Action {
	s.Helper()
	var a *gatehouse.Action
	s.view(func(tx gatehouse.ReadTx) (err error) { a, err = tx.FindAction(id); return err })
	return a
}

func (s *suite) now() (now time.Time) {
	s.Helper()
	s.update(func(tx gatehouse.Tx) error { now = tx.Now(); return nil })
	return now
}
