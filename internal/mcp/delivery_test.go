package mcp

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// deaf is a client that cannot be reached while fails is set.
type deaf struct {
	*httptest.ResponseRecorder
	fails bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if d.fails {
		return 0, errors.New("broken pipe")
	}
	return d.ResponseRecorder.Write(b)
}

func (d *deaf) FlushError() error {
	_, err := d.Write(nil)
	return err
}

// TestUndelivered: an outcome that could not be written to the client answers the next equal call; an outcome that was
// written does not.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	frame := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{}}}`
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		client := &deaf{httptest.NewRecorder(), true}
		p, _ := newRecorded(t, client)
		gate := &losingGate{byKey: map[string]*gatehouse.Action{}}
		p.Gate = gate
		for _, want := range []int{1, 1, 2} {
			p.clientFrame(t.Context(), []byte(frame))
			p.handling.Wait()
			if len(gate.byKey) != want {
				t.Errorf("there are %d actions, want %d", len(gate.byKey), want)
			}
			client.fails = false
		}
	})
	for _, accept := range []string{"application/json, text/event-stream", "text/event-stream, application/json"} {
		t.Run(accept, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			close(s.gate.decided)
			session, _ := s.begin("a")
			for i, want := range []int{1, 2, 2, 3} { // received, lost, received, received
				client := &deaf{httptest.NewRecorder(), i == 1}
				s.front.ServeHTTP(client, s.request(t.Context(), http.MethodPost, frame, sessionHeader, session, "Accept", accept))
				if len(s.gate.byKey) != want || !client.fails && !strings.Contains(client.Body.String(), "expired") {
					t.Errorf("call %d: there are %d actions, want %d: %s", i+1, len(s.gate.byKey), want, client.Body)
				}
			}
		})
	}
}

// TestLeftBeforeTheAnswer: an answer for a client that has left is not delivered.
func TestLeftBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.begin("a")
	h := s.stateOf("a")
	shared, err := h.sharedSession()
	must(t, err)
	received := true
	shared.proxy.onDelivery([]byte("7"), func(r bool) { received = r })
	shared.proxy.answerHeld([]byte("7"), resultFrame([]byte("7"), []byte("{}")))
	if received {
		t.Error("the answer counts as received")
	}
}

// TestOneOfTwoReceives: an outcome that one of two waiting clients has received is not restored, whichever of the two
// answers is settled first.
func TestOneOfTwoReceives(t *testing.T) {
	t.Parallel()
	for _, received := range [][2]bool{{true, false}, {false, true}, {false, false}} {
		f, err := OpenFolder(t.TempDir())
		must(t, err)
		must(t, f.open("h", "act_1"))
		before := f.call("h")
		for range 2 {
			f.delivering("h", "act_1")
			must(t, f.consume("h", "act_1", true))
		}
		for _, one := range received {
			must(t, f.delivered("h", "act_1", one))
		}
		if restored, want := f.call("h") == before, received == [2]bool{}; restored != want || len(f.deliveries) != 0 {
			t.Errorf("received %v: restored %t, want %t; %d deliveries are left", received, restored, want, len(f.deliveries))
		}
	}
}

// TestRestore: an outcome is not restored once an equal call has become a new action.
func TestRestore(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	must(t, f.open("h", "act_1"))
	before := f.call("h")
	must(t, f.consume("h", "act_1", true))
	must(t, f.restore("h", "act_1", before))
	if f.call("h") != before {
		t.Errorf("restored %+v, want %+v", f.call("h"), before)
	}
	must(t, f.consume("h", "act_1", true))
	must(t, f.open("h", "act_2"))
	must(t, f.restore("h", "act_1", before))
	if got := f.call("h"); got.Open != "act_2" || got.Last != "act_1" {
		t.Errorf("a new action is lost: %+v", got)
	}
}
