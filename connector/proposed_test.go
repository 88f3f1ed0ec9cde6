package connector_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

func TestProposedAt(t *testing.T) {
	t.Parallel()
	at := connector.Call{ActionID: "act_017f22e279b07cc398c4dc0c0c07398f"}.ProposedAt() // RFC 9562, appendix A.6
	if want := time.UnixMilli(0x017f22e279b0); !at.Equal(want) {
		t.Errorf("%v, want %v", at, want)
	}
	for _, id := range []string{
		"", "act_1", "act_017f22e279b04cc398c4dc0c0c07398f", "act_zz7f22e279b07cc398c4dc0c0c07398f",
	} {
		if at := (connector.Call{ActionID: id}).ProposedAt(); !at.IsZero() {
			t.Errorf("%s: %v", id, at)
		}
	}
}
