package gate_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

func siblings(hashes []gatehouse.Hash) []tlog.Hash {
	out := make([]tlog.Hash, len(hashes))
	for i, h := range hashes {
		out[i] = tlog.Hash(h)
	}
	return out
}

// TestCheckpoint signs the head of a growing log, and proves from the outside that the log has
// an entry and begins with the log of the earlier checkpoint.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rules: []")
	_, err := w.gate.Checkpoint(w.admin)
	w.wantCode("without a master key", gatehouse.CodeOf(err), gatehouse.CodeUnsupported)
	if keys, err := w.gate.LogKeys(w.admin); err != nil || len(keys.Keys) != 0 {
		t.Errorf("without a master key: %v, %v", keys, err)
	}

	first, second := ring.NewMasterKey(), ring.NewMasterKey()
	w.under(newMaster(t, first))
	w.number()
	trusted, err := w.gate.LogKeys(w.admin)
	must(t, err)
	if len(trusted.Keys) != 1 || !strings.HasPrefix(trusted.Keys[0], "localhost/default+") {
		t.Fatalf("keys: %v", trusted.Keys)
	}
	note, err := w.gate.Checkpoint(w.admin)
	must(t, err)
	before, err := audit.VerifyCheckpoint(note, trusted.Keys...)
	must(t, err)

	w.propose(w.agent(), nil)
	w.number()
	grown, err := w.gate.ProveGrowth(w.admin, before.Size, 0)
	must(t, err)
	head, err := w.gate.Head(w.admin)
	must(t, err)
	if grown.To != head.Size || grown.To <= before.Size || grown.ToRoot != head.Root || grown.FromRoot != before.Root {
		t.Errorf("grown: %+v", grown)
	}
	must(t, tlog.CheckTree(siblings(grown.Hashes), head.Size, tlog.Hash(head.Root), before.Size, tlog.Hash(before.Root)))
	entry, err := w.gate.ProveEntry(w.admin, 0, before.Size)
	must(t, err)
	entries, err := w.gate.ListEntries(w.admin, 0, 1)
	must(t, err)
	if entry.Root != before.Root || entry.LeafHash != entries[0].LeafHash {
		t.Errorf("entry: %+v", entry)
	}
	must(t, tlog.CheckRecord(siblings(entry.Hashes), before.Size, tlog.Hash(before.Root), 0, tlog.Hash(entry.LeafHash)))

	// A new master key signs; the key of the old one is still shown, and still verifies.
	w.under(newMaster(t, second+"\n"+first))
	keys, err := w.gate.LogKeys(w.admin)
	must(t, err)
	if len(keys.Keys) != 2 || keys.Keys[1] != trusted.Keys[0] {
		t.Errorf("keys: %v", keys.Keys)
	}
	after, err := w.gate.Checkpoint(w.admin)
	must(t, err)
	if _, err := audit.VerifyCheckpoint(after, trusted.Keys...); err == nil {
		t.Error("the old key verifies what the new one signed")
	}
	if got, err := audit.VerifyCheckpoint(after, keys.Keys...); err != nil || got != *head {
		t.Errorf("after: %+v, %v", got, err)
	}
	again, err := w.gate.Checkpoint(w.admin)
	must(t, err)
	if !bytes.Equal(again, after) {
		t.Error("the same head has two checkpoints")
	}
}
