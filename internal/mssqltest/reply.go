package mssqltest

import (
	"encoding/binary"
	"math"
	"math/big"
	"strings"
)

// reply collects the tokens of an answer ([MS-TDS] 2.2.7).
type reply struct{ b []byte }

func (r *reply) u8(v byte)    { r.b = append(r.b, v) }
func (r *reply) u16(v uint16) { r.b = binary.LittleEndian.AppendUint16(r.b, v) }
func (r *reply) u32(v uint32) { r.b = binary.LittleEndian.AppendUint32(r.b, v) }
func (r *reply) u64(v uint64) { r.b = binary.LittleEndian.AppendUint64(r.b, v) }

func (r *reply) name(s string) { // B_VARCHAR
	b := bytes16(s)
	r.u8(byte(len(b) / 2))
	r.b = append(r.b, b...)
}

func (r *reply) loginAck() {
	var t reply
	t.u8(1)
	t.b = append(t.b, 0x74, 0, 0, 4) // TDS 7.4
	t.name("Microsoft SQL Server (fake)")
	t.b = append(t.b, 16, 0, 0x03, 0xe8)
	r.u8(0xad)
	r.u16(uint16(len(t.b)))
	r.b = append(r.b, t.b...)
}

func (r *reply) failure(e *Error) {
	var t reply
	t.u32(uint32(e.Number))
	t.u8(1)
	t.u8(16)
	message := bytes16(e.Message)
	t.u16(uint16(len(message) / 2))
	t.b = append(t.b, message...)
	t.name("fake")
	t.name("")
	t.u32(1)
	r.u8(0xaa)
	r.u16(uint16(len(t.b)))
	r.b = append(r.b, t.b...)
}

// transaction reports that a transaction has begun (8), or was rolled back (10).
func (r *reply) transaction(kind byte, id uint64) {
	var t reply
	t.u8(kind)
	var begun, over []byte
	descriptor := binary.LittleEndian.AppendUint64(nil, id)
	if begun = descriptor; kind != 8 {
		begun, over = nil, descriptor
	}
	for _, b := range [][]byte{begun, over} {
		t.u8(byte(len(b)))
		t.b = append(t.b, b...)
	}
	r.u8(0xe3)
	r.u16(uint16(len(t.b)))
	r.b = append(r.b, t.b...)
}

const (
	doneError     = 0x02
	doneCount     = 0x10
	doneAttention = 0x20
	doneBroken    = 0x100
)

// done ends a statement: token 0xfd of a batch, 0xff within and 0xfe at the end of a procedure.
func (r *reply) done(token byte, status uint16, rows int64) {
	r.u8(token)
	r.u16(status)
	r.u16(0)
	r.u64(uint64(rows))
}

// returnValue is the value of an OUTPUT parameter.
func (r *reply) returnValue(name string, v int64) {
	r.u8(0xac)
	r.u16(0)
	r.name(name)
	r.u8(1)
	r.u32(0)
	r.u16(0)
	r.u8(typeInt)
	r.u8(8)
	r.u8(8)
	r.u64(uint64(v))
}

// result is a result set. Its values are nil, int64, float64, string or []byte.
type result struct {
	types []dataType
	rows  [][]any
}

func (r *reply) result(set *result) {
	r.u8(0x81)
	r.u16(uint16(len(set.types)))
	for _, t := range set.types {
		r.u32(0)
		r.u16(1) // nullable
		r.typeInfo(t)
		r.name("")
	}
	for _, row := range set.rows {
		r.u8(0xd1)
		for i, v := range row {
			r.value(set.types[i], v)
		}
	}
}

var collation = []byte{0x09, 0x04, 0xd0, 0x00, 0x34} // SQL_Latin1_General_CP1_CI_AS

func (r *reply) typeInfo(t dataType) {
	switch t.name {
	case "tinyint", "smallint", "int", "bigint":
		r.b = append(r.b, typeInt, 8)
	case "bit":
		r.b = append(r.b, typeBit, 1)
	case "float", "real":
		r.b = append(r.b, 0x6d, t.floatSize())
	case "decimal":
		r.b = append(r.b, 0x6a, 17, byte(t.size), byte(t.scale))
	case "varbinary", "binary", "rowversion":
		r.b = append(r.b, typeVarBinary, 0xff, 0xff)
	default:
		r.b = append(append(r.b, typeNVarChar, 0xff, 0xff), collation...)
	}
}

func (t dataType) floatSize() byte {
	if t.name == "real" {
		return 4
	}
	return 8
}

func (r *reply) value(t dataType, v any) {
	switch t.name {
	case "tinyint", "smallint", "int", "bigint", "bit", "float", "real", "decimal":
		if v == nil {
			r.u8(0)
			return
		}
		r.number(t, v)
		return
	}
	var b []byte
	switch v := v.(type) {
	case nil:
		r.u64(math.MaxUint64)
		return
	case string:
		b = bytes16(v)
	case []byte:
		b = v
	}
	r.u64(uint64(len(b)))
	if len(b) > 0 {
		r.u32(uint32(len(b)))
		r.b = append(r.b, b...)
	}
	r.u32(0)
}

func (r *reply) number(t dataType, v any) {
	switch t.name {
	case "bit":
		r.b = append(r.b, 1, byte(v.(int64)))
	case "float":
		r.u8(8)
		r.u64(math.Float64bits(v.(float64)))
	case "real":
		r.u8(4)
		r.u32(math.Float32bits(float32(v.(float64))))
	case "decimal":
		text, negative := strings.CutPrefix(v.(string), "-")
		n, _ := new(big.Int).SetString(strings.Replace(text, ".", "", 1), 10)
		r.u8(17)
		r.u8(map[bool]byte{true: 0, false: 1}[negative])
		b := n.FillBytes(make([]byte, 16))
		for i := range b {
			r.u8(b[len(b)-1-i])
		}
	default:
		r.u8(8)
		r.u64(uint64(v.(int64)))
	}
}
