package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// The number of ids with one prefix that are checked, and the number of candidates
// that an error lists.
const (
	maxSameBeginning = 200
	maxCandidates    = 10
)

// Resolve returns the full id of a short id; any other id is returned unchanged:
// see [gatehouse.ShortID]. Only ids that the caller may read count. No match is an
// error with code not_found; several matches are one with code ambiguous_id, which
// lists the first as candidates.
func (g *Gate) Resolve(ctx context.Context, kind, id string) (string, error) {
	prefix, short := gatehouse.ShortID(kind, id)
	if !short {
		return id, nil
	}
	var ids []string
	err := g.View(ctx, kind, func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		ids, err = tx.FindIDs(prefix, maxSameBeginning)
		return err
	})
	if err != nil {
		return "", err
	}
	var found []string
	for _, candidate := range ids {
		err := g.Exists(ctx, kind, candidate)
		switch gatehouse.CodeOf(err) {
		case "":
			found = append(found, candidate)
		case gatehouse.CodeNotFound:
		default:
			return "", err
		}
		if len(found) > maxCandidates {
			break
		}
	}
	switch len(found) {
	case 0:
		return "", gatehouse.E(gatehouse.CodeNotFound, "no %s %s", kind, gatehouse.QuoteWord(id))
	case 1:
		return found[0], nil
	}
	return "", gatehouse.E(gatehouse.CodeAmbiguousID, "several ids begin with %s: give a longer part", prefix).
		With("candidates", found[:min(len(found), maxCandidates)])
}
