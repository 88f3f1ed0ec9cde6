package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// The archiver's pace, so that decisions are not delayed: a scan plans about
// archivePlan actions, and a transaction moves about archiveBatch of them. The
// archiver then rests archiveRest times as long as it worked, up to
// longestArchiveRest.
const (
	archivePlan        = 128
	archiveBatch       = 16
	archiveRest        = 9 // multiple of the time worked
	longestArchiveRest = 2 * time.Second
)

// ArchiveMetrics receives the archiver's progress.
type ArchiveMetrics interface {
	// Archived counts archived actions.
	Archived(n int)
	// Behind reports how long ago the oldest of the actions that the pass has planned
	// so far reached the end of the retention; 0 when the pass has planned none.
	Behind(d time.Duration)
}

// Archiver moves actions that ended long ago into the archive. Any number of
// archivers may work on one store.
type Archiver struct {
	gate      *Gate
	retention time.Duration
	metrics   ArchiveMetrics
	// planned holds the families to archive next. The field before is the time by which all of
	// them had ended, after is the cursor of the next scan.
	planned []gatehouse.ActionFamily
	before  time.Time
	after   int64
	// behind is the value of ArchiveMetrics.Behind in this pass.
	behind time.Duration
}

// NewArchiver returns an archiver of actions that ended longer ago than the
// retention, which is at least [gatehouse.MinRetention]. metrics may be nil.
func (g *Gate) NewArchiver(retention time.Duration, metrics ArchiveMetrics) (*Archiver, error) {
	if retention < gatehouse.MinRetention {
		return nil, fmt.Errorf("the retention is %s; the least is %s", gatehouse.Duration(retention),
			gatehouse.Duration(gatehouse.MinRetention))
	}
	return &Archiver{gate: g, retention: retention, metrics: metrics}, nil
}

// Step archives one batch, and rests if more is true. more is false at the end of a
// pass over the store; the next call begins another pass.
func (a *Archiver) Step(ctx context.Context) (n int, more bool, err error) {
	began := time.Now()
	n, more, err = a.Batch(ctx)
	if more && err == nil {
		select {
		case <-ctx.Done():
		case <-time.After(min(archiveRest*time.Since(began), longestArchiveRest)):
		}
	}
	return n, more, err
}

// Batch is Step without the pause. A family whose archiving fails is skipped until
// the next pass.
func (a *Archiver) Batch(ctx context.Context) (n int, more bool, err error) {
	if len(a.planned) == 0 {
		if err := a.plan(ctx); err != nil {
			return 0, true, err
		}
	}
	count, size := 0, 0
	for count < len(a.planned) && size < archiveBatch {
		size += len(a.planned[count].IDs)
		count++
	}
	batch := a.planned[:count]
	n, err = a.store(ctx, batch)
	if err != nil && ctx.Err() == nil && len(batch) > 1 {
		n, err = a.oneByOne(ctx, batch)
	}
	if ctx.Err() != nil {
		return n, true, errors.Join(err, ctx.Err())
	}
	a.planned = a.planned[count:]
	if a.metrics != nil {
		a.metrics.Archived(n)
	}
	if n > 0 {
		a.gate.Hints.Notify(usecase.TopicAudit)
	}
	return n, len(a.planned) > 0 || a.after != 0, err
}

// plan scans for the families that the next batches archive.
func (a *Archiver) plan(ctx context.Context) error {
	var plan *gatehouse.ArchivePlan
	var before time.Time
	err := a.gate.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		before = q.Now().Add(-a.retention)
		plan, err = q.PlanArchive(a.after, before, archivePlan)
		return err
	})
	if err != nil {
		return err
	}
	if a.after == 0 { // another pass begins
		a.behind = 0
	}
	a.planned, a.before, a.after = plan.Families, before, plan.Next
	if !plan.Oldest.IsZero() {
		a.behind = max(a.behind, before.Sub(plan.Oldest))
	}
	if a.metrics != nil {
		a.metrics.Behind(a.behind)
	}
	return nil
}

func (a *Archiver) oneByOne(ctx context.Context, families []gatehouse.ActionFamily) (n int, err error) {
	var errs []error
	for _, f := range families {
		one, err := a.store(ctx, []gatehouse.ActionFamily{f})
		n += one
		if err != nil {
			errs = append(errs, fmt.Errorf("archive %s: %w", f.IDs[0], err))
		}
	}
	return n, errors.Join(errs...)
}

// store archives families in one transaction, with a leaf for each tenant.
func (a *Archiver) store(ctx context.Context, families []gatehouse.ActionFamily) (n int, err error) {
	if len(families) == 0 {
		return 0, nil
	}
	byTenant := map[string][]gatehouse.ActionFamily{}
	var tenants []string
	for _, f := range families {
		if byTenant[f.Tenant] == nil {
			tenants = append(tenants, f.Tenant)
		}
		byTenant[f.Tenant] = append(byTenant[f.Tenant], f)
	}
	slices.Sort(tenants)
	err = a.gate.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		n = 0
		for _, tenant := range tenants {
			one, err := ArchiveFamilies(q.In(tenant), byTenant[tenant], a.before)
			if err != nil {
				return err
			}
			n += one
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	failpoint.Here("archive/committed")
	return n, nil
}

// ArchiveFamilies archives the families of one tenant that ended before a time and
// that nobody has locked, with one leaf, and returns the number of actions.
func ArchiveFamilies(tx gatehouse.Tx, families []gatehouse.ActionFamily, before time.Time) (int, error) {
	records, err := tx.LockEnded(families, before)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	failpoint.Here("archive/locked")
	batch, now := NewID("arc"), tx.Now()
	list := make([]*gatehouse.Archived, len(records))
	named := make([]gatehouse.JSON, len(records))
	for i, r := range records {
		if list[i], err = gatehouse.NewArchived(r, batch, now); err != nil {
			return 0, err
		}
		named[i] = gatehouse.ObjectJSON(
			gatehouse.Member{Name: "id", Value: gatehouse.StringJSON(list[i].ID)},
			gatehouse.Member{Name: "sha256", Value: gatehouse.MustJSON(list[i].SHA256)},
		)
	}
	if err := tx.PutArchived(list); err != nil {
		return 0, err
	}
	failpoint.Here("archive/moved")
	err = tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: list[0].Tenant, Type: gatehouse.EventArchived, Subject: batch, Actor: "system",
		Data: gatehouse.ObjectJSON(
			gatehouse.Member{Name: "actions", Value: gatehouse.ArrayJSON(named...)},
			gatehouse.Member{Name: "ended_before", Value: usecase.Encode(before)},
		),
	})
	failpoint.Here("archive/recorded")
	return len(list), err
}

// ReceiptsOf lists an action's receipts, oldest first, from the live tables or the
// archive.
func ReceiptsOf(tx gatehouse.ReadTx, a *gatehouse.Action) ([]*gatehouse.Receipt, error) {
	if a.ArchivedAt == nil {
		return tx.ListReceipts(a.ID)
	}
	archived, err := tx.FindArchived(a.ID)
	if err != nil {
		return nil, err
	}
	record, err := archived.Record()
	if err != nil {
		return nil, err
	}
	return record.Receipts, nil
}
