package usecase

import "github.com/gatehouse-dev/gatehouse"

// noted is a transaction that notes whether it writes to the log, whose readers are
// notified after the commit.
type noted struct {
	gatehouse.Tx
	wrote *bool
}

func (t noted) AppendLeaf(l *gatehouse.Leaf) error {
	*t.wrote = true
	return t.Tx.AppendLeaf(l)
}

func (t noted) SettleDecision(s *gatehouse.Settlement) error {
	*t.wrote = true
	return t.Tx.SettleDecision(s)
}

// notedQueues is noted for rows of several tenants.
type notedQueues struct {
	gatehouse.Queues
	wrote *bool
}

func (q notedQueues) In(tenant string) gatehouse.Tx { return noted{q.Queues.In(tenant), q.wrote} }
