package lease

import (
	"fmt"
	"testing"
)

func path(tenant, workspace string) []Part {
	weights := map[string]int{"heavy": 3, "blue": 2}
	return []Part{{tenant, weights[tenant]}, {workspace, weights[workspace]}}
}

// TestDivide: leases go by weight on each level, at all times, one by one or many at
// a time.
func TestDivide(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 4, 16} {
		var f Fair
		got := make([]int, 5)
		for total := 0; total < 500; total += n {
			queues := []Queue{
				{Path: path("heavy", "blue"), Limit: 1000}, {Path: path("heavy", "red"), Limit: 1000},
				{Path: path("light", "red"), Limit: 1000}, {Path: path("pale", "red"), Limit: 1000},
				{Path: path("full", "red")},
			}
			f.Divide(n, queues)
			f.Charge(queues)
			for i, q := range queues {
				got[i] += q.Given
			}
			// No queue is ever ahead by more than one lease times its weight.
			off := func(a, b, most int) bool { return a-b < -most || a-b > most }
			if off(got[2], got[3], 1) || off(got[0]+got[1], 3*got[2], 3) || off(got[0], 2*got[1], 2) || got[4] != 0 {
				t.Fatalf("leases of %d: %v", n, got)
			}
		}
	}
}

// TestDivideChargesNothing: Divide gives the same again until Charge has counted what
// was given.
func TestDivideChargesNothing(t *testing.T) {
	t.Parallel()
	var f Fair
	queues := []Queue{{Path: path("a", ""), Limit: 10}, {Path: path("b", ""), Limit: 10}}
	for range 3 {
		f.Divide(1, queues)
		if queues[0].Given != 1 || queues[1].Given != 0 {
			t.Fatalf("divided %+v", queues)
		}
	}
	f.Charge(queues)
	f.Divide(1, queues)
	if queues[0].Given != 0 || queues[1].Given != 1 {
		t.Errorf("after a lease of a: divided %+v", queues)
	}
}

// TestLeft: no queue gets more than it may, and what others leave goes to the rest.
func TestLeft(t *testing.T) {
	t.Parallel()
	var f Fair
	queues := []Queue{{Path: path("a", ""), Limit: 2}, {Path: path("b", ""), Limit: 9}}
	f.Divide(20, queues)
	if queues[0].Given != 2 || queues[1].Given != 9 {
		t.Errorf("divided %+v", queues)
	}
	for _, tt := range []struct{ most, running, ready, want int }{{0, 7, 5, 5}, {8, 7, 5, 1}, {8, 2, 5, 5},
		{8, 9, 5, 0}} {
		if got := Room(tt.most, tt.running, tt.ready); got != tt.want {
			t.Errorf("Room(%d, %d, %d) = %d, want %d", tt.most, tt.running, tt.ready, got, tt.want)
		}
	}
}

// TestForget: Fair remembers a bounded number of queues. It forgets a queue whose turn
// has come before a queue whose turn lies ahead.
func TestForget(t *testing.T) {
	t.Parallel()
	var f Fair
	f.Charge([]Queue{{Path: []Part{{"busy", 1}}, Given: 1}})
	for i := range 2 * maxNodes {
		if i == maxNodes-1 {
			f.root.now = turn / 2 // the lease of busy lasts longer than those of the others
		}
		f.Charge([]Queue{{Path: []Part{{fmt.Sprint(i), MaxWeight}}, Given: 1}})
		if n := len(f.root.children); n > maxNodes {
			t.Fatalf("%d children are remembered", n)
		}
		if i == maxNodes && f.root.children["busy"] == nil {
			t.Error("busy, whose turn lies ahead, was forgotten before a queue whose turn has come")
		}
	}
}
