package mssqltest

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"unicode/utf16"
)

// The types of packets ([MS-TDS] 2.2.3.1.1).
const (
	packetRPC       = 0x03
	packetReply     = 0x04
	packetAttention = 0x06
	packetLogin     = 0x10
	packetPrelogin  = 0x12

	statusLast  = 0x01
	statusReset = 0x08

	packetSize = 4096
)

var errProtocol = errors.New("mssqltest: the client does not keep to TDS")

// message is a request of the client.
type message struct {
	kind  byte
	reset bool
	body  []byte
}

func readMessage(r io.Reader) (m message, err error) {
	for {
		var header [8]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return m, err
		}
		length := int(binary.BigEndian.Uint16(header[2:]))
		if length < len(header) {
			return m, errProtocol
		}
		part := make([]byte, length-len(header))
		if _, err := io.ReadFull(r, part); err != nil {
			return m, err
		}
		m.kind, m.body = header[0], append(m.body, part...)
		m.reset = m.reset || header[1]&statusReset != 0
		if header[1]&statusLast != 0 {
			return m, nil
		}
	}
}

func writeMessage(w io.Writer, kind byte, body []byte) error {
	var out bytes.Buffer
	for {
		part := body[:min(len(body), packetSize-8)]
		body = body[len(part):]
		header := [8]byte{kind, 0, 0, 0, 0, 0, 1}
		if len(body) == 0 {
			header[1] = statusLast
		}
		binary.BigEndian.PutUint16(header[2:], uint16(len(part)+len(header)))
		out.Write(header[:])
		out.Write(part)
		if len(body) == 0 {
			_, err := w.Write(out.Bytes())
			return err
		}
	}
}

// negotiate reads the PRELOGIN and turns encryption on where the client wants it and the server
// has it. With TDS 8.0, TLS comes first.
func negotiate(conn net.Conn, cfg *tls.Config) (net.Conn, error) {
	first := &peeked{Conn: conn}
	if b, err := first.peek(); err != nil {
		return nil, err
	} else if b == 0x16 && cfg != nil { // a TLS handshake
		strict := cfg.Clone()
		strict.NextProtos = []string{"tds/8.0"}
		conn = tls.Server(first, strict)
		_, err := answerPrelogin(conn, false)
		return conn, err
	}
	conn = first
	if encrypt, err := answerPrelogin(conn, cfg != nil); err != nil || !encrypt {
		return conn, err
	}
	shaking := &handshake{Conn: conn}
	encrypted := tls.Server(shaking, cfg)
	if err := encrypted.Handshake(); err != nil {
		return nil, err
	}
	shaking.done = true
	return encrypted, nil
}

// answerPrelogin tells whether both sides encrypt.
func answerPrelogin(conn net.Conn, able bool) (encrypt bool, err error) {
	m, err := readMessage(conn)
	if err != nil || m.kind != packetPrelogin {
		return false, errors.Join(err, errProtocol)
	}
	const on, notSupported = 1, 2
	encryption := byte(notSupported)
	for i := 0; i+5 <= len(m.body) && m.body[i] != 0xff; i += 5 {
		if at := int(binary.BigEndian.Uint16(m.body[i+1:])); m.body[i] == 1 && at < len(m.body) && m.body[at] == on &&
			able {
			encryption = on
		}
	}
	return encryption == on, writeMessage(conn, packetReply, []byte{
		0, 0, 11, 0, 6, // VERSION
		1, 0, 17, 0, 1, // ENCRYPTION
		0xff,
		16, 0, 0x03, 0xe8, 0, 0,
		encryption,
	})
}

// peeked is a connection of which the first byte was looked at.
type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) peek() (byte, error) {
	p.first = make([]byte, 1)
	_, err := io.ReadFull(p.Conn, p.first)
	return p.first[0], err
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// handshake carries the messages of TLS in packets of TDS until it is done.
type handshake struct {
	net.Conn
	done bool
	rest []byte
}

func (h *handshake) Read(b []byte) (int, error) {
	if h.done && len(h.rest) == 0 {
		return h.Conn.Read(b)
	}
	if len(h.rest) == 0 {
		m, err := readMessage(h.Conn)
		if err != nil {
			return 0, err
		}
		h.rest = m.body
	}
	n := copy(b, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

func (h *handshake) Write(b []byte) (int, error) {
	if h.done {
		return h.Conn.Write(b)
	}
	return len(b), writeMessage(h.Conn, packetPrelogin, b)
}

// login holds the fields of a LOGIN7 message that the server checks.
type login struct{ user, password, database string }

func parseLogin(b []byte) (l login, err error) {
	field := func(at int) []byte {
		if at+4 > len(b) {
			err = errProtocol
			return nil
		}
		start := int(binary.LittleEndian.Uint16(b[at:]))
		end := start + 2*int(binary.LittleEndian.Uint16(b[at+2:]))
		if end > len(b) {
			err = errProtocol
			return nil
		}
		return b[start:end]
	}
	l.user, l.database = text16(field(40)), text16(field(68))
	hidden := bytes.Clone(field(44))
	for i, c := range hidden {
		c ^= 0xa5
		hidden[i] = c<<4 | c>>4
	}
	l.password = text16(hidden)
	return l, err
}

// text16 reads UTF-16.
func text16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// bytes16 writes UTF-16.
func bytes16(s string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}
