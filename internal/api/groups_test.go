package api

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPutNewGroup: "new" of the body reaches the gate, which then replaces no members.
func TestPutNewGroup(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	for body, want := range map[string]bool{`{"members":["ana"]}`: false, `{"members":["ana"],"new":true}`: true} {
		w := request{method: "PUT", path: "/api/v1/groups/finance", key: "gth_root", token: "gte_root", body: body}.send(s)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		sent := f.last(t, "PutGroup").args[1].(gatehouse.GroupMembers)
		if sent.New != want || !slices.Equal(sent.Members, []string{"ana"}) {
			t.Errorf("%s: %+v", body, sent)
		}
	}
}
