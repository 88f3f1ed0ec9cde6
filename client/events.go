package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// maxEvent limits one event, in bytes.
	maxEvent = 8 << 20
	// silence is how long a stream may send nothing; the server sends a heartbeat every 15 seconds.
	silence = time.Minute
)

// Follow calls fn with each event that the filter selects, in the order of the log, until fn fails,
// the context ends, the server refuses, or the answer is not from Gatehouse. A broken connection is
// reopened after the last event, so no event is missed or repeated. Without the filter's After, the
// events begin when the server first answers. The filter's Wait is ignored. The error is never nil.
func (c *Client) Follow(ctx context.Context, f gatehouse.EventFilter, fn func(gatehouse.Event) error) error {
	q := url.Values{}
	set(q, "type", strings.Join(f.Types, ","))
	set(q, "action_id", f.ActionID)
	last := f.After
	for try := 0; ; try++ {
		before := last
		err := c.stream(ctx, q, &last, fn)
		var stop *stopped
		if errors.As(err, &stop) {
			return stop.err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if last != before {
			try = 0 // the connection delivered an event
		}
		if !passing(err) {
			return err
		}
		if err := sleep(ctx, c.retry.backoff(try)); err != nil {
			return err
		}
	}
}

// stopped wraps an error that ends Follow, such as an error from the caller's function.
type stopped struct{ err error }

func (s *stopped) Error() string { return s.err.Error() }

// stream reads one connection to its end. last is the index to start after, and is advanced with
// each event.
func (c *Client) stream(ctx context.Context, q url.Values, last **int64, fn func(gatehouse.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	target := c.base + prefix + "/events"
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return &stopped{fmt.Errorf("client: %w", err)}
	}
	req.Header.Set("Accept", "text/event-stream, application/problem+json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	if *last != nil {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(**last, 10))
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := c.http.Do(req)
	if err != nil {
		return broken(err)
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		if err != nil {
			return &connectionError{err}
		}
		return problemOf(resp, raw)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var data []byte
	var index *int64
	for lines.Scan() {
		quiet.Reset(silence)
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return &stopped{errors.New("client: the id of an event is not a number")}
			}
			index = &n
		case "data":
			data = append(data, value...)
		}
		if lines.Text() != "" || index == nil {
			continue
		}
		// An id without data stands for an event that the filter does not select.
		if data != nil {
			e, err := eventOf(*index, data)
			if err == nil {
				err = fn(*e)
			}
			if err != nil {
				return &stopped{err}
			}
		}
		*last, index, data = index, nil, nil
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return &stopped{fmt.Errorf("client: an event is larger than %d MiB", maxEvent>>20)}
	}
	return &connectionError{errors.Join(lines.Err(), io.ErrUnexpectedEOF)}
}

func eventOf(index int64, body []byte) (*gatehouse.Event, error) {
	var a struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Subject  string `json:"subject"`
		ActionID string `json:"actionid"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("client: cannot decode an event: %w", err)
	}
	return &gatehouse.Event{
		Index: index, ID: a.ID, Type: a.Type, Subject: a.Subject, ActionID: a.ActionID, Body: body,
	}, nil
}

// WaitDecision waits until an action is decided, and returns it: approved, rejected, denied,
// expired, canceled or superseded, or in a later state. It keeps waiting while the server does not
// answer. It fails when the context ends, or when the server refuses.
func (c *Client) WaitDecision(ctx context.Context, id string) (*gatehouse.Action, error) {
	return c.WaitAction(ctx, id, math.MaxInt64, gatehouse.UntilDecided)
}
