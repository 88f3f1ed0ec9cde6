package policy

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

// maxDigits bounds the text of a computed number, so that no expression can
// grow one without end.
const maxDigits = 5000

// numberType is the CEL type of every number that comes from a proposal.
var numberType = types.NewObjectType("decimal",
	traits.ComparerType|traits.AdderType|traits.SubtractorType|traits.MultiplierType|traits.NegatorType)

// number is an exact decimal as a CEL value. The conditions of a policy never
// see a float: JSON numbers, dec("…") and literals with a fraction are all
// numbers, and mix with CEL's integers.
type number gatehouse.Decimal

func (n number) dec() gatehouse.Decimal { return gatehouse.Decimal(n) }

// toNumber takes a number, a CEL integer, or a string that holds a number.
func toNumber(v ref.Val) (number, error) {
	switch v := v.(type) {
	case number:
		return v, nil
	case types.Int:
		return number(strconv.FormatInt(int64(v), 10)), nil
	case types.Uint:
		return number(strconv.FormatUint(uint64(v), 10)), nil
	case types.String:
		d, err := gatehouse.ParseDecimal(string(v))
		return number(d), err
	case types.Null:
		return "", fmt.Errorf("null is not a number")
	case *types.Err:
		return "", v
	}
	return "", fmt.Errorf("a value of type %s is not a number", v.Type().TypeName())
}

// operand takes what may stand beside a number without dec(): never a string.
func operand(v ref.Val) (number, bool) {
	switch v.(type) {
	case number, types.Int, types.Uint:
		n, err := toNumber(v)
		return n, err == nil
	}
	return "", false
}

func (n number) mul(m number) number {
	a, as := coefficient(n.dec())
	b, bs := coefficient(m.dec())
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
	return number(digits)
}

// coefficient returns d as coefficient × 10^-scale.
func coefficient(d gatehouse.Decimal) (c *big.Int, scale int) {
	plain := string(d.Add("0")) // without exponent
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
	return number(d)
}

func mismatch(op string, a, b ref.Val) ref.Val {
	for _, v := range []ref.Val{a, b} {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	return types.NewErr("cannot %s %s and %s; dec(…) makes a number of a string", op, typeName(a), typeName(b))
}

func typeName(v ref.Val) string { return v.Type().TypeName() }

// Add implements traits.Adder.
func (n number) Add(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("add", n, other)
	}
	return bounded(n.dec().Add(m.dec()))
}

// Subtract implements traits.Subtractor.
func (n number) Subtract(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("subtract", n, other)
	}
	return bounded(n.dec().Sub(m.dec()))
}

// Multiply implements traits.Multiplier.
func (n number) Multiply(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("multiply", n, other)
	}
	return bounded(n.mul(m).dec())
}

// Negate implements traits.Negater.
func (n number) Negate() ref.Val { return number(n.dec().Neg()) }

// Compare implements traits.Comparer.
func (n number) Compare(other ref.Val) ref.Val {
	m, ok := operand(other)
	if !ok {
		return mismatch("compare", n, other)
	}
	return types.Int(n.dec().Cmp(m.dec()))
}

// Equal implements ref.Val: by value, so that 1.0 equals 1.00.
func (n number) Equal(other ref.Val) ref.Val {
	m, ok := operand(other)
	return types.Bool(ok && (n == m || n.dec().Cmp(m.dec()) == 0))
}

// Type implements ref.Val.
func (number) Type() ref.Type { return numberType }

// Value implements ref.Val.
func (n number) Value() any { return n.dec() }

// ConvertToType implements ref.Val: to text, and to what it is.
func (n number) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(n)
	case numberType:
		return n
	case types.TypeType:
		return numberType
	}
	return types.NewErr("a number cannot become %s", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (n number) ConvertToNative(t reflect.Type) (any, error) {
	switch t {
	case reflect.TypeFor[gatehouse.Decimal]():
		return n.dec(), nil
	case reflect.TypeFor[string]():
		return string(n), nil
	}
	return nil, fmt.Errorf("a number cannot become %s", t)
}
