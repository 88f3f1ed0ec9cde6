package stepfunctions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// exchange is a request and its answer.
type exchange struct {
	request *rest.Request
	answer  *rest.Answer
	doc     gatehouse.JSON
}

// do calls an action of the API once (AWS JSON 1.0).
func (c *Connector) do(ctx context.Context, action string, body gatehouse.JSON) (*exchange, *connector.Error) {
	u := *c.endpoint
	r := rest.NewRequest(http.MethodPost, &u)
	r.Body, r.HasBody = []byte(body), true
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AWSStepFunctions."+action)
	r.Header.Set("User-Agent", "gatehouse")
	x := &exchange{request: r}
	if err := c.sign(ctx, r); err != nil {
		failure := rest.NotSent("signature", "the request could not be signed")
		failure.Err = err
		return x, failure
	}
	a, err := c.hold.Send(ctx, c.client, r)
	if err != nil {
		return x, rest.Unanswered(ctx, err)
	}
	x.answer, x.doc = a, a.JSON()
	return x, nil
}

// sign adds the headers of Signature Version 4.
func (c *Connector) sign(ctx context.Context, r *rest.Request) error {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return err
	}
	req.Header = r.Header.Clone()
	sum := sha256.Sum256(r.Body)
	if err := c.signer.SignHTTP(ctx, c.credentials, req, hex.EncodeToString(sum[:]), "states", c.cfg.Region,
		time.Now()); err != nil {
		return err
	}
	for name := range req.Header {
		switch value := req.Header.Get(name); name {
		case "Authorization", "X-Amz-Security-Token":
			r.SetSecret(name, value)
		default:
			r.Header.Set(name, value)
		}
	}
	return nil
}

// ask calls an action that changes nothing.
func (c *Connector) ask(ctx context.Context, action string, body gatehouse.JSON) (*exchange, *connector.Error) {
	x, failure := c.do(ctx, action, body)
	if failure != nil && failure.Kind == connector.Ambiguous {
		failure.Kind = connector.Transient
	}
	return x, failure
}

// errorName is the name of an error: the part of __type after the prefix.
func errorName(doc gatehouse.JSON) string {
	kind := rest.Text(doc, "__type")
	return kind[strings.LastIndexByte(kind, '#')+1:]
}

// meanings maps the names of AWS errors to Gatehouse's kinds and codes. For other names, refusal
// goes by the status.
var meanings = map[string]struct {
	kind connector.Kind
	code string
}{
	"ThrottlingException":         {connector.Transient, "rate_limited"},
	"Throttling":                  {connector.Transient, "rate_limited"},
	"TooManyRequestsException":    {connector.Transient, "rate_limited"},
	"RequestLimitExceeded":        {connector.Transient, "rate_limited"},
	"KmsThrottlingException":      {connector.Transient, "rate_limited"},
	"ExecutionLimitExceeded":      {connector.Transient, "execution_limit"},
	"StateMachineDoesNotExist":    {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"StateMachineDeleting":        {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"ExecutionDoesNotExist":       {connector.Terminal, string(gatehouse.CodeTargetChanged)},
	"InvalidToken":                {connector.Terminal, "invalid_token"},
	"InvalidOutput":               {connector.Terminal, "invalid_output"},
	"InvalidExecutionInput":       {connector.Terminal, "invalid_input"},
	"KmsAccessDeniedException":    {connector.Terminal, "kms_access_denied"},
	"KmsInvalidStateException":    {connector.Terminal, "kms_invalid_state"},
	"AccessDeniedException":       {connector.Terminal, "access_denied"},
	"ExpiredTokenException":       {connector.Terminal, "credentials_expired"},
	"UnrecognizedClientException": {connector.Terminal, "credentials_refused"},
	"InvalidSignatureException":   {connector.Terminal, "signature_refused"},
	"RequestExpired":              {connector.Terminal, "signature_refused"},
}

// refusal classifies an unsuccessful answer.
func (x *exchange) refusal() *connector.Error {
	a, name := x.answer, errorName(x.doc)
	e := &connector.Error{
		Code: "http_" + strconv.Itoa(a.Status), Detail: a.Describe(), Says: a.Text(x.doc),
		RetryAfter: rest.RetryAfter(a.Header),
	}
	if name != "" {
		e.Detail += ", " + gatehouse.Quote(name)
	}
	m, ok := meanings[name]
	switch {
	case ok && a.Status < 500:
		e.Kind, e.Code = m.kind, m.code
	case ok && m.kind == connector.Transient: // some actions answer throttling with 503
		e.Kind, e.Code = m.kind, m.code
	case a.Status == http.StatusTooManyRequests:
		e.Kind, e.Code = connector.Transient, "rate_limited"
	case a.Status == http.StatusRequestTimeout:
		// The answer does not say whether anything was done.
	case a.Status >= 300 && a.Status < 500:
		e.Kind = connector.Terminal
	}
	if e.Code == "signature_refused" {
		a.ClockSkew(e)
	}
	return e
}
