package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
)

// verify is how often the stream is checked, even while nothing is published, to
// recreate it when it was deleted.
const verify = 5 * time.Second

// position is the stream's position in a tenant's log.
type position struct {
	// next is the index of the first entry that the stream lacks.
	next int64
	// seq is the sequence of the tenant's last message; 0 when there is none.
	seq uint64
	// known is false when the stream must be asked before next is used.
	known bool
	// own says that this feed has published the last message. If another feed
	// has, the stream is asked before anything is published.
	own bool
}

var errDiverged = errors.New("the stream's last event is not an entry of the log, as after a backup was restored; " +
	"purge the tenant's subject to publish again")

// ensure creates the stream when it is missing, and forgets the positions when
// the stream may have been replaced or may have lost messages.
func (p *publisher) ensure(ctx context.Context) error {
	if !p.feed.Conn.IsConnected() {
		p.forget()
		return errors.New("not connected to NATS")
	}
	if n := p.feed.Conn.Stats().Reconnects; n != p.reconnects {
		p.reconnects = n
		p.forget()
	}
	if p.stream != nil && time.Since(p.verified) < verify {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := p.js.Stream(ctx, p.config.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = p.js.CreateStream(ctx, p.config.stream())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica created it just now
			stream, err = p.js.Stream(ctx, p.config.Stream)
		} else if err == nil {
			p.feed.logger().InfoContext(ctx, "feed: created the stream", "stream", p.config.Stream)
		}
	}
	if err != nil {
		p.forget()
		return fmt.Errorf("stream %s: %w", p.config.Stream, err)
	}
	info := stream.CachedInfo()
	if !slices.Contains(info.Config.Subjects, p.config.subjects()) {
		p.forget()
		return fmt.Errorf("stream %s exists without the subjects %s", p.config.Stream, p.config.subjects())
	}
	if p.stream == nil || !info.Created.Equal(p.created) || info.State.LastSeq < p.last {
		p.forget()
	}
	p.stream, p.created, p.last = stream, info.Created, info.State.LastSeq
	p.maxAge, p.verified = info.Config.MaxAge, time.Now()
	return nil
}

// forget makes the next use of a position ask the stream, and makes ensure look up
// the stream itself again.
func (p *publisher) forget() {
	p.stream = nil
	for tenant, pos := range p.positions {
		pos.known = false
		p.positions[tenant] = pos
	}
}

// locate asks the stream for its position in a tenant's log.
func (p *publisher) locate(ctx context.Context, tenant string) (position, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	last, err := p.stream.GetLastMsgForSubject(limited, tenantSubject(p.config.Prefix, tenant)+">")
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		next, err := p.oldest(ctx, tenant)
		return position{next: next, known: true}, err
	}
	if err != nil {
		return position{}, fmt.Errorf("the stream's last event: %w", err)
	}
	index, err := strconv.ParseInt(last.Header.Get(HeaderIndex), 10, 64)
	if err != nil || index < 0 {
		return position{}, &tenantError{tenant, fmt.Errorf("message %d of the stream has no %s", last.Sequence, HeaderIndex)}
	}
	var hash []byte
	err = p.feed.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
		hash = nil
		entries, err := tx.ListEntries(index, 1)
		if err == nil && len(entries) == 1 && entries[0].Index == index {
			hash, err = entries[0].LeafHash.MarshalText()
		}
		return err
	})
	switch {
	case err != nil:
		return position{}, err
	case string(hash) != last.Header.Get(HeaderLeafHash):
		return position{}, &tenantError{tenant, errDiverged}
	}
	return position{next: index + 1, seq: last.Sequence, known: true}, nil
}

// oldest returns the index of the first entry that the stream would still keep
// if it had been published when it was written.
func (p *publisher) oldest(ctx context.Context, tenant string) (int64, error) {
	if p.maxAge <= 0 {
		return 0, nil
	}
	var next int64
	err := p.feed.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
		size, err := tx.LogSize()
		if err != nil {
			return ignoreNotFound(err)
		}
		since := tx.Now().Add(-p.maxAge)
		// The entries are nearly in time order.
		next = int64(sort.Search(int(size), func(i int) bool {
			if err != nil {
				return true
			}
			var at time.Time
			at, err = timeOf(tx, tenant, int64(i))
			return at.After(since)
		}))
		return err
	})
	return next, err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil
	}
	return err
}
