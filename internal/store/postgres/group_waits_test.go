package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestGroupMemberGoneFirst: who gives up before the group has its answers waits
// for them no longer, however long they are in coming.
func TestGroupMemberGoneFirst(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2}) // one of them for Updates
	taken, free := make(chan struct{}), make(chan struct{})
	var lone sync.WaitGroup
	lone.Go(func() {
		err := s.Update(context.Background(), func(tx gatehouse.Tx) error {
			_, err := tx.FindTenant(gatehouse.DefaultTenant)
			close(taken)
			<-free
			return err
		})
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			t.Error(err)
		}
	})
	<-taken
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := make(chan error, 1)
	ended := gathered(t, s, leave(context.Background(), s, "a", nil), func() error {
		err := leave(ctx, s, "gone", nil)()
		gone <- err
		return err
	})
	cancel()
	select {
	case err := <-gone:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("who has given up waits for the group's answers")
	}
	close(free)
	if errs := ended(); errs[0] != nil {
		t.Error(errs[0])
	}
	lone.Wait()
	wantLeft(t, s, "a")
}

// TestGroupWaitsNotLong: what a member writes may have to wait for somebody else's
// transaction, such as one of a replica that has been cut off. The others do not
// wait with it until that ends.
func TestGroupWaitsNotLong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	const tenant = gatehouse.DefaultTenant
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	cut, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	answer := &gatehouse.IdempotencyRecord{Tenant: tenant, PrincipalID: "prn_1", Route: "POST /v1/actions", Key: "same", Body: []byte("{}")}
	_, err = cut.Exec(ctx, `INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body) VALUES ($1, $2, $3, $4, $5, 0, '')`,
		tenant, answer.PrincipalID, answer.Route, answer.Key, answer.BodyHash[:])
	if err != nil {
		t.Fatal(err)
	}
	other := make(chan error, 1)
	ended := gathered(t, s, func() error {
		return s.Update(ctx, func(tx gatehouse.Tx) error {
			tx.Foresee(gatehouse.Outlook{Tenant: tenant, PrincipalID: answer.PrincipalID, Answer: &gatehouse.IdempotencyRequest{Route: answer.Route, Key: answer.Key}})
			if _, err := tx.FindIdempotency(tenant, answer.PrincipalID, answer.Route, answer.Key); !errors.Is(err, gatehouse.ErrNotFound) {
				return fmt.Errorf("found: %w", err)
			}
			answer.CreatedAt = tx.Now()
			return tx.InsertIdempotency(answer)
		})
	}, func() error {
		err := leave(ctx, s, "other", nil)()
		other <- err
		return err
	})
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(7 * time.Second): // a lone one waits for ten
		t.Error("the group waits for what one of its members does")
	}
	if err := cut.Rollback(ctx); err != nil {
		t.Error(err)
	}
	for _, err := range ended() {
		if err != nil {
			t.Error(err)
		}
	}
}
