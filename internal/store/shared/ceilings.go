package shared

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ceilingClaim is the stored form of a [gatehouse.CeilingClaim]. Amount and Limit are plain strings, so that decoding
// does not parse and check them as decimals again.
type ceilingClaim struct {
	Ceiling  string             `json:"ceiling"`
	Scope    string             `json:"scope"`
	Amount   string             `json:"amount"`
	Limit    string             `json:"limit"`
	Window   gatehouse.Duration `json:"window"`
	Currency string             `json:"currency,omitempty"`
}

func storeCeilings(claims []gatehouse.CeilingClaim) []ceilingClaim {
	list := make([]ceilingClaim, len(claims))
	for i, c := range claims {
		list[i] = ceilingClaim{
			c.Ceiling, c.Scope, cmp.Or(string(c.Amount), "0"), cmp.Or(string(c.Limit), "0"), c.Window, c.Currency,
		}
	}
	return list
}

func loadCeilings(list []ceilingClaim) []gatehouse.CeilingClaim {
	if len(list) == 0 {
		return nil
	}
	claims := make([]gatehouse.CeilingClaim, len(list))
	for i, c := range list {
		claims[i] = gatehouse.CeilingClaim{
			Ceiling: c.Ceiling, Scope: c.Scope, Amount: gatehouse.Decimal(c.Amount), Limit: gatehouse.Decimal(c.Limit),
			Window: c.Window, Currency: c.Currency,
		}
	}
	return claims
}

// Claim is a claim on a ceiling as stores count it: amounts in millionths, times in microseconds since 1970.
type Claim struct {
	Ceiling, Scope string
	// Amount is rounded up, and Limit down, so rounding never lets a claim pass its limit.
	Amount, Limit int64
	// CountedAt is as in [gatehouse.CeilingClaim.CountedAt]. Since is the time after which claims count.
	CountedAt, Since int64
}

// ClaimsAt converts claims that are made now. An amount that is negative or too large is an error.
func ClaimsAt(now time.Time, claims []gatehouse.CeilingClaim) ([]Claim, error) {
	list := make([]Claim, len(claims))
	for i, c := range claims {
		amount, err := c.Amount.Micros()
		if err != nil {
			return nil, err
		}
		if amount < 0 {
			return nil, fmt.Errorf("the claim of %s on the ceiling %s is negative", c.Amount, c.Ceiling)
		}
		list[i] = Claim{
			Ceiling: c.Ceiling, Scope: c.Scope, Amount: amount, Limit: limitOf(c.Limit),
			CountedAt: c.CountedAt(now).UnixMicro(), Since: now.Add(-c.Window.D()).UnixMicro(),
		}
	}
	return list, nil
}

// limitOf is a limit in millionths, rounded down. A limit that is too large is the largest number.
func limitOf(limit gatehouse.Decimal) int64 {
	if n, ok := limit.ExactMicros(); ok {
		return n
	}
	n, err := limit.Micros()
	switch {
	case err != nil:
		return math.MaxInt64
	case gatehouse.DecimalFromMicros(n).Cmp(limit) > 0:
		n--
	}
	return n
}

// Fits reports whether the used amount and the claim together stay within the limit.
func (c *Claim) Fits(used int64) bool { return used <= c.Limit-c.Amount }

// ExcessOf describes a claim that does not fit.
func ExcessOf(c gatehouse.CeilingClaim, used int64) *gatehouse.CeilingExcess {
	u := gatehouse.DecimalFromMicros(used)
	return &gatehouse.CeilingExcess{
		CeilingClaim: c, Used: u, Left: gatehouse.CeilingLeft(c.Limit, u), Never: c.Amount.Cmp(c.Limit) > 0,
	}
}

// EncodeClaims encodes claims for the store, and returns the latest CountedAt.
func EncodeClaims(claims []Claim) (text string, latest int64) {
	b := []byte("[")
	for i := range claims {
		c := &claims[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendQuoted(append(b, '['), c.Ceiling)
		b = AppendQuoted(append(b, ','), c.Scope)
		b = strconv.AppendInt(append(b, ','), c.Amount, 10)
		b = strconv.AppendInt(append(b, ','), c.CountedAt, 10)
		b = append(b, ']')
		latest = max(latest, c.CountedAt)
	}
	return string(append(b, ']')), latest
}

// DecodeClaims decodes stored claims, without their limits.
func DecodeClaims(text string) ([]Claim, error) {
	var rows [][4]json.RawMessage
	err := json.Unmarshal([]byte(text), &rows)
	list := make([]Claim, len(rows))
	for i, r := range rows {
		c := &list[i]
		for j, to := range [...]any{&c.Ceiling, &c.Scope, &c.Amount, &c.CountedAt} {
			if err == nil {
				err = json.Unmarshal(r[j], to)
			}
		}
	}
	return list, err
}
