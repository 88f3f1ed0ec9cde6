package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestKeptButForTheCopy deletes, directly in the database, rows that are never deleted: the
// tables keep every row whose action is not in the archive, and every row of the archive.
func TestKeptButForTheCopy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := database(t)
	s := openTest(t, Config{URL: url})
	a := rejectedAction(t, s)
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	refused := func(sql string) {
		t.Helper()
		_, err := c.Exec(ctx, sql)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "GH001" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := c.Exec(ctx, `SELECT set_config($1, $2, false)`, TenantSetting, AllTenants); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"action", "proposal", "approval"} {
		refused(`DELETE FROM ` + table)
		refused(`TRUNCATE ` + table + ` CASCADE`)
	}
	if err := archive(ctx, s, a); err != nil {
		t.Fatal(err)
	}
	refused(`DELETE FROM action_archive`)
	refused(`TRUNCATE action_archive`)
	refused(`UPDATE action_archive SET status = 'denied'`)
}

// rejectedAction stores an action that was rejected.
func rejectedAction(t *testing.T, s *Store) (a *gatehouse.Action) {
	t.Helper()
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		a = pendingAction("1", tx.Now())
		return tx.InsertAction(a)
	})
	if err == nil {
		err = s.Update(t.Context(), a.Tenant, func(tx gatehouse.Tx) error {
			return errors.Join(
				tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalRejected),
				tx.MoveAction(
					gatehouse.ActionMove{ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusRejected, Decided: true,
						Finished: true}),
			)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// archive moves an action into the archive.
func archive(ctx context.Context, s *Store, a *gatehouse.Action) error {
	before := time.Now().Add(time.Hour)
	return s.Update(ctx, a.Tenant, func(tx gatehouse.Tx) error {
		records, err := tx.LockEnded([]gatehouse.ActionFamily{{Tenant: a.Tenant, IDs: []string{a.ID}}}, before)
		if err != nil || len(records) != 1 {
			return errors.Join(err, errors.New("it is not locked"))
		}
		archived, err := gatehouse.NewArchived(records[0], "arc_1", before)
		if err != nil {
			return err
		}
		return tx.PutArchived([]*gatehouse.Archived{archived})
	})
}

// TestArchivingWaitsForIndexing: an action is not archived while a block with its words is being stored,
// because the words would stay in the index.
func TestArchivingWaitsForIndexing(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	a := rejectedAction(t, s)
	indexing, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = indexing.Rollback(context.Background()) }()
	if _, err := indexing.Exec(t.Context(), lockSearchMark); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- archive(context.Background(), s, a) }()
	for lockWaits(t, s) == 0 {
		select {
		case err := <-done:
			t.Fatalf("archived meanwhile: %v", err)
		default:
		}
	}
	if err := indexing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestArchivePlans checks the plans of the archive's statements for empty tables: each part
// reaches its rows by an index.
func TestArchivePlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	plan := planner(t, s.config.URL)
	wrong := regexp.MustCompile(`Seq Scan|Bitmap|by \(tenant = \$1\)$`)
	for _, sql := range append([]string{
		shared.ArchivedByID, findArchivedByKey.text, keyIsFree, findCandidate, scanCandidates, findRelated,
		lockEndedActions, lockEndedApprovals, countApprovals,
	}, moveOut[:]...) {
		lines := plan(sql)
		for _, line := range lines {
			if wrong.MatchString(line) {
				t.Errorf("%s\n%s", sql, strings.Join(lines, "\n"))
			}
		}
	}
}

// TestArchiversPassEachOther starts an archiver while another archiver, and a transaction that has
// locked an action, are at work: it waits for neither and skips their actions.
func TestArchiversPassEachOther(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := openTest(t, Config{})
	var families []gatehouse.ActionFamily
	for _, id := range []string{"1", "2", "3"} {
		err := s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			a := pendingAction(id, tx.Now())
			a.Status, a.Approval.Status = gatehouse.StatusPending, gatehouse.ApprovalRequested
			families = append(families, gatehouse.ActionFamily{Tenant: a.Tenant, IDs: []string{a.ID}})
			return tx.InsertAction(a)
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			f := families[len(families)-1]
			return tx.MoveAction(gatehouse.ActionMove{
				ID: f.IDs[0], From: gatehouse.StatusPending, To: gatehouse.StatusExpired, Decided: true, Finished: true,
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(time.Hour)
	lock := func(tx gatehouse.Tx, families ...gatehouse.ActionFamily) (ids []string, err error) {
		records, err := tx.LockEnded(families, before)
		for _, r := range records {
			ids = append(ids, r.Action.ID)
		}
		return ids, err
	}
	err := s.Update(ctx, families[1].Tenant, func(one gatehouse.Tx) error {
		first, err := lock(one, families[0])
		if err != nil || len(first) != 1 {
			return fmt.Errorf("the first archiver has %v, %w", first, err)
		}
		return s.Update(ctx, families[1].Tenant, func(two gatehouse.Tx) error {
			if _, err := two.LockAction(families[1].IDs[0]); err != nil {
				return err
			}
			return s.Update(ctx, gatehouse.DefaultTenant, func(three gatehouse.Tx) error {
				got, err := lock(three, families...)
				if len(got) != 1 || got[0] != families[2].IDs[0] {
					t.Errorf("the last archiver has %v", got)
				}
				return err
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
