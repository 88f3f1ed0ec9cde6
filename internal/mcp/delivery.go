package mcp

import "errors"

// errLeft says that no client waits for an answer any more.
var errLeft = errors.New("the client no longer waits for the answer")

// delivery is the outcome of an action that is being written to clients. Several clients can wait for one action.
type delivery struct {
	// before is the state of the call before the outcome was consumed.
	before callState
	// waiting counts the answers whose delivery is not known yet; received says that a client has got one.
	waiting  int
	received bool
}

// delivering records that an answer with the outcome of an action is about to be written.
func (f *Folder) delivering(hash, action string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.deliveries[action]
	if d == nil {
		if f.deliveries == nil {
			f.deliveries = make(map[string]*delivery)
		}
		d = &delivery{before: f.get(hash)}
		f.deliveries[action] = d
	}
	d.waiting++
}

// delivered records whether a client has received an answer. It restores the outcome if no client has received any.
func (f *Folder) delivered(hash, action string, received bool) error {
	f.mu.Lock()
	d := f.deliveries[action]
	d.waiting--
	d.received = d.received || received
	last := d.waiting == 0
	if last {
		delete(f.deliveries, action)
	}
	f.mu.Unlock()
	if !last || d.received {
		return nil
	}
	return f.restore(hash, action, d.before)
}

// onDelivery calls told when it is known whether the client has received the answer to a request.
func (p *Proxy) onDelivery(id []byte, told func(received bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delivering[string(id)] = told
}

// delivered records whether the client has received the answer to a request.
func (p *Proxy) delivered(id []byte, received bool) {
	p.mu.Lock()
	told := p.delivering[string(id)]
	delete(p.delivering, string(id))
	p.mu.Unlock()
	if told != nil {
		told(received)
	}
}

// answer sends a frame to the client; false if that failed.
func (p *Proxy) answer(frame []byte) bool {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := p.out.Write(append(frame[:len(frame):len(frame)], '\n'))
	if err != nil && !errors.Is(err, errLeft) {
		p.Log.Warn("the client could not be reached", "error", err)
	}
	return err == nil
}

// answerHeld sends the answer to a request that begin handled, and records whether the client got the answer; if out
// only queues answers, answerHeld records only a failure.
func (p *Proxy) answerHeld(id, frame []byte) {
	if sent := p.answer(frame); !sent || !p.queued {
		p.delivered(id, sent)
	}
}
