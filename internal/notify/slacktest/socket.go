package slacktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// socket is one Socket Mode connection.
type socket struct {
	conn  *websocket.Conn
	write sync.Mutex
	mu    sync.Mutex
	acks  map[string]chan json.RawMessage
}

// maxAck is the size, in bytes, from which Slack drops an acknowledgement.
const maxAck = 20 << 10

func (w *Workspace) serveSocket(rw http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(rw, r, nil)
	if err != nil {
		return
	}
	s := &socket{conn: conn, acks: map[string]chan json.RawMessage{}}
	w.set(func() { w.sockets = append(w.sockets, s) })
	_ = s.send(map[string]any{"type": "hello", "num_connections": 1})
	for {
		_, body, err := conn.ReadMessage()
		if err != nil {
			w.set(func() { w.forget(s) })
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(body, &ack) != nil || len(body) >= maxAck {
			continue // dropped
		}
		s.mu.Lock()
		if waits := s.acks[ack.EnvelopeID]; waits != nil {
			delete(s.acks, ack.EnvelopeID)
			waits <- ack.Payload
		}
		s.mu.Unlock()
	}
}

func (w *Workspace) forget(gone *socket) {
	for i, s := range w.sockets {
		if s == gone {
			w.sockets = append(w.sockets[:i], w.sockets[i+1:]...)
			return
		}
	}
}

func (s *socket) send(v any) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.conn.WriteJSON(v)
}

// Connections counts the Socket Mode connections.
func (w *Workspace) Connections() (n int) {
	w.set(func() { n = len(w.sockets) })
	return n
}

// Drop closes every Socket Mode connection without notice.
func (w *Workspace) Drop() {
	var list []*socket
	w.set(func() { list, w.sockets = w.sockets, nil })
	for _, s := range list {
		_ = s.conn.Close()
	}
}

// DeliverSocket sends an envelope over one of the connections, and waits for the acknowledgement with
// the id of the envelope. kind is interactive or slash_commands.
func (w *Workspace) DeliverSocket(kind string, payload []byte) (reply json.RawMessage, err error) {
	var s *socket
	id := ""
	w.set(func() {
		w.serial++
		id = fmt.Sprintf("envelope-%d", w.serial)
		if len(w.sockets) > 0 {
			s = w.sockets[w.serial%len(w.sockets)]
		}
	})
	if s == nil {
		return nil, errors.New("slacktest: nobody is connected")
	}
	waits := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.acks[id] = waits
	s.mu.Unlock()
	err = s.send(map[string]any{
		"type": kind, "envelope_id": id, "accepts_response_payload": true, "payload": json.RawMessage(payload),
	})
	if err != nil {
		return nil, err
	}
	select {
	case reply := <-waits:
		return reply, nil
	case <-time.After(patience):
		return nil, errors.New("slacktest: not acknowledged within 3 s")
	}
}
