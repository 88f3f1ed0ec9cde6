package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// checkPage is how many entries are read in one snapshot. A long log must not
	// hold one snapshot open, which would keep the store from cleaning up.
	checkPage = 1000
	// CheckBeside reads and checks besidePage entries at a time. Then it rests for restFactor
	// times the duration of that, but at least for restLeast.
	besidePage, restFactor = 250, 30
	restLeast              = 10 * time.Millisecond
	// maxBacklog bounds the unnumbered leaves that are counted.
	maxBacklog = 10_000
)

// Check verifies a tenant's log within its store: every entry in order, the stored
// leaf hashes against the bytes, every stored tree hash against the entries, and
// the head against both. Entries that are numbered while it runs are left for the
// next run. held are heads that were kept elsewhere; see [VerifyEntries]. An
// attacker who can rewrite both entries and tree hashes is detected by held heads
// only.
//
// The error says that the store could not be read; faults of the log are in the
// report.
func Check(ctx context.Context, store gatehouse.Store, tenant string, held ...gatehouse.LogHead) (Report, error) {
	c := &checker{store: store, tenant: tenant, size: checkPage}
	return c.run(ctx, held, func(time.Duration) error { return nil })
}

// CheckBeside is Check for a busy process, and a log of any length: it reads little
// at a time, and rests for nearly all of the time.
func CheckBeside(ctx context.Context, store gatehouse.Store, tenant string) (Report, error) {
	c := &checker{store: store, tenant: tenant, size: besidePage}
	return c.run(ctx, nil, func(took time.Duration) error {
		select {
		case <-time.After(max(restFactor*took, restLeast)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// checker is one run of Check.
type checker struct {
	store  gatehouse.Store
	tenant string
	size   int // of a page, in entries
	*verifier
	// beyond is true when entries or tree hashes are stored beyond the head.
	beyond bool
}

// run checks page after page. It calls rest between two pages, with the time that
// the first of them took.
func (c *checker) run(ctx context.Context, held []gatehouse.LogHead, rest func(time.Duration) error) (Report, error) {
	if err := c.start(ctx, held); err != nil {
		return Report{}, err
	}
	for from := int64(0); ; {
		began := time.Now()
		var entries []*gatehouse.Entry
		var stored []gatehouse.Hash
		err := c.store.View(ctx, c.tenant, func(tx gatehouse.ReadTx) error {
			var err error
			if entries, err = tx.ListEntries(from, c.size); err != nil {
				return fmt.Errorf("audit: read entries of tenant %s from %d on: %w", c.tenant, from, err)
			}
			stored, err = c.storedFor(tx, from, entries)
			return err
		})
		if err != nil {
			return Report{}, err
		}
		var more bool
		if from, more = c.page(from, entries, stored); !more {
			break
		}
		if err := rest(time.Since(began)); err != nil {
			return Report{}, err
		}
	}
	c.finish()
	return c.report, nil
}

// start reads the head, counts the waiting leaves, and looks for entries and hashes
// beyond the head.
func (c *checker) start(ctx context.Context, held []gatehouse.LogHead) error {
	var head gatehouse.LogHead
	var waiting int
	var capped bool
	err := c.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		tx := q.In(c.tenant)
		waiting, c.beyond = 0, false
		size, err := tx.LogSize()
		if err != nil {
			return err
		}
		head, err = headAt(tx, c.tenant, size)
		if isMissing(err) {
			// Whichever hash is missing, the walk will find it.
			head = gatehouse.LogHead{Tenant: c.tenant, Size: size}
		} else if err != nil {
			return err
		}
		extra, err := tx.ListEntries(size, 1)
		if err != nil {
			return err
		}
		// A hash after the last one belongs to an entry that was removed.
		next, err := storedFrom(tx, c.tenant, tlog.StoredHashCount(size), 1)
		if err != nil {
			return err
		}
		c.beyond = len(extra) > 0 || len(next) > 0
		leaves, err := q.UnnumberedLeaves(maxBacklog)
		if err != nil {
			return err
		}
		for _, l := range leaves {
			if l.Tenant == c.tenant {
				waiting++
			}
		}
		capped = len(leaves) == maxBacklog
		return nil
	})
	if err != nil {
		return fmt.Errorf("audit: read the head of tenant %s: %w", c.tenant, err)
	}

	c.verifier = newVerifier(head, held)
	c.report.Unnumbered, c.report.UnnumberedCapped = waiting, capped
	return nil
}

// storedFor reads the tree hashes that belong to a page of entries which begins at
// from, up to the first missing one.
func (c *checker) storedFor(tx gatehouse.LogReader, from int64, entries []*gatehouse.Entry) ([]gatehouse.Hash, error) {
	if c.report.Fault != nil {
		return nil, nil
	}
	lo, hi := tlog.StoredHashCount(from), tlog.StoredHashCount(from+int64(len(entries)))
	return storedFrom(tx, c.tenant, lo, hi-lo)
}

// storedFrom reads n tree hashes starting at a storage index, up to the first
// missing one.
func storedFrom(tx gatehouse.LogReader, tenant string, index, n int64) ([]gatehouse.Hash, error) {
	indexes := make([]int64, n)
	for i := range indexes {
		indexes[i] = index + int64(i)
	}
	hashes, err := readHashes(tx, tenant, indexes)
	if !isMissing(err) {
		return hashes, err
	}
	hashes = nil
	for _, i := range indexes {
		h, err := readHashes(tx, tenant, []int64{i})
		if isMissing(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h...)
	}
	return hashes, nil
}

func isMissing(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, gatehouse.ErrNotFound)
}

// page verifies a page, and returns where the next one begins, if any.
func (c *checker) page(from int64, entries []*gatehouse.Entry, stored []gatehouse.Hash) (int64, bool) {
	begin := from
	for _, e := range entries {
		if e.Index >= c.head.Size && !c.beyond {
			return from, false // numbered after start
		}
		c.add(e)
		if c.report.Fault == nil {
			stored = c.compare(e.Index, stored)
		}
		from = max(from, e.Index+1)
	}
	// Without progress there is no next page: a forged index of math.MaxInt64 has no successor.
	return from, len(entries) == c.size && from > begin
}

// compare compares the stored hashes with those that an entry completed, and
// returns the remaining stored ones.
func (c *checker) compare(index int64, stored []gatehouse.Hash) []gatehouse.Hash {
	if len(stored) < len(c.stored) {
		c.report.fault(FaultTreeHash, index, "the tree hashes that entry %d completes are not all stored", index)
		return nil
	}
	for level, h := range c.stored {
		switch {
		case stored[level] == h:
		case level == 0:
			c.report.fault(FaultTreeHash, index, "entry %d was changed with its leaf hash: it gives %s, but the tree holds %s",
				index, text(h), text(stored[level]))
		default:
			c.report.fault(FaultTreeHash, index, "the stored hash of the %d entries up to entry %d is %s, but they give %s",
				int64(1)<<level, index, text(stored[level]), text(h))
		}
	}
	return stored[len(c.stored):]
}

func (c *checker) finish() {
	if c.report.Fault == nil && c.beyond {
		c.report.fault(FaultBeyond, c.head.Size,
			"tree hashes are stored for more than the %d entries of the log: its end was cut off", c.head.Size)
	}
	c.verifier.finish()
}
