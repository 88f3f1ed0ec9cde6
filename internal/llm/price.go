package llm

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Price is the price of a model's tokens, per million.
type Price struct {
	InputPerMillion  gatehouse.Decimal
	OutputPerMillion gatehouse.Decimal
	// Currency is an ISO 4217 code.
	Currency string
}

// maxPrice limits a price per million tokens.
const maxPrice gatehouse.Decimal = "1000000"

func (p Price) validate() error {
	for _, d := range []gatehouse.Decimal{p.InputPerMillion, p.OutputPerMillion} {
		if v, err := gatehouse.ParseDecimal(string(d)); err != nil || v.Sign() < 0 || v.Cmp(maxPrice) > 0 {
			return fmt.Errorf("a price per million tokens must be a number from 0 to %s", maxPrice)
		}
	}
	if !gatehouse.ValidCurrency(p.Currency) {
		return fmt.Errorf("a currency must be a code such as USD")
	}
	return nil
}

// Cost is the exact cost of the tokens, rounded up to 1e-9 of the currency, so that the sum of
// small costs is never too low. It has no exponent and no trailing zeros.
func (p Price) Cost(inputTokens, outputTokens int64) gatehouse.Decimal {
	sum := new(big.Rat).Add(times(p.InputPerMillion, inputTokens), times(p.OutputPerMillion, outputTokens))
	sum.Mul(sum, big.NewRat(1000, 1)) // 1e-6 in units of 1e-9
	units, rest := new(big.Int).QuoRem(sum.Num(), sum.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		units.Add(units, big.NewInt(1))
	}
	d := string(gatehouse.Decimal(units.String() + "e-9").Abs())
	return gatehouse.Decimal(strings.TrimSuffix(strings.TrimRight(d, "0"), "."))
}

// times returns price × tokens. It panics if the price is not a number, like arithmetic on
// decimals does.
func times(price gatehouse.Decimal, tokens int64) *big.Rat {
	if price == "" {
		return new(big.Rat)
	}
	r, ok := new(big.Rat).SetString(string(price))
	if !ok {
		panic("llm: " + gatehouse.Quote(string(price)) + " is not a price")
	}
	return r.Mul(r, new(big.Rat).SetInt64(max(tokens, 0)))
}
