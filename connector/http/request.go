package httpconn

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// draft fills in the path and the headers. Errors are *valueError.
func (c *Connector) draft(method string, path *pathTemplate, hs headers, v values) (*rest.Request, error) {
	escaped, query, err := path.render(v)
	if err != nil {
		return nil, err
	}
	d := rest.NewRequest(method, nil)
	u := *c.base
	raw := c.base.EscapedPath() + escaped
	if u.Path, err = url.PathUnescape(raw); err != nil {
		return nil, &valueError{"/target", "makes an invalid path"}
	}
	u.RawPath, u.RawQuery = raw, query
	d.URL = &u
	for _, h := range hs {
		if h.value == nil && h.secret != "" {
			d.SetSecret(h.name, h.secret)
			continue
		}
		s, err := h.value.render(v, asHeader)
		if err != nil {
			return nil, err
		}
		d.Header.Set(h.name, s)
	}
	return d, nil
}

// request makes an operation's request.
func (c *Connector) request(op *operation, call connector.Call) (*rest.Request, error) {
	if err := c.checkNames(op, call); err != nil {
		return nil, err
	}
	if op.shape != nil {
		if err := op.shape.Check("/proposed_change", call.ProposedChange).Err(); err != nil {
			return nil, err
		}
	}
	v := values{call: call}
	d, err := c.draft(op.method, op.path, op.headers, v)
	if err != nil {
		return nil, err
	}
	switch {
	case op.noBody:
		if op.cfg.Body == "" && call.ProposedChange != "{}" && call.ProposedChange != `{"deleted":true}` {
			return nil, &valueError{"/proposed_change",
				`must be {} or {"deleted": true}, because this operation does not send it`}
		}
	case op.body != nil:
		j, err := op.body.render(v)
		if err != nil {
			return nil, err
		}
		d.Body, d.HasBody = []byte(j), true
	default:
		d.Body, d.HasBody = []byte(call.ProposedChange), true
	}
	if op.idempotency != "" && call.IdempotencyKey != "" {
		d.Header.Set(op.idempotency, call.TargetKey())
	}
	if op.conditional != nil {
		value, err := op.conditional.value(v)
		if err != nil {
			return nil, err
		}
		d.Header.Set(op.conditional.header, value)
	}
	return d, nil
}

// entityTag is the syntax of RFC 9110, section 8.8.3, limited to ASCII.
var entityTag = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7e]*"$`)

// value returns the condition. For If-Match it must be a single entity-tag: a list or * would match
// more than the version that was reviewed.
func (c *conditional) value(v values) (string, error) {
	s, err := v.text(c.from)
	if err != nil {
		return "", err
	}
	if s, err = asHeader(c.from, s); err != nil {
		return "", err
	}
	if c.header != "If-Match" || entityTag.MatchString(s) {
		return s, nil
	}
	if strings.ContainsAny(s, `" `) {
		return "", &valueError{pointerOf(c.from), "must be one entity-tag"}
	}
	return `"` + s + `"`, nil
}

// Validate implements [connector.Validator]: it fills in the request, the check and the read-back,
// without sending anything.
func (c *Connector) Validate(call connector.Call) error {
	op, ok := c.operations[call.Operation]
	if !ok {
		return gatehouse.Violations{{Pointer: "/operation", Detail: "is not configured for this connector"}}.Err()
	}
	// A proposal may be validated before the server has assigned these values.
	for _, name := range []*string{&call.IdempotencyKey, &call.ActionID, &call.Tenant} {
		if *name == "" {
			*name = "unnamed"
		}
	}
	if call.Digest == "" {
		call.Digest = "unnamed"
	}
	_, err := c.request(op, call)
	if err == nil && op.check != nil {
		_, err = c.draft(http.MethodGet, op.check.path, op.check.headers, values{call: call})
	}
	if err == nil && op.readBack != nil {
		_, err = c.draft(http.MethodGet, op.readBack.path, op.readBack.headers, values{call: call})
	}
	return invalid(err)
}

// invalid turns a *valueError into an error with code invalid.
func invalid(err error) error {
	var m *valueError
	if errors.As(err, &m) {
		return gatehouse.Violations{{Pointer: m.pointer, Detail: m.detail}}.Err()
	}
	return err
}
