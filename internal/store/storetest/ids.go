package storetest

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// ids checks that FindIDs returns the ids of one kind in one tenant that begin with a prefix, in ascending order.
func (s *suite) ids() {
	name := func(n int) string { return fmt.Sprintf("act_01a20778%024x", n) }
	for _, n := range []int{3, 1, 2} {
		s.pending(func(a *gatehouse.Action) {
			a.ID, a.IdempotencyKey = name(n), name(n)
			a.Approval.ID = "apr_" + name(n)[4:]
		})
	}
	s.pending(func(a *gatehouse.Action) {
		a.ID, a.IdempotencyKey, a.Approval.ID = "act_01a20779"+name(0)[12:], "next", "apr_01a20779"+name(0)[12:]
	})
	find := func(tenant, prefix string, limit int) (ids []string) {
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) { ids, err = tx.FindIDs(prefix, limit); return err })
		return ids
	}
	for _, c := range []struct {
		tenant, prefix string
		limit          int
		want           []string
	}{
		{tenant, "act_01a20778", 10, []string{name(1), name(2), name(3)}},
		{tenant, "act_01a20778", 2, []string{name(1), name(2)}},
		{tenant, name(2), 10, []string{name(2)}},
		{tenant, "apr_01a20778", 1, []string{"apr_" + name(1)[4:]}},
		{tenant, "psh_01a20778", 10, nil},
		{tenant, "run_01a20778", 10, nil},
		{tenant, "stp_01a20778", 10, nil},
		{tenant, "key_01a20778", 10, nil},
		{tenant, "ses_01a20778", 10, nil},
		{tenant, "prn_01a20778", 10, nil},
		{tenant, "grt_01a20778", 10, nil},
		{tenant, "mnd_01a20778", 10, nil},
		{tenant, "dlg_01a20778", 10, nil},
		{tenant, "dev_01a20778", 10, nil},
		{tenant, "rgk_01a20778", 10, nil},
		{tenant, "act_%", 10, nil},
		{tenant, "xyz_01a20778", 10, nil},
		{tenant, "a", 10, nil},
		{"another", "act_01a20778", 10, nil},
	} {
		if got := find(c.tenant, c.prefix, c.limit); !slices.Equal(got, c.want) {
			s.Errorf("%s %s: got %q, want %q", c.tenant, c.prefix, got, c.want)
		}
	}
}
