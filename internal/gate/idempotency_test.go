package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// withKey returns the caller of ctx with an Idempotency-Key on the request.
func withKey(t *testing.T, ctx context.Context, key string, body byte) context.Context {
	t.Helper()
	c, err := gatehouse.CallerFrom(ctx)
	must(t, err)
	again := *c
	again.Idempotency = &gatehouse.IdempotencyRequest{Key: key, Route: "POST /x", BodyHash: gatehouse.Hash{body},
		Encode: json.Marshal}
	return gatehouse.NewContext(ctx, &again)
}

func TestAnswerIsStoredWithTheEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	first, _, err := w.gate.Propose(withKey(t, bot, "k1", 1), proposal(nil))
	must(t, err)
	_, _, err = w.gate.Propose(withKey(t, bot, "k1", 1), proposal(nil))
	var replay *gatehouse.Replay
	if !errors.As(err, &replay) || !strings.Contains(string(replay.Body), first.ID) {
		t.Fatalf("err = %v, want a replay of %s", err, first.ID)
	}
	_, _, err = w.gate.Propose(withKey(t, bot, "k1", 2), proposal(nil))
	wantCode(t, err, gatehouse.CodeKeyReused)
	if page, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{}); err != nil || len(page.Items) != 1 {
		t.Fatalf("%d actions, %v", len(page.Items), err)
	}
	// After its window the key is free again, even if it is not purged yet.
	w.clock.Advance(gatehouse.IdempotencyWindow + time.Hour)
	if _, _, err := w.gate.Propose(withKey(t, bot, "k1", 2), proposal(nil)); err != nil {
		t.Fatal(err)
	}
}

func TestFailedRequestLeavesNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	a := w.propose(bot, nil)
	wrong := approve(a)
	wrong.Digest = "sha256:0"
	_, err := w.gate.Decide(withKey(t, ana, "k", 1), a.ID, wrong)
	wantCode(t, err, gatehouse.CodeDigestMismatch)
	if _, err := w.gate.Decide(withKey(t, ana, "k", 2), a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
}

// A retried rotation must not rotate again: that would end the first answer's
// token.
func TestRotationIsReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.person("ana")
	first, err := w.gate.RotateEditToken(withKey(t, w.admin, "k", 1), "ana")
	must(t, err)
	_, err = w.gate.RotateEditToken(withKey(t, w.admin, "k", 1), "ana")
	var replay *gatehouse.Replay
	if !errors.As(err, &replay) || !strings.Contains(string(replay.Body), first.EditToken) {
		t.Fatalf("err = %v, want a replay of the first answer", err)
	}
	ana, err := w.gate.FindPrincipal(w.admin, "ana")
	must(t, err)
	if ok, err := w.gate.CheckEditToken(t.Context(), ana, first.EditToken); !ok || err != nil {
		t.Errorf("the first token is dead: %t, %v", ok, err)
	}
}
