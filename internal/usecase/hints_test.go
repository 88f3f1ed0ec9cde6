package usecase_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// oneStore runs each transaction on the same Tx.
type oneStore struct{ gatehouse.Store }

func (oneStore) Update(_ context.Context, _ string, fn func(gatehouse.Tx) error) error {
	return fn(oneTx{})
}

func (oneStore) UpdateQueues(_ context.Context, fn func(gatehouse.Queues) error) error {
	return fn(oneQueues{})
}

type oneQueues struct{ gatehouse.Queues }

func (oneQueues) In(string) gatehouse.Tx { return oneTx{} }

type oneTx struct{ gatehouse.Tx }

func (oneTx) AppendLeaf(*gatehouse.Leaf) error           { return nil }
func (oneTx) SettleDecision(*gatehouse.Settlement) error { return nil }

type topics struct {
	usecase.Hints
	sent []string
}

func (t *topics) Notify(topic string) { t.sent = append(t.sent, topic) }

// TestReadersOfTheLogAreNotified: once, after a transaction that has written to the log.
func TestReadersOfTheLogAreNotified(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		fn   func(gatehouse.Tx) error
		want []string
	}{
		"a leaf":     {func(tx gatehouse.Tx) error { return tx.AppendLeaf(nil) }, []string{usecase.TopicAudit}},
		"a decision": {func(tx gatehouse.Tx) error { return tx.SettleDecision(nil) }, []string{usecase.TopicAudit}},
		"no leaf":    {func(gatehouse.Tx) error { return nil }, nil},
		"an error":   {func(tx gatehouse.Tx) error { return errors.Join(tx.AppendLeaf(nil), failed) }, nil},
	} {
		for _, across := range []bool{false, true} {
			hints := new(topics)
			r := &usecase.Runner{Store: oneStore{}, Hints: hints}
			var err error
			if across {
				err = r.UpdateQueues(t.Context(), func(q gatehouse.Queues) error { return c.fn(q.In("a")) })
			} else {
				err = r.Update(t.Context(), "a", nil, c.fn)
			}
			if name != "an error" && err != nil || !slices.Equal(hints.sent, c.want) {
				t.Errorf("%s, across %t: notified %v, want %v (%v)", name, across, hints.sent, c.want, err)
			}
		}
	}
}
