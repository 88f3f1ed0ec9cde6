package dispatch

import (
	"errors"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Everything that a connector or a worker returns passes through here before it
// is stored, logged, traced or shown. Connectors need not remove secrets
// themselves.

// WithSecrets returns a new registry with the same targets, and with a redactor that removes the
// secrets from everything their connectors return; see [connector.Redactor].
func (r *Registry) WithSecrets(secrets []string) *Registry {
	out := &Registry{}
	out.state.Store(&registered{targets: r.snapshot().targets, redactor: connector.NewRedactor(secrets)})
	return out
}

// RedactText removes the secrets from a text that came from outside.
func (r *Registry) RedactText(s string) string { return r.redactor().Text(s) }

// RedactJSON removes the secrets from a JSON value.
func (r *Registry) RedactJSON(j gatehouse.JSON) gatehouse.JSON { return r.redactor().JSON(j) }

// redactResult removes the secrets from a result. A reversal that contains a
// secret is dropped, and the receipt says so: without the secret, the reversal
// would be another change.
func (r *Registry) redactResult(res connector.Result) connector.Result {
	if res.Reversal != nil && r.holdsSecret(res.Reversal) {
		res.Reversal = nil
		res.ResponseMetadata = withMetadata(res.ResponseMetadata, gatehouse.Member{
			Name: "reversal_left_out", Value: gatehouse.StringJSON("it holds a secret of this server"),
		})
	}
	if r.redactor() == nil {
		return res
	}
	res.ExternalID = r.redactor().Text(res.ExternalID)
	res.RequestMetadata = r.redactor().JSON(res.RequestMetadata)
	res.ResponseMetadata = r.redactor().JSON(res.ResponseMetadata)
	return res
}

// holdsSecret reports whether a reversal contains a secret anywhere, or the mark of a secret that its connector has
// redacted.
func (r *Registry) holdsSecret(v *gatehouse.Reversal) bool {
	t := v.Target
	return strings.Contains(string(gatehouse.MustJSON(v)), connector.Redacted) ||
		r.redactor().Finds(v.Operation, t.EntityType, t.EntityRef, t.Version) || r.redactor().Finds(t.EntityRefs...) ||
		r.redactor().FindsJSON(v.CurrentState) || r.redactor().FindsJSON(v.ProposedChange)
}

// withMetadata sets a member of a receipt's metadata.
func withMetadata(metadata gatehouse.JSON, m gatehouse.Member) gatehouse.JSON {
	members, err := metadata.Fields()
	if err != nil && metadata != "" {
		members = []gatehouse.Member{{Name: "response", Value: metadata}}
	}
	for i := range members {
		if members[i].Name == m.Name {
			members[i] = m
			return gatehouse.ObjectJSON(members...)
		}
	}
	return gatehouse.ObjectJSON(append(members, m)...)
}

// redactError removes the secrets from a failure and its cause.
func (r *Registry) redactError(e *connector.Error) *connector.Error {
	if e == nil || r.redactor() == nil {
		return e
	}
	out := *e
	out.Code, out.Detail, out.Says = r.redactor().Text(e.Code), r.redactor().Text(e.Detail), r.redactor().Text(e.Says)
	if e.Err != nil {
		if text := e.Err.Error(); r.redactor().Text(text) != text {
			out.Err = errors.New(r.redactor().Text(text))
		}
	}
	return &out
}

// redactState removes the secrets from the result of a check.
func (r *Registry) redactState(s connector.State) connector.State {
	s.Expected, s.Actual = r.redactor().JSON(s.Expected), r.redactor().JSON(s.Actual)
	return s
}

// redactRefusal removes the secrets from a validator's error.
func (r *Registry) redactRefusal(err error) error {
	var e *gatehouse.Error
	switch {
	case err == nil || r.redactor() == nil:
		return err
	case errors.As(err, &e):
		out := gatehouse.E(e.Code, "%s", r.redactor().Text(e.Detail))
		out.Context, out.RetryAfter = e.Context, e.RetryAfter
		for _, v := range e.Violations {
			v.Pointer, v.Detail = r.redactor().Text(v.Pointer), r.redactor().Text(v.Detail)
			out.Violations = append(out.Violations, v)
		}
		return out
	case r.redactor().Finds(err.Error()):
		return errors.New(r.redactor().Text(err.Error()))
	}
	return err
}
