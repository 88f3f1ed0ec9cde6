package dispatch

import (
	"errors"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Everything that a connector or a worker returns passes through here before it
// is stored, logged, traced or shown. Connectors need not remove secrets
// themselves.
//
// A text that a caller supplied loses whole secrets only. If it also lost the
// beginnings of secrets, the caller could read a secret byte by byte. Connectors
// repeat the caller's text in refusals, details, request metadata, expected values
// and previews; a worker is the caller of its report. Only what a connector of this
// process has cut off from a target's own text also loses the beginning of a
// secret: see redactCutEnds.

// Secrets are the secrets to redact, by tenant: those of [AllTenants] are redacted in the data of every tenant,
// those of a tenant only in the data of this tenant. Otherwise the administrator of one tenant could make ordinary
// words illegible in the data of another.
type Secrets map[string][]string

// redactors makes the redactor of each tenant.
func (s Secrets) redactors() map[string]*connector.Redactor {
	out := map[string]*connector.Redactor{AllTenants: connector.NewRedactor(s[AllTenants])}
	for tenant, own := range s {
		if tenant != AllTenants {
			out[tenant] = connector.NewRedactor(slices.Concat(s[AllTenants], own))
		}
	}
	return out
}

// WithSecrets returns a new registry with the same targets, and with a redactor that removes the
// secrets from everything their connectors return, for each tenant; see [connector.Redactor].
func (r *Registry) WithSecrets(secrets []string) *Registry {
	out := &Registry{}
	out.state.Store(&registered{
		targets: r.snapshot().targets, redactors: Secrets{AllTenants: secrets}.redactors(),
	})
	return out
}

// redactor returns the redactor for the data of a tenant.
func (r *Registry) redactor(tenant string) *connector.Redactor {
	all := r.snapshot().redactors
	if own, ok := all[tenant]; ok {
		return own
	}
	return all[AllTenants]
}

// RedactText removes whole secrets from a text of a tenant that came from outside.
func (r *Registry) RedactText(tenant, s string) string { return r.redactor(tenant).Text(s) }

// RedactTarget is RedactText for what a target says to its operator. Only a target of a single tenant can have secrets
// of a tenant.
func (r *Registry) RedactTarget(t Target, s string) string {
	if len(t.Tenants) > 0 {
		return r.RedactText(t.Tenants[0], s)
	}
	return r.RedactText(gatehouse.DefaultTenant, s)
}

// RedactJSON removes whole secrets from a JSON value of a tenant.
func (r *Registry) RedactJSON(tenant string, j gatehouse.JSON) gatehouse.JSON {
	return r.redactor(tenant).JSON(j)
}

// redactCall removes the secrets from what a connector of this process returns.
func redactCall(
	by *connector.Redactor, res connector.Result, failure *connector.Error,
) (connector.Result, *connector.Error) {
	res = redactResult(by, res)
	res.ResponseMetadata = redactCutEnds(by, res.ResponseMetadata)
	return res, redactFailure(by, failure)
}

// redactFailure removes the secrets from a failure that a connector of this process returns.
func redactFailure(by *connector.Redactor, e *connector.Error) *connector.Error {
	out := redactError(by, e)
	if out == nil || by == nil {
		return out
	}
	repeated := out.Detail == out.Says
	out.Says = redactCutEnd(by, out.Says)
	if repeated {
		out.Detail = out.Says
	}
	return out
}

// redactCutEnd removes the beginning of a secret from the end of a target's text that ends in an ellipsis.
func redactCutEnd(by *connector.Redactor, text string) string {
	if !strings.HasSuffix(text, connector.Ellipsis) {
		return text
	}
	return by.CutText(text)
}

// redactCutEnds is redactCutEnd for the texts that a connector may have cut off from an answer: a member of the
// metadata, such as the body, and each header. The strings within a body that is JSON are whole.
func redactCutEnds(by *connector.Redactor, metadata gatehouse.JSON) gatehouse.JSON {
	if by == nil {
		return metadata
	}
	if text, ok := metadata.Text(); ok {
		return gatehouse.StringJSON(redactCutEnd(by, text))
	}
	members, err := metadata.Fields()
	if err != nil {
		return metadata
	}
	for i, m := range members {
		if _, ok := m.Value.Text(); ok || m.Name == "headers" {
			members[i].Value = redactCutEnds(by, m.Value)
		}
	}
	return gatehouse.ObjectJSON(members...)
}

// redactResult removes whole secrets from a result. A reversal that contains a
// secret is dropped, and the receipt says so: without the secret, the reversal
// would be another change.
func redactResult(by *connector.Redactor, res connector.Result) connector.Result {
	if res.Reversal != nil && holdsSecret(by, res.Reversal) {
		res.Reversal = nil
		res.ResponseMetadata = withMetadata(res.ResponseMetadata, gatehouse.Member{
			Name: "reversal_left_out", Value: gatehouse.StringJSON("it holds a secret of this server"),
		})
	}
	res.ExternalID = by.Text(res.ExternalID)
	res.RequestMetadata, res.ResponseMetadata = by.JSON(res.RequestMetadata), by.JSON(res.ResponseMetadata)
	return res
}

// holdsSecret reports whether a reversal contains a secret anywhere, or the mark of a secret that its connector has
// redacted.
func holdsSecret(by *connector.Redactor, v *gatehouse.Reversal) bool {
	t := v.Target
	return strings.Contains(string(gatehouse.MustJSON(v)), connector.Redacted) ||
		by.Finds(v.Operation, t.EntityType, t.EntityRef, t.Version) || by.Finds(t.EntityRefs...) ||
		by.FindsJSON(v.CurrentState) || by.FindsJSON(v.ProposedChange)
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

// redactError removes whole secrets from a failure and its cause.
func redactError(by *connector.Redactor, e *connector.Error) *connector.Error {
	if e == nil || by == nil {
		return e
	}
	out := *e
	out.Code, out.Detail, out.Says = by.Text(e.Code), by.Text(e.Detail), by.Text(e.Says)
	if e.Err != nil {
		if text := e.Err.Error(); by.Finds(text) {
			out.Err = errors.New(by.Text(text))
		}
	}
	return &out
}

// redactState removes whole secrets from the result of a check.
func redactState(by *connector.Redactor, s connector.State) connector.State {
	s.Expected, s.Actual = by.JSON(s.Expected), by.JSON(s.Actual)
	return s
}

// redactRefusal removes whole secrets from a validator's error, which repeats the caller's text.
func redactRefusal(by *connector.Redactor, err error) error {
	var e *gatehouse.Error
	switch {
	case err == nil || by == nil:
		return err
	case errors.As(err, &e):
		out := gatehouse.E(e.Code, "%s", by.Text(e.Detail))
		out.Context, out.RetryAfter = e.Context, e.RetryAfter
		for _, v := range e.Violations {
			v.Pointer, v.Detail = by.Text(v.Pointer), by.Text(v.Detail)
			out.Violations = append(out.Violations, v)
		}
		return out
	case by.Finds(err.Error()):
		return errors.New(by.Text(err.Error()))
	}
	return err
}
