package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
)

// burst bounds the unacknowledged entries, and so the memory that an
// unresponsive server costs.
const burst = 256

// The server's codes for a failed condition, and for a message whose id is
// being stored at this moment.
const (
	codeWrongLastMsgID      jetstream.ErrorCode = 10070
	codeDuplicateInProgress jetstream.ErrorCode = 10158
)

// publisher is the state of one Run. One goroutine uses it.
type publisher struct {
	feed   *Feed
	config Config
	js     jetstream.JetStream

	stream     jetstream.Stream
	created    time.Time
	verified   time.Time
	last       uint64 // the stream's last sequence, as far as known
	maxAge     time.Duration
	reconnects uint64
	positions  map[string]position
	looked     time.Duration // how long reading the sizes of all logs took
}

func newPublisher(f *Feed, js jetstream.JetStream) *publisher {
	return &publisher{feed: f, config: f.Config.WithDefaults(), js: js, positions: make(map[string]position)}
}

// tenantLog is the size of a tenant's log.
type tenantLog struct {
	tenant string
	size   int64
}

// round publishes everything that is missing, one burst per tenant in turn.
// conflict says that another publisher has moved the stream.
func (p *publisher) round(ctx context.Context) (conflict bool, err error) {
	stuck := make(map[string]error)
	for more := true; more; {
		logs, err := p.logs(ctx)
		if err != nil {
			return conflict, err
		}
		if err := p.ensure(ctx); err != nil {
			return conflict, err
		}
		more = false
		for _, l := range logs {
			if pos := p.positions[l.tenant]; pos.known && pos.next == l.size || stuck[l.tenant] != nil {
				continue
			}
			n, err := p.advance(ctx, l)
			var own *tenantError
			switch {
			case err == nil:
				more = more || n == burst
			case errors.Is(err, errConflict):
				conflict = true
				stuck[l.tenant] = err
			case errors.As(err, &own):
				stuck[l.tenant] = err
			default:
				p.forget()
				return conflict, err
			}
		}
	}
	for _, e := range stuck {
		if !errors.Is(e, errConflict) {
			err = e
		}
	}
	return conflict, err
}

// logs reads the sizes of all logs and computes how far behind the stream is.
func (p *publisher) logs(ctx context.Context) ([]tenantLog, error) {
	var logs []tenantLog
	began := time.Now()
	err := p.feed.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		logs = nil
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			size, err := q.In(t.ID).LogSize()
			if err := ignoreNotFound(err); err != nil {
				return err
			}
			logs = append(logs, tenantLog{t.ID, size})
		}
		return nil
	})
	if err != nil {
		p.forget() // after a failover to a standby, the log may lack its last entries
		return nil, fmt.Errorf("read the log: %w", err)
	}
	p.looked = time.Since(began)
	var behind int64
	for _, l := range logs {
		behind += max(0, l.size-p.positions[l.tenant].next)
	}
	p.feed.behind.Store(behind)
	return logs, nil
}

