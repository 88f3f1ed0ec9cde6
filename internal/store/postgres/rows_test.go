package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestPageIsAsItsActionsAre compares the rows of pages with the actions found by id: pending and
// approved ones, with votes whose texts must come through unchanged.
func TestPageIsAsItsActionsAre(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	var ids []string
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		ids = nil
		for i := range 6 {
			a := pendingAction(fmt.Sprintf("%02d", i), tx.Now())
			a.Approval.Required = 3
			a.Approval.Confirm = &gatehouse.Confirm{Prompt: "type it", Value: "12.50"}
			a.Context = gatehouse.JSON(`{"n":` + fmt.Sprint(i) + `}`)
			ids = append(ids, a.ID)
			if err := tx.InsertAction(a); err != nil {
				return err
			}
			// The last voter comes first by name.
			for j, notes := range []string{"", "\"quoted\" \\ and <b>\n\tÄpfel \u2028 \x7f", "ok"}[:i%4] {
				v := gatehouse.Vote{
					Person: fmt.Sprint("prn_", 9-j), PrincipalID: fmt.Sprint("prn_", 9-j), Name: "ana", Decision: gatehouse.Approve,
					Notes: notes, Via: gatehouse.ViaAPI, Digest: a.Digest, At: tx.Now().Add(time.Duration(j) * time.Microsecond),
				}
				if err := tx.PutVote(a.Approval.ID, v); err != nil {
					return err
				}
			}
		}
		return decide(tx, strings.TrimPrefix(ids[5], "act_"))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), "default", func(tx gatehouse.ReadTx) error {
		var want []*gatehouse.Action
		for _, id := range ids {
			a, err := tx.FindAction(id)
			if err != nil {
				return err
			}
			want = append(want, a)
		}
		urgent, err := tx.ListActions(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency})
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want[:5], urgent.Items); diff != "" {
			t.Errorf("by urgency (-found by id, +in the page):\n%s", diff)
		}
		newest, err := tx.ListActions(gatehouse.ActionFilter{})
		if err != nil {
			return err
		}
		slices.Reverse(want)
		if diff := cmp.Diff(want, newest.Items); diff != "" {
			t.Errorf("the newest (-found by id, +in the page):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPageIsNotReadPastItsSize: of large proposals the server sends only what fits on the page and the next
// one, in at most two round trips. A proposal larger than a page comes alone.
func TestPageIsNotReadPastItsSize(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	const large, all = 900 << 10, 12
	var ids []string
	err := s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		ids = nil
		for i := range all {
			a, size := pendingAction(fmt.Sprintf("%02d", i), tx.Now()), large
			if i == 0 || i == all-1 {
				size = shared.MaxPageBytes + 1
			}
			a.Metadata = gatehouse.JSON(`{"text":"` + strings.Repeat("x", size) + `"}`)
			ids = append(ids, a.ID)
			if err := tx.InsertAction(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		r := tx.(*readTx)
		w := &pageScan{limit: 51}
		w.add("a.tenant = ?", "default")
		r.newest(w, "", ids[all-1])
		rows, _, err := r.pageRows(w)
		if n, more := w.cut(rows); err != nil || n != 4 || !more || len(rows) != 5 {
			t.Errorf("%d rows came for a page of %d, more: %v: %v", len(rows), n, more, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []gatehouse.Sort{gatehouse.SortUrgency, gatehouse.SortNewest} {
		var got []string
		var pages []int
		for f := (gatehouse.ActionFilter{Sort: order}); len(pages) == 0 || f.Cursor != ""; {
			n := counter.count(t, "page", func() {
				err := s.Read(t.Context(), "default", func(tx gatehouse.ReadTx) error {
					page, err := tx.ListActions(f)
					for _, a := range page.Items {
						got = append(got, a.ID)
					}
					pages, f.Cursor = append(pages, len(page.Items)), page.NextCursor
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			})
			if n > 2 {
				t.Errorf("a page of large ones took %d round trips", n)
			}
		}
		if order == gatehouse.SortNewest {
			slices.Reverse(got)
		}
		if !slices.Equal(got, ids) || !slices.Equal(pages, []int{1, 4, 4, 2, 1}) {
			t.Errorf("%s: pages of %v, %v", order, pages, got)
		}
	}
}

// TestKeptRow: the texts of a row are correct whatever earlier rows contained, and a text equal
// to the previous row's is not copied. The test counts allocations, so it does not run in
// parallel.
func TestKeptRow(t *testing.T) {
	rows := [][]string{{"a", "", "long", "x"}, {"a", "b", "", "xy"}, {"a", "b", "", "xy"}, {"", "", "long", "x"},
		{"c", "long", "x", ""}}
	read := func(r *row) (texts []string) {
		for range r.raw {
			texts = append(texts, r.Text())
		}
		return texts
	}
	var kept []string
	var got [][]string
	for _, texts := range rows {
		r := &row{raw: make([][]byte, len(texts))}
		for i, s := range texts {
			if s != "" {
				r.raw[i] = []byte(s)
			}
		}
		kept = r.keep(kept)
		got = append(got, read(r))
		for _, b := range r.raw {
			clear(b) // the driver reads the next row into it
		}
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Error(diff)
	}
	r := &row{raw: [][]byte{[]byte("default"), []byte("price_change")}}
	kept = r.keep(nil)
	if n := testing.AllocsPerRun(10, func() { kept = r.keep(kept) }); n != 0 {
		t.Errorf("a row that is as the one before it: %v allocations", n)
	}
}
