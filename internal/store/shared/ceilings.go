package shared

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Claim is a claim on a ceiling as stores count it: amounts in millionths, times in microseconds since 1970.
type Claim struct {
	Ceiling, Scope string
	// Amount is rounded up, and Limit down, so a sum is never too low.
	Amount, Limit int64
	// CountedAt is as in [gatehouse.CeilingClaim.CountedAt]. Since is the time after which claims count.
	CountedAt, Since int64
}

// ClaimsAt converts claims that are made now. An amount that is too large is an error.
func ClaimsAt(now time.Time, claims []gatehouse.CeilingClaim) ([]Claim, error) {
	list := make([]Claim, len(claims))
	for i, c := range claims {
		amount, err := c.Amount.Micros()
		if err != nil {
			return nil, err
		}
		if amount < 0 {
			return nil, fmt.Errorf("the claim of %s on the ceiling %s is below 0", c.Amount, c.Ceiling)
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

// Fits reports whether the claim fits under its limit beside the used amount.
func (c *Claim) Fits(used int64) bool { return used <= c.Limit-c.Amount }

// ExcessOf describes a claim that does not fit.
func ExcessOf(c gatehouse.CeilingClaim, used int64) *gatehouse.CeilingExcess {
	u := gatehouse.DecimalFromMicros(used)
	return &gatehouse.CeilingExcess{
		CeilingClaim: c, Used: u, Left: gatehouse.CeilingLeft(c.Limit, u), Never: c.Amount.Cmp(c.Limit) > 0,
	}
}

// EncodeClaims encodes claims for the store, and returns the latest time that one is counted at.
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

// claimLines is the number of lines of a claim in what joinClaims returns.
const claimLines = 6

// joinClaims writes the claims of a proposal as lines. A list of objects takes three times as long to decode.
// It returns "" if a text has lines of its own.
func joinClaims(claims []gatehouse.CeilingClaim) string {
	var b strings.Builder
	for i, c := range claims {
		if strings.Contains(c.Ceiling+c.Scope+c.Currency, "\n") {
			return ""
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Ceiling + "\n" + c.Scope + "\n" + string(c.Amount) + "\n" + string(c.Limit) + "\n" +
			c.Window.String() + "\n" + c.Currency)
	}
	return b.String()
}

// ceilings returns the claims in either form, and sets err if they are damaged.
func (x *extra) ceilings(err *error) []gatehouse.CeilingClaim {
	if x.Claims == "" {
		return x.Ceilings
	}
	lines := strings.Split(x.Claims, "\n")
	if len(lines)%claimLines != 0 {
		*err = fmt.Errorf("store: stored claims have %d lines", len(lines))
		return nil
	}
	claims := make([]gatehouse.CeilingClaim, len(lines)/claimLines)
	for i := range claims {
		c, t := &claims[i], lines[claimLines*i:]
		c.Ceiling, c.Scope, c.Currency = t[0], t[1], t[5]
		var errs [3]error
		c.Amount, errs[0] = decimalOf(t[2])
		c.Limit, errs[1] = decimalOf(t[3])
		c.Window, errs[2] = gatehouse.ParseDuration(t[4])
		*err = errors.Join(*err, errors.Join(errs[:]...))
	}
	return claims
}

func decimalOf(s string) (gatehouse.Decimal, error) {
	if s == "" {
		return "", nil
	}
	return gatehouse.ParseDecimal(s)
}

// CeilingsOf returns the claims of a proposal from its stored rare parts.
func CeilingsOf(stored string) (claims []gatehouse.CeilingClaim, err error) {
	x, err := DecodeJSON[extra](stored)
	if x != nil {
		claims = x.ceilings(&err)
	}
	return claims, err
}
