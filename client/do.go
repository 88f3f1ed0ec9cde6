package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// maxAnswer limits an answer, in bytes: evidence and pages can be many times larger than a
// request's body.
const maxAnswer = 256 << 20

// request is one call, which may take several tries.
type request struct {
	method, path string
	query        url.Values
	body         any    // nil for no body
	yaml         string // a YAML body; "" for none
	mail         []byte // a body that is a mail, to a path that needs no secret; nil for none
	out          any    // nil ignores the answer's body, *[]byte receives it unparsed
	// sendKey makes the client send an Idempotency-Key, so that all tries have one effect.
	sendKey bool
	// idempotent says that repeating the call has no further effect. Calls by GET are repeated without it.
	idempotent bool
	// open marks a path outside the API, to which no secret is sent.
	open bool
}

// answer is the part of the response that callers use.
type answer struct {
	status   int
	replayed bool // by Idempotency-Key
}

// do makes a call, with its retries.
func (c *Client) do(ctx context.Context, r request) (answer, error) {
	var body []byte
	switch {
	case r.mail != nil:
		body = r.mail
	case r.yaml != "":
		body = []byte(r.yaml)
	case r.body != nil:
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return answer{}, fmt.Errorf("client: encode: %w", err)
		}
	}
	key := ""
	if r.sendKey {
		key = rand.Text()
	}
	for try := 0; ; try++ {
		a, raw, err := c.try(ctx, r, body, key)
		if err == nil {
			return a, decode(raw, r.out)
		}
		pause, again := c.retry.next(try, r, err)
		if !again || ctx.Err() != nil {
			return a, err
		}
		if err := sleepAfter(ctx, pause, err); err != nil {
			return a, err
		}
	}
}

// try makes one HTTP request.
func (c *Client) try(ctx context.Context, r request, body []byte, key string) (answer, []byte, error) {
	target := c.base + prefix + r.path
	if r.open {
		target = c.base + r.path
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, reader)
	if err != nil {
		return answer{}, nil, fmt.Errorf("client: %w", err)
	}
	switch {
	case r.mail != nil:
		req.Header.Set("Content-Type", "message/rfc822")
	case r.yaml != "":
		req.Header.Set("Content-Type", "application/yaml")
	case body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if c.key != "" && !r.open && r.mail == nil {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.token != "" && !r.open && r.mail == nil {
		req.Header.Set("X-Edit-Token", c.token)
	}
	if c.channel != "" {
		req.Header.Set("X-Gatehouse-Channel", c.channel)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, nil, broken(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return answer{}, nil, &connectionError{err}
	case len(raw) > maxAnswer:
		return answer{}, nil, errTooLarge
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return answer{status: resp.StatusCode}, nil, problemOf(resp, raw)
	}
	return answer{resp.StatusCode, resp.Header.Get("Idempotency-Replayed") == "true"}, raw, nil
}

func decode(raw []byte, out any) error {
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = raw
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("client: cannot decode the answer: %w", err)
	}
	return nil
}

// read makes a request, and reads its answer into a new T.
func read[T any](ctx context.Context, c *Client, r request) (*T, error) {
	out := new(T)
	r.out = out
	if _, err := c.do(ctx, r); err != nil {
		return nil, err
	}
	return out, nil
}

// get reads a path into a new T.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	return read[T](ctx, c, request{method: http.MethodGet, path: path, query: query})
}

// list reads the first page of a list, and drops the cursor of the next.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	p, err := page[T](ctx, c, path, query)
	return p.Items, err
}

// post sends body and reads the answer into a new T.
func post[T any](ctx context.Context, c *Client, sendKey bool, path string, body any) (*T, error) {
	return read[T](ctx, c, request{method: http.MethodPost, path: path, body: body, sendKey: sendKey})
}

// posted is post with an Idempotency-Key, and also returns the status and whether the answer was replayed.
func posted[T any](ctx context.Context, c *Client, path string, body any) (*T, answer, error) {
	out := new(T)
	a, err := c.do(ctx, request{method: http.MethodPost, path: path, body: body, out: out, sendKey: true})
	if err != nil {
		return nil, a, err
	}
	return out, a, nil
}
