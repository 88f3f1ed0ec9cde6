package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// once returns a context that makes a form idempotent. key is a value from the form's page, body is
// the rest of the form. Posting the same form again gives a [gatehouse.Replay].
func (v *view) once(route, key string, body ...string) context.Context {
	caller, err := gatehouse.CallerFrom(v.ctx)
	if err != nil || key == "" {
		return v.ctx
	}
	c := *caller
	c.Idempotency = &gatehouse.IdempotencyRequest{
		Key: key, Route: "console " + route, BodyHash: sha256.Sum256(fmt.Appendf(nil, "%q", body)),
		Encode: func(result any) ([]byte, error) { return json.Marshal(result) },
	}
	return gatehouse.NewContext(v.ctx, &c)
}

// replayedID returns the id that the first post of the same form created.
func replayedID(err error) (string, bool) {
	var replay *gatehouse.Replay
	if !errors.As(err, &replay) {
		return "", false
	}
	var first struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(replay.Body, &first) != nil || first.ID == "" {
		return "", false
	}
	return first.ID, true
}
