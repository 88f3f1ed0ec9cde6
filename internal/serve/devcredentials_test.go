package serve

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// busyOnce is a store that is busy when a key is first looked up.
type busyOnce struct {
	gatehouse.Store
	was bool
}

func (s *busyOnce) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	if !s.was {
		s.was = true
		return gatehouse.ErrBusy
	}
	return s.Store.ReadQueues(ctx, fn)
}

// TestDevReplacesWhatIsInvalid: only an invalid secret is replaced. A store that does not answer tells nothing
// about a key.
func TestDevReplacesWhatIsInvalid(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := openNode(t, &config.Config{})
	defer func() { must(t, n.Close()) }()
	before, err := ensureDev(t.Context(), n, data)
	must(t, err)
	admin, err := n.Gate.Authenticate(t.Context(), before.Admin.Key)
	must(t, err)
	ctx := gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaCLI})
	_, err = n.Gate.RotateEditToken(ctx, "dev-reviewer")
	must(t, err)
	after, err := ensureDev(t.Context(), n, data)
	must(t, err)
	reviewer, err := n.Gate.Authenticate(t.Context(), after.Reviewer.Key)
	must(t, err)
	if ok, err := n.Gate.CheckEditToken(t.Context(), reviewer, after.Reviewer.EditToken); err != nil || !ok {
		t.Errorf("the reviewer's edit token is valid: %v, %v", ok, err)
	}
	if after.Reviewer.Key != before.Reviewer.Key || after.Agent != before.Agent || after.Admin != before.Admin {
		t.Errorf("valid secrets were replaced: %v, %v", before, after)
	}

	store := n.Gate.Store
	n.Gate.Store = &busyOnce{Store: store}
	have := after.Agent
	err = ensureMember(ctx, n, &have, gatehouse.NewPrincipal{
		Name: "dev-agent", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
	})
	n.Gate.Store = store
	if err == nil || have != after.Agent {
		t.Errorf("while the store is busy: %v, replaced: %v", err, have != after.Agent)
	}
}
