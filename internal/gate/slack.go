package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// TopicSlack is notified when a click was stored, TopicCards when a posted card
// must be written again.
const (
	TopicSlack = "slack"
	TopicCards = "cards"
)

// The results of a click, besides the codes of decisions and errors.
const (
	SlackNotLinked       = "not_linked"
	SlackOpenInGatehouse = "open_in_gatehouse"
)

// slackRoute is the route under which the results of clicks are stored.
const slackRoute = "slack"

// StoreSlackClick stores a click before Slack gets its answer. It sets ID,
// CreatedAt and DueAt. A repeated delivery of the same interaction stores nothing.
func (g *Gate) StoreSlackClick(ctx context.Context, c *gatehouse.SlackClick) error {
	c.ID = NewID("clk")
	err := g.Store.Update(ctx, c.Tenant, func(tx gatehouse.Tx) error {
		now := tx.Now()
		c.CreatedAt, c.DueAt = now, &now
		if err := tx.InsertSlackClick(c); err != nil {
			return err
		}
		return tx.TouchCards(c.ActionID)
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	g.Hints.Notify(TopicSlack)
	g.Hints.Notify(TopicCards)
	return nil
}

// SlackUpTo returns the highest level that may be decided from Slack under a
// tenant's active policy; 0 when no policy loads.
func (g *Gate) SlackUpTo(tx gatehouse.PolicyReader, tenant string) (gatehouse.RiskLevel, error) {
	p, _, _, err := g.activePolicy(tx, tenant)
	if err != nil || p == nil {
		return 0, err
	}
	return min(p.SlackUpTo(), gatehouse.L3), nil
}

// SlackLinked reports whether a Slack user is linked to anybody in a tenant.
func (g *Gate) SlackLinked(ctx context.Context, tenant, issuer, user string) (linked bool, err error) {
	err = g.Store.Read(ctx, tenant, func(tx gatehouse.ReadTx) error {
		_, err := tx.FindIdentity(issuer, user)
		linked = err == nil
		if errors.Is(err, gatehouse.ErrNotFound) {
			return nil
		}
		return err
	})
	return linked, err
}

// CarryOutSlackClick makes the decision of a stored click, by the same path as
// every decision, as the person to whom the Slack user is linked. It may be called
// again for the same click, and then returns the first answer. result is a code,
// text the reply to the person. After an error the outcome is unknown, and the
// click must be carried out again.
func (g *Gate) CarryOutSlackClick(ctx context.Context, c *gatehouse.SlackClick) (result, text string, err error) {
	var (
		person *gatehouse.Principal
		action *gatehouse.Action
		upTo   gatehouse.RiskLevel
	)
	err = g.Store.View(ctx, c.Tenant, func(tx gatehouse.ReadTx) error {
		person, action, upTo = nil, nil, 0
		i, err := tx.FindIdentity(c.Issuer, c.User)
		if err != nil {
			return notLinked(err)
		}
		if person, err = tx.FindPrincipal(i.PrincipalID); err != nil {
			return notLinked(err)
		}
		if action, err = tx.FindAction(c.ActionID); err != nil {
			return usecase.NotFound(err, "action")
		}
		upTo, err = g.SlackUpTo(tx, c.Tenant)
		return err
	})
	if err == nil {
		err = slackMay(c, person, action, upTo)
	}
	if err != nil {
		return slackOutcome(err)
	}

	sum := sha256.Sum256([]byte(strings.Join([]string{c.ActionID, c.Digest, string(c.Choice), c.Reason}, "\x00")))
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{
		Principal: person, StepUp: true, Via: gatehouse.ViaSlack, RequestID: c.ID,
		Idempotency: &gatehouse.IdempotencyRequest{
			Key: c.ID, Route: slackRoute, BodyHash: sum,
			Encode: func(result any) ([]byte, error) { return json.Marshal(slackAnswerOf(result)) },
		},
	})

	answer, err := g.Decide(ctx, action.ID, gatehouse.Decision{
		Decision: c.Choice, Notes: c.Reason, Digest: action.Digest,
	})
	var before *gatehouse.Replay
	switch {
	case errors.As(err, &before):
		var a slackAnswer
		if err := json.Unmarshal(before.Body, &a); err != nil {
			return "", "", err
		}
		return a.Code, a.text(c.Choice), nil
	case err != nil:
		return slackOutcome(err)
	}

	a := slackAnswerOf(answer)
	return a.Code, a.text(c.Choice), nil
}

// slackMay checks the limits of deciding from Slack.
func slackMay(
	c *gatehouse.SlackClick, person *gatehouse.Principal, a *gatehouse.Action, upTo gatehouse.RiskLevel,
) error {
	if person.Disabled {
		return gatehouse.E(gatehouse.CodeUnauthenticated, "your account in Gatehouse is disabled")
	}
	if len(c.Digest) != gatehouse.DigestPrefix || !strings.HasPrefix(string(a.Digest), c.Digest) {
		return gatehouse.E(gatehouse.CodeDigestMismatch, "this card is outdated: it shows an earlier question")
	}
	if a.Status == gatehouse.StatusPending && a.RiskLevel > upTo {
		return gatehouse.E(SlackOpenInGatehouse, "%s is decided in Gatehouse, not from Slack", a.RiskLevel)
	}
	return nil
}

func notLinked(err error) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(SlackNotLinked, "")
	}
	return err
}

// slackAnswer is the part of a decision's answer that is stored.
type slackAnswer struct {
	Code     string `json:"code"`
	Votes    int    `json:"votes,omitempty"`
	Required int    `json:"required,omitempty"`
}

func slackAnswerOf(result any) slackAnswer {
	a, ok := result.(*gatehouse.Answer)
	if !ok {
		return slackAnswer{Code: gatehouse.Decided}
	}
	return slackAnswer{Code: a.Code, Votes: a.Votes, Required: a.Required}
}

func (a slackAnswer) text(choice gatehouse.DecisionKind) string {
	switch a.Code {
	case gatehouse.Decided:
		return "Recorded: you " + string(choice) + " it."
	case gatehouse.VoteRecorded:
		return "Recorded: your approval counts, " + strconv.Itoa(a.Votes) + " of " + strconv.Itoa(a.Required) + "."
	}
	return "Already " + string(choice) + "; nothing was changed."
}

// slackOutcome tells a person why a click had no effect. A temporary failure is
// returned as failed.
func slackOutcome(err error) (result, text string, failed error) {
	e := new(gatehouse.Error)
	if !errors.As(err, &e) || e.Code.Retryable() {
		return "", "", err
	}
	switch e.Code {
	case SlackNotLinked:
		text = "Your Slack account is not linked to a Gatehouse account, and your answer was not recorded. " +
			"To link it, sign in to Gatehouse, make a code under Settings, and enter it here with the app's command."
	case gatehouse.CodeNotFound:
		text = "The action of this card no longer exists."
	case gatehouse.CodeExpired:
		text = "Already resolved or expired: nobody decided in time, and your answer was not recorded."
	case gatehouse.CodeAlreadyDecided:
		text = "Already resolved or expired: your answer was not recorded."
		if by, ok := e.Context["superseded_by"].(string); ok && by != "" {
			text = "There is a newer revision of this proposal. Your answer was not recorded."
		}
	case gatehouse.CodeRoleRequired, gatehouse.CodeSelfApproval, gatehouse.CodeAuthorityRevoked:
		text = "You may not decide this: " + e.Detail + ". Your answer was not recorded."
	default:
		text = "Your answer was not recorded: " + e.Detail + "."
	}
	return string(e.Code), text, nil
}