// advance publishes the next burst of a tenant's entries.
func (p *publisher) advance(ctx context.Context, l tenantLog) (int, error) {
	pos := p.positions[l.tenant]
	if !pos.known || !pos.own || pos.next > l.size {
		var err error
		if pos, err = p.locate(ctx, l.tenant); err != nil {
			return 0, err
		}
		p.advanced(l.tenant, pos, 0)
	}
	if pos.next >= l.size {
		return 0, nil
	}
	var entries []*gatehouse.Entry
	err := p.feed.Store.View(ctx, l.tenant, func(tx gatehouse.ReadTx) (err error) {
		entries, err = tx.ListEntries(pos.next, burst)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the log: %w", err)
	}
	n, seq, err := p.publish(ctx, l.tenant, pos, entries)
	if n > 0 {
		pos.next, pos.seq, pos.own = pos.next+int64(n), seq, true
	}
	pos.known = err == nil
	p.advanced(l.tenant, pos, n)
	return n, err
}

// advanced records the stream's new position in a tenant's log.
func (p *publisher) advanced(tenant string, pos position, published int) {
	p.feed.behind.Add(min(0, p.positions[tenant].next-pos.next))
	p.feed.published.Add(uint64(published))
	p.positions[tenant] = pos
	p.last = max(p.last, pos.seq)
}

// publish sends the entries after a position, each on the condition that it
// follows the one before. It returns how many are stored and the sequence of
// the last one.
//
// The first entry goes alone. The server compares a predecessor's id with the
// last id that it has seen, even if that message is gone by now. So the rest of
// a burst relies on the first entry's id only after that entry is stored.
func (p *publisher) publish(
	ctx context.Context, tenant string, pos position, entries []*gatehouse.Entry,
) (int, uint64, error) {
	if len(entries) == 0 {
		return 0, pos.seq, nil
	}
	condition := jetstream.WithExpectLastSequenceForSubject(pos.seq, tenantSubject(p.config.Prefix, tenant)+">")
	n, seq, err := p.deliver(ctx, tenant, pos.next, entries[:1], condition)
	if err != nil || len(entries) == 1 {
		return n, seq, err
	}
	id, err := entryID(entries[0])
	if err != nil {
		return n, seq, &tenantError{tenant, err}
	}
	more, last, err := p.deliver(ctx, tenant, pos.next+1, entries[1:], jetstream.WithExpectLastMsgID(id))
	if more > 0 {
		seq = last
	}
	return n + more, seq, err
}

// deliver sends entries and waits for the acknowledgements.
func (p *publisher) deliver(
	ctx context.Context, tenant string, next int64, entries []*gatehouse.Entry, condition jetstream.PublishOpt,
) (n int, seq uint64, failed error) {
	sent, unsent := p.send(tenant, next, entries, condition)
	// After a failure all later entries have failed too, or will, because their predecessor is
	// missing. Waiting for them anyway keeps the bound on unacknowledged messages.
	for _, future := range sent {
		ack, err := outcome(ctx, future)
		switch {
		case ctx.Err() != nil:
			return n, seq, ctx.Err()
		case err != nil && failed == nil:
			failed = classify(tenant, err)
		case err == nil && failed == nil:
			n, seq = n+1, ack.Sequence
		}
	}
	if failed == nil {
		failed = unsent
	}
	return n, seq, failed
}

// send sends entries until one cannot be sent: the first on the caller's
// condition, each further one on its predecessor.
func (p *publisher) send(
	tenant string, next int64, entries []*gatehouse.Entry, condition jetstream.PublishOpt,
) (sent []jetstream.PubAckFuture, err error) {
	for i, e := range entries {
		if e.Index != next+int64(i) {
			return sent, &tenantError{tenant, fmt.Errorf("entry %d of the log is missing", next+int64(i))}
		}
		m, err := message(p.config.Prefix, tenant, e)
		if err != nil {
			return sent, &tenantError{tenant, err}
		}
		id := m.Header.Get(jetstream.MsgIDHeader)
		future, err := p.js.PublishMsgAsync(m, condition, jetstream.WithExpectStream(p.config.Stream),
			jetstream.WithRetryAttempts(0))
		if err != nil {
			return sent, classify(tenant, err)
		}
		sent, condition = append(sent, future), jetstream.WithExpectLastMsgID(id)
	}
	return sent, nil
}

// outcome waits for the acknowledgement or its time-out. If the server already
// knows the message's id, that is a conflict: the position was wrong.
func outcome(ctx context.Context, future jetstream.PubAckFuture) (*jetstream.PubAck, error) {
	select {
	case ack := <-future.Ok():
		if ack.Duplicate {
			return nil, errConflict
		}
		return ack, nil
	case err := <-future.Err():
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// classify separates conflicts, and problems of one tenant's event, from
// trouble with the server.
func classify(tenant string, err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return &tenantError{tenant, err}
	case !errors.As(err, &api):
		return err
	}
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant,
		codeWrongLastMsgID, codeDuplicateInProgress:
		return errConflict
	case jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return &tenantError{tenant, err}
	}
	return err
}

// timeOf returns the time at which an entry was written.
func timeOf(tx gatehouse.LogReader, tenant string, index int64) (time.Time, error) {
	entries, err := tx.ListEntries(index, 1)
	if err != nil {
		return time.Time{}, err
	}
	if len(entries) == 0 || entries[0].Index != index {
		return time.Time{}, fmt.Errorf("entry %d of the log of %s is missing", index, tenant)
	}
	var l struct {
		At time.Time `json:"at"`
	}
	err = json.Unmarshal([]byte(entries[0].Body), &l)
	return l.At, err
}
