package mssqltest

import (
	"encoding/binary"
	"regexp"
	"strings"
)

// The types of parameters that the driver sends ([MS-TDS] 2.2.5.4).
const (
	typeNull      = 0x1f
	typeInt       = 0x26
	typeBit       = 0x68
	typeVarBinary = 0xa5
	typeVarChar   = 0xa7
	typeNVarChar  = 0xe7
)

// varchar is the value of a text parameter that is not Unicode.
type varchar string

// request is a statement with its parameters by name.
type request struct {
	text   string
	params map[string]any // nil, int64, bool, string, varchar or []byte
	out    string         // the name of the OUTPUT parameter, if there is one
	rpc    bool
}

// reader reads little-endian numbers and texts. A read beyond the end sets bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad = true
		return make([]byte, max(n, 0))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func parseRequest(m message) (request, error) {
	r := &reader{b: m.body}
	if total := int(r.uint32()); total < 4 || total > len(m.body) {
		return request{}, errProtocol
	} else {
		r.take(total - 4) // headers
	}
	q := request{params: make(map[string]any), rpc: m.kind == packetRPC}
	if !q.rpc {
		q.text = text16(r.b)
		return q, nil
	}
	if r.uint16() != 0xffff || r.uint16() != 10 { // sp_executesql
		return q, errProtocol
	}
	r.uint16() // flags
	for i := 0; len(r.b) > 0 && !r.bad; i++ {
		name := text16(r.take(2 * int(r.byte())))
		status := r.byte()
		value := r.value()
		switch i {
		case 0:
			q.text, _ = value.(string)
		case 1:
			if decl, _ := value.(string); !declarations.MatchString(decl) {
				return q, errProtocol
			}
		default:
			q.params[name] = value
		}
		if status&1 != 0 {
			q.out = name
		}
	}
	if r.bad || q.text == "" {
		return q, errProtocol
	}
	return q, nil
}

// declarations matches declarations of parameters such as "@p1 nvarchar(5),@p2 bigint,@rows bigint output".
var declarations = regexp.MustCompile(`^@\w+ \w+(\([\w,]+\))?( output)?(,@\w+ \w+(\([\w,]+\))?( output)?)*$`)

func (r *reader) value() any {
	switch kind := r.byte(); kind {
	case typeNull:
		return nil
	case typeInt, typeBit:
		r.byte()
		b := r.take(int(r.byte()))
		switch {
		case len(b) == 0:
			return nil
		case kind == typeBit:
			return b[0] != 0
		case len(b) == 8:
			return int64(binary.LittleEndian.Uint64(b))
		}
	case typeVarBinary, typeVarChar, typeNVarChar:
		size := r.uint16()
		if kind != typeVarBinary {
			r.take(5) // collation
		}
		b, null := r.long(size)
		switch {
		case null:
			return nil
		case kind == typeVarBinary:
			return b
		case kind == typeVarChar:
			return varchar(strings.ToValidUTF8(string(b), "?"))
		}
		return text16(b)
	}
	r.bad = true
	return nil
}

// long reads a value: with its length in front, or in parts if the size of the type is unlimited (0xffff).
func (r *reader) long(size uint16) (b []byte, null bool) {
	if size != 0xffff {
		n := r.uint16()
		if n == 0xffff {
			return nil, true
		}
		return r.take(int(n)), false
	}
	if r.uint64() == 0xffffffffffffffff {
		return nil, true
	}
	b = []byte{}
	for !r.bad {
		n := int(r.uint32())
		if n == 0 {
			break
		}
		b = append(b, r.take(n)...)
	}
	return b, false
}
