package gate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.SlackService = (*Gate)(nil)

// codeAlphabet has no characters that people confuse. A code of codeLength characters
// has 50 random bits.
const (
	codeAlphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
	codeLength   = 10
)

// slackLink is the data of a code.
type slackLink struct {
	Principal string `json:"principal"`
}

// CreateSlackCode makes a code for the caller. The code gives a way to decide, so
// it needs the same proof as every new credential.
func (g *Gate) CreateSlackCode(ctx context.Context) (*gatehouse.SlackCode, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	if c.Principal.Kind != gatehouse.KindPerson {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only a person has a Slack account")
	}
	raw := make([]byte, codeLength)
	_, _ = rand.Read(raw) // never fails
	for i, b := range raw {
		raw[i] = codeAlphabet[int(b)%len(codeAlphabet)]
	}
	data, err := json.Marshal(slackLink{c.Principal.ID})
	if err != nil {
		return nil, err
	}
	out := &gatehouse.SlackCode{Code: string(raw[:codeLength/2]) + "-" + string(raw[codeLength/2:])}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		if err := checkStepUp(tx, c); err != nil {
			return err
		}
		out.ExpiresAt = tx.Now().Add(gatehouse.SlackLinkTTL)
		return tx.InsertCeremony(&gatehouse.Ceremony{
			Hash: slackCodeHash(string(raw)), Tenant: c.Principal.Tenant, SessionID: c.Session.ID, Data: data,
			ExpiresAt: out.ExpiresAt,
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// slackCodeHash hashes a code regardless of case, spaces and hyphens.
func slackCodeHash(code string) [32]byte {
	kept := strings.Map(func(r rune) rune {
		if strings.ContainsRune(codeAlphabet, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	return sha256.Sum256([]byte("slack-link\x00" + kept))
}

// LinkSlack links a proven Slack user to the person who made a code, in one of the
// tenants that the app serves. text is the answer to the person.
func (g *Gate) LinkSlack(ctx context.Context, tenants []string, issuer, user, code string) (text string, err error) {
	err = g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		text = fmt.Sprintf("This code does not work: it was used, or is older than %d minutes. Make another under Settings.",
			int(gatehouse.SlackLinkTTL.Minutes()))
		made, err := q.TakeCeremony(slackCodeHash(code))
		if errors.Is(err, gatehouse.ErrNotFound) {
			return nil
		}
		if err != nil || !slices.Contains(tenants, made.Tenant) {
			return err
		}
		var l slackLink
		if err := json.Unmarshal(made.Data, &l); err != nil || l.Principal == "" {
			return err
		}

		tx := q.In(made.Tenant)
		s, err := tx.FindSessionByID(made.SessionID)
		if err != nil || !s.Live(tx.Now()) || s.PrincipalID != l.Principal {
			return ignoreMissing(err) // the person who made the code is signed out
		}
		p, err := tx.FindPrincipal(l.Principal)
		if err != nil || p.Disabled || p.Kind != gatehouse.KindPerson {
			return ignoreMissing(err)
		}

		known, err := tx.FindIdentity(issuer, user)
		switch {
		case err == nil && known.PrincipalID == p.ID:
			text = "You are already linked, as " + p.Name + "."
			return nil
		case err == nil:
			text = "This Slack account is linked to somebody else. They, or an administrator, can unlink it."
			return nil
		case !errors.Is(err, gatehouse.ErrNotFound):
			return err
		}
		text = "Linked: your answers from Slack count as those of " + p.Name + " in Gatehouse."
		return linkIdentity(
			tx,
			p,
			issuer,
			user,
			author{id: p.ID, name: p.Name, tenant: p.Tenant, via: gatehouse.ViaSlack},
		)
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil
	}
	return err
}

// UnlinkSlack removes one of the caller's links. A Slack account cannot sign in, so
// people who unlink one do not come back as second persons.
func (g *Gate) UnlinkSlack(ctx context.Context, issuer, subject string) error {
	c, err := browserCaller(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		i, err := tx.FindIdentity(issuer, subject)
		if err != nil {
			return err
		}
		if i.PrincipalID != c.Principal.ID || !strings.HasPrefix(issuer, gatehouse.SlackIssuer) {
			return gatehouse.ErrNotFound
		}
		if err := tx.DeleteIdentity(issuer, subject); err != nil {
			return err
		}
		return recordIdentity(tx, "identity.unlinked", c.Principal, issuer, subject, authorOf(c))
	})
	return usecase.NotFound(err, "identity")
}
