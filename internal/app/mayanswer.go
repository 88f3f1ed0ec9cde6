package app

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// MayAnswer tells why a principal may not answer an approval: nil when it may,
// as far as rights go; whether it voted already is another question. Decide
// asks the same in its transaction: this is for showing only.
func MayAnswer(ap *gatehouse.Approval, p *gatehouse.Principal, now time.Time) error {
	return entitled(ap, p, now)
}
