package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLinkDecisionsAreCounted: a decision by a link counts, also one that is refused.
func TestLinkDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	s, _, _ := testServer(t, AllRoles())
	defer s.Close()
	res, err := http.Post(s.URL+"/api/v1/reviews/rev_0/approve?token=nothing", "application/json", strings.NewReader("{}"))
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusUnauthorized {
		t.Fatal(res.Status)
	}
	res, err = http.Get(s.URL + "/metrics")
	must(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	want := `gatehouse_decisions_total{endpoint="link",result="refused"} 1`
	if !strings.Contains(string(text), want+"\n") {
		t.Errorf("%d: no %s", res.StatusCode, want)
	}
}

// TestClickResult: the code of a click's answer gives the result that the metric counts.
func TestClickResult(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]gatehouse.DecisionResult{
		gatehouse.Decided: gatehouse.ResultWon, gatehouse.VoteRecorded: gatehouse.ResultVoted,
		gatehouse.AlreadyRejected: gatehouse.ResultReplayed, string(gatehouse.CodeAlreadyDecided): gatehouse.ResultConflict,
		"not_linked": gatehouse.ResultRefused, string(gatehouse.CodeExpired): gatehouse.ResultRefused,
	} {
		if got := clickResult(code); got != want {
			t.Errorf("%s counts as %s, want %s", code, got, want)
		}
	}
}
