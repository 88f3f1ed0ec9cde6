package httpconn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// draft is a request with all places filled.
type draft struct {
	method  string
	url     *url.URL
	header  http.Header
	secret  map[string]bool // names of headers whose values are not shown
	body    []byte
	hasBody bool
}

// draft fills the places of a path and headers. Errors are *missing.
func (c *Connector) draft(method string, path *pathTemplate, hs headers, v values) (*draft, error) {
	escaped, query, err := path.render(v)
	if err != nil {
		return nil, err
	}
	d := &draft{method: method, header: make(http.Header), secret: make(map[string]bool)}
	u := *c.base
	raw := c.base.EscapedPath() + escaped
	if u.Path, err = url.PathUnescape(raw); err != nil {
		return nil, &missing{"/target", "makes a path that cannot be"}
	}
	u.RawPath, u.RawQuery = raw, query
	d.url = &u
	for _, h := range hs {
		if h.value == nil && h.secret != "" {
			d.header.Set(h.name, h.secret)
			d.secret[h.name] = true
			continue
		}
		s, err := h.value.render(v, asHeader)
		if err != nil {
			return nil, err
		}
		d.header.Set(h.name, s)
	}
	return d, nil
}

// request makes the draft of an operation's request.
func (c *Connector) request(op *operation, call connector.Call) (*draft, error) {
	if err := c.checkNames(op, call); err != nil {
		return nil, err
	}
	v := values{call: call}
	d, err := c.draft(op.method, op.path, op.headers, v)
	if err != nil {
		return nil, err
	}
	switch {
	case op.noBody:
		if op.cfg.Body == "" && call.ProposedChange != "{}" && call.ProposedChange != `{"deleted":true}` {
			return nil, &missing{"/proposed_change", `is not sent by this operation and must be {} or {"deleted": true}`}
		}
	case op.body != nil:
		j, err := op.body.render(v)
		if err != nil {
			return nil, err
		}
		d.body, d.hasBody = []byte(j), true
	default:
		d.body, d.hasBody = []byte(call.ProposedChange), true
	}
	if op.idempotency != "" && call.IdempotencyKey != "" {
		d.header.Set(op.idempotency, call.TargetKey())
	}
	if op.conditional != nil {
		value, err := op.conditional.value(v)
		if err != nil {
			return nil, err
		}
		d.header.Set(op.conditional.header, value)
	}
	return d, nil
}

// entityTag is RFC 9110, section 8.8.3, in ASCII.
var entityTag = regexp.MustCompile(`^(W/)?"[\x21\x23-\x7e]*"$`)

// value returns the condition. Of If-Match, a list or * would ask for less
// than the one version that was seen, so it is one entity-tag.
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
		return "", &missing{pointerOf(c.from), "must be one entity-tag"}
	}
	return `"` + s + `"`, nil
}

// metadata describes the request for the receipt. Secrets are left out.
func (d *draft) metadata() gatehouse.JSON {
	shown := make([]gatehouse.Member, 0, len(d.header))
	names := make([]string, 0, len(d.header))
	for name := range d.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := gatehouse.StringJSON(d.header.Get(name))
		if d.secret[name] {
			value = `"[redacted]"`
		}
		shown = append(shown, gatehouse.Member{Name: name, Value: value})
	}
	members := []gatehouse.Member{
		{Name: "method", Value: gatehouse.StringJSON(d.method)},
		{Name: "url", Value: gatehouse.StringJSON(d.url.String())},
		{Name: "headers", Value: gatehouse.ObjectJSON(shown...)},
	}
	if d.hasBody {
		sum := sha256.Sum256(d.body)
		members = append(members, gatehouse.Member{Name: "body_sha256", Value: gatehouse.StringJSON(hex.EncodeToString(sum[:]))},
			gatehouse.Member{Name: "body_bytes", Value: gatehouse.JSON(strconv.Itoa(len(d.body)))})
	}
	return gatehouse.ObjectJSON(members...)
}

// oneShot is a body that can be read once, whatever net/http would like.
type oneShot struct{ io.Reader }

func (oneShot) Close() error { return nil }

// http makes the request. It can be sent once.
func (d *draft) http(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, d.method, d.url.String(), nil)
	if err != nil {
		return nil, err
	}
	req.URL = d.url
	req.Header = d.header.Clone()
	if d.hasBody {
		req.Body, req.ContentLength = oneShot{bytes.NewReader(d.body)}, int64(len(d.body))
	}
	req.GetBody = nil
	return req, nil
}

// Validate implements [connector.Validator]: it fills every place of the
// request, and of the check and read-back, without sending anything.
func (c *Connector) Validate(call connector.Call) error {
	op, ok := c.operations[call.Operation]
	if !ok {
		return gatehouse.Violations{{Pointer: "/operation", Detail: "is not configured for this connector"}}.Err()
	}
	// A proposal may be looked at before the server has named it.
	for _, name := range []*string{&call.IdempotencyKey, &call.ActionID, &call.Tenant} {
		if *name == "" {
			*name = "unnamed"
		}
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

// invalid turns a *missing into an error with code invalid.
func invalid(err error) error {
	var m *missing
	if errors.As(err, &m) {
		return gatehouse.Violations{{Pointer: m.pointer, Detail: m.detail}}.Err()
	}
	return err
}
