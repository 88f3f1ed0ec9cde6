package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
)

// failBroken fails the requests that a broken frame of the server may answer: the proxy's own requests whose id appears
// anywhere in the frame, and the client's request with the frame's id, which is id if the frame could be parsed.
func (p *Proxy) failBroken(line, id []byte, why string) {
	p.mu.Lock()
	for own, waiting := range p.pending {
		if bytes.Contains(line, []byte(own)) {
			waiting <- reply{err: errors.New(why)}
			delete(p.pending, own)
		}
	}
	p.mu.Unlock()
	if id == nil {
		id = brokenID(line)
	}
	if r, open := p.answered(id); open {
		p.answer(errorFrame(id, codeInternal, "the server's answer to "+r.method+" was refused: "+why))
	}
}

// lastID matches the id at the end of a frame.
var lastID = regexp.MustCompile(
	`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9][^\s,}]*)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// brokenID returns the id of a response that breaks the rules of parseFrame, or whose middle is missing. It returns nil
// if there is none, and for a request, whose id is the server's own.
func brokenID(line []byte) (id []byte) {
	in := json.NewDecoder(bytes.NewReader(line))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			break
		}
		if name == "method" || name == "params" {
			return nil
		}
		var value json.RawMessage
		if in.Decode(&value) != nil {
			break
		}
		if name == "id" {
			id = value
		}
	}
	if last := lastID.FindSubmatch(line); id == nil && last != nil {
		return last[1]
	}
	return id
}
