package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// The number of ids with the same beginning that are read, and the number of candidates
// that an error lists.
const (
	maxSameBeginning = 200
	maxCandidates    = 10
)

// Resolve returns the full id of a short id (see [gatehouse.ShortID]), and any other
// id unchanged. Only ids that the caller may read count. Without a match, the error
// has code not_found. With several, or with maxSameBeginning ids or more that begin
// alike, it has code ambiguous_id, and lists the first matches as candidates.
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
	switch unchecked := len(ids) == maxSameBeginning; {
	case unchecked:
	case len(found) == 0:
		return "", gatehouse.E(gatehouse.CodeNotFound, "no %s %s", kind, gatehouse.QuoteWord(id))
	case len(found) == 1:
		return found[0], nil
	}
	return "", gatehouse.E(gatehouse.CodeAmbiguousID, "several ids begin with %s: give a longer part", prefix).
		With("candidates", found[:min(len(found), maxCandidates)])
}
