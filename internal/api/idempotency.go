package api

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
)

// MaxIdempotencyKey bounds an Idempotency-Key, in printable ASCII characters.
const MaxIdempotencyKey = 255

// idempotencyOf reads the Idempotency-Key; nil when there is none. The hash covers
// path and body: the same key for another action is not a repeat.
func idempotencyOf(r *http.Request, rt *route, c *call, raw []byte) (*gatehouse.IdempotencyRequest, error) {
	header, ok := r.Header["Idempotency-Key"]
	if !ok {
		return nil, nil
	}
	if len(header) != 1 || !validKey(header[0]) {
		return nil, gatehouse.Violations{{
			Pointer: "/header/Idempotency-Key", Detail: "must be 1 to 255 printable ASCII characters, once",
		}}.Err()
	}
	req := &gatehouse.IdempotencyRequest{
		Key: header[0], Route: rt.method + " " + Prefix + rt.path,
		BodyHash: hashRequest(r.URL.Path, raw), Encode: c.encode,
	}
	if rt.secret {
		req.Encode = func(result any) ([]byte, error) { return c.encodeSealed(req, result) }
	}
	return req, nil
}

func hashRequest(path string, body []byte) gatehouse.Hash {
	b := make([]byte, 0, 512)
	b = append(b, path...)
	b = append(b, 0)
	b = append(b, body...)
	return sha256.Sum256(b)
}

func validKey(s string) bool {
	if s == "" || len(s) > MaxIdempotencyKey {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// running holds the idempotency keys of this process's running requests. A
// crash loses them together with the requests.
type running struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

// hold reserves the caller's key until release is called. A reserved key is an
// error with code in_progress.
func (r *running) hold(c *gatehouse.Caller) (release func(), err error) {
	id := strings.Join([]string{c.Principal.Tenant, c.Principal.ID, c.Idempotency.Route, c.Idempotency.Key}, "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.keys[id]; held {
		e := gatehouse.E(gatehouse.CodeInProgress, "the first request under this Idempotency-Key is still running")
		e.RetryAfter = 1
		return nil, e
	}
	if r.keys == nil {
		r.keys = make(map[string]struct{})
	}
	r.keys[id] = struct{}{}
	return func() {
		r.mu.Lock()
		delete(r.keys, id)
		r.mu.Unlock()
	}, nil
}

// replay answers with the stored answer to the first request.
func (s *Server) replay(w http.ResponseWriter, rt *route, c *call, replay *gatehouse.Replay) (int, error) {
	b := replay.Body
	if rt.secret {
		var err error
		if b, err = c.unseal(b); err != nil {
			return 0, err
		}
	}
	w.Header()["Idempotency-Replayed"] = headerTrue
	writeBytes(w, http.StatusOK, headerJSON, b)
	return http.StatusOK, nil
}

var headerTrue = []string{"true"}
