package expr

import (
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/gatehouse-dev/gatehouse"
)

// maxDigits bounds the length of a computed number, so that no expression can
// grow one without limit.
const maxDigits = 5000

// NumberType is the CEL type of every number that comes from JSON.
var NumberType = types.NewObjectType("decimal",
	traits.ComparerType|traits.AdderType|traits.SubtractorType|traits.MultiplierType|traits.NegatorType)

// Number is an exact decimal as a CEL value. Expressions never see a
// float: JSON numbers, dec("…") and literals with a fraction are all Numbers,
// and mix with CEL's integers.
type Number gatehouse.Decimal

// Dec returns the number as a gatehouse.Decimal.
func (n Number) Dec() gatehouse.Decimal { return gatehouse.Decimal(n) }

// ToNumber converts a number, a CEL integer, or a string that contains a
// number.
func ToNumber(v ref.Val) (Number, error) {
	switch v := v.(type) {
	case Number:
		return v, nil
	case types.Int:
		return Number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return Number(strconv.FormatUint(uint64(v), 10)), nil
	case types.String:
		d, err := gatehouse.ParseDecimal(string(v))
		return Number(d), err
	case types.Null:
		return "", fmt.Errorf("null is not a number")
	case *types.Err:
		return "", v
	}
	return "", fmt.Errorf("a value of type %s is not a number", v.Type().TypeName())
}

// operand converts a value that may stand next to a number without dec(): never
// a string.
func operand(v ref.Val) (Number, bool) {
	switch v.(type) {
	case Number, types.Int, types.Uint:
		n, err := ToNumber(v)
		return n, err == nil
	}
	return "", false
}

func (n Number) mul(m Number) Number {
	a, as := coefficient(n.Dec())
	b, bs := coefficient(m.Dec())
	scale := as + bs
	product := a.Mul(a, b)
	digits := new(big.Int).Abs(product).String()
	if pad := scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if product.Sign() < 0 {
		digits = "-" + digits
	}
	return Number(digits)
}

// coefficient returns d as coefficient × 10^-scale.
func coefficient(d gatehouse.Decimal) (c *big.Int, scale int) {
	plain := string(d.Add("0")) // without an exponent
	if i := strings.IndexByte(plain, '.'); i >= 0 {
		scale = len(plain) - i - 1
		plain = plain[:i] + plain[i+1:]
	}
	c, _ = new(big.Int).SetString(plain, 10)
	return c, scale
}

func bounded(d gatehouse.Decimal) ref.Val {
	if len(d) > maxDigits {
		return types.NewErr("a computed number has more than %d digits", maxDigits)
	}
	return Number(d)
}

func mismatch(op string, a, b ref.Val) ref.Val {
	for _, v := range []ref.Val{a, b} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	return types.NewErr("cannot %s %s and %s; dec(…) converts a string to a number", op, TypeName(a), TypeName(b))
}

// TypeName returns the name of a value's type, for messages.
func TypeName(v ref.Val) string { return v.Type().TypeName() }

// Add implements traits.Adder.
func (n Number) Add(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("add", n, other)
	}
	return bounded(n.Dec().Add(m.Dec()))
}

// Subtract implements traits.Subtractor.
func (n Number) Subtract(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("subtract", n, other)
	}
	return bounded(n.Dec().Sub(m.Dec()))
}

// Multiply implements traits.Multiplier.
func (n Number) Multiply(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("multiply", n, other)
	}
	return bounded(n.mul(m).Dec())
}

// Negate implements traits.Negater.
func (n Number) Negate() ref.Val { return Number(n.Dec().Neg()) }

// Compare implements traits.Comparer.
func (n Number) Compare(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("compare", n, other)
	}
	return types.Int(n.Dec().Cmp(m.Dec()))
}

// Equal implements ref.Val: by value, so that 1.0 equals 1.00.
func (n Number) Equal(other ref.Val) ref.Val {
	m, ok := operand(other)
	return types.Bool(ok && (n == m || n.Dec().Cmp(m.Dec()) == 0))
}

// Type implements ref.Val.
func (Number) Type() ref.Type { return NumberType }

// Value implements ref.Val.
func (n Number) Value() any { return n.Dec() }

// ConvertToType implements ref.Val: to a string or to itself.
func (n Number) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(n)
	case NumberType:
		return n
	case types.TypeType:
		return NumberType
	}
	return types.NewErr("a number cannot become %s", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (n Number) ConvertToNative(t reflect.Type) (any, error) {
	switch t {
	case reflect.TypeFor[gatehouse.Decimal]():
		return n.Dec(), nil
	case reflect.TypeFor[string]():
		return string(n), nil
	}
	return nil, fmt.Errorf("a number cannot become %s", t)
}
