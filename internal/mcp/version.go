package mcp

import (
	"bytes"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// metaOf returns the _meta for the proxy's own requests in the version of a modern request, nil for the legacy
// protocol.
func metaOf(f *frame) []byte {
	version := metaVersion(f)
	if version == "" || !f.isRequest() || f.method == "initialize" {
		return nil
	}
	return setMember([]byte(`{"io.modelcontextprotocol/clientCapabilities":{}}`),
		"io.modelcontextprotocol/protocolVersion", []byte(gatehouse.StringJSON(version)))
}

// learn records the version of the modern protocol, which each request names, unless the server has already answered a
// request of another version: clients that share the proxy could name one that the server does not know.
func (p *Proxy) learn(f *frame) {
	meta := metaOf(f)
	if meta == nil {
		return
	}
	p.mu.Lock()
	if !p.metaProven {
		p.meta = meta
	}
	p.mu.Unlock()
	if f.method != "server/discover" {
		p.readied.Do(func() { close(p.ready) })
	}
}

// proveVersion records what an answer says about the version of its request: a result proves that the server knows the
// version. After codeUnsupportedVersion, the proxy learns another one.
func (p *Proxy) proveVersion(meta, result, failure []byte) {
	if meta == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case result != nil:
		p.meta, p.metaProven = meta, true
	case string(memberOf(failure, "code")) == strconv.Itoa(codeUnsupportedVersion) && bytes.Equal(meta, p.meta):
		p.metaProven = false
	}
}
