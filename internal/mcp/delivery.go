package mcp

import "errors"

// errLeft says that no client waits for an answer any more.
var errLeft = errors.New("the client no longer waits for the answer")

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

// answerHeld sends the answer to a request in held.
func (p *Proxy) answerHeld(id, frame []byte) {
	if sent := p.answer(frame); !sent || !p.queued {
		p.delivered(id, sent)
	}
}
