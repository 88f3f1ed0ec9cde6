package runs

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// HookVerifier authenticates webhooks.
type HookVerifier interface {
	// Verify checks the signature of a delivery by the kind's rules and the
	// named secret, and returns the delivery's own id, "" for none, and the
	// run's input. A wrong signature is an error with code bad_signature.
	Verify(kind, secret string, h http.Header, body []byte, now time.Time) (delivery string, input gatehouse.JSON,
		err error)
}

// badSignature is the answer to a wrong signature, and also to a delivery for a workflow that does
// not exist or has no webhook, so that the answer does not reveal which workflows exist.
func badSignature() *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeBadSignature, "the signature of this delivery does not belong to the workflow")
}

// Receive starts a run for a webhook. The signature proves the sender. If an earlier delivery had
// the same id, or the same ref when the workflow computes one, Receive returns its run.
func (r *Runs) Receive(
	ctx context.Context, tenant, name string, h http.Header, body []byte,
) (*gatehouse.Run, bool, error) {
	if tenant == "" {
		tenant = gatehouse.DefaultTenant
	}

	var hook *workflow.Webhook
	var now time.Time
	err := r.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
		now = tx.Now()
		w, err := tx.FindWorkflow(name, 0)
		if err != nil {
			return err
		}
		def, err := r.definition(tx, tenant, name, w.Version)
		if err == nil {
			hook = def.On.Webhook
		}
		return err
	})
	switch {
	case isNotFound(err), err == nil && (hook == nil || r.config.Hooks == nil):
		return nil, false, badSignature()
	case err != nil:
		return nil, false, err
	}

	delivery, input, err := r.config.Hooks.Verify(hook.Kind, hook.Secret, h, body, now)
	switch gatehouse.CodeOf(err) {
	case "", gatehouse.CodeMalformed:
	default:
		r.Log.WarnContext(ctx, "a webhook was refused", "tenant", tenant, "workflow", name, "error", err)
		return nil, false, badSignature().Because(err)
	}
	if err != nil {
		return nil, false, err // the signature is right, but the body is not JSON
	}

	ref := delivery
	if hook.Ref != nil {
		value, err := hook.Ref.Value(
			&workflow.Scope{Input: input, Run: &gatehouse.Run{Tenant: tenant, Workflow: name}, Now: now})
		if err != nil {
			return nil, false, gatehouse.E(gatehouse.CodeInvalid, "the workflow's ref cannot be computed from this delivery: "+
				"%v", err)
		}
		text, _ := value.Text()
		switch {
		case text != "":
			ref = text
		case value != `""` && value != "null": // without a value, the delivery's own id remains
			ref = string(value)
		}
	}
	if len(ref) > maxRef || strings.ContainsRune(ref, 0) {
		return nil, false,
			gatehouse.E(gatehouse.CodeInvalid, "the delivery's ref is longer than %d bytes, or contains a NUL", maxRef)
	}
	if ref != "" {
		ref = "webhook:" + ref
	}

	system := &gatehouse.Caller{Principal: &gatehouse.Principal{Tenant: tenant, ID: "system", Name: "webhook"}}
	return r.start(ctx, system, name, input, origin{trigger: gatehouse.TriggerWebhook, ref: ref, actor: "webhook"})
}
