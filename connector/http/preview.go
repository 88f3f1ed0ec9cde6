package httpconn

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.Previewer = (*Connector)(nil)

// preview compiles the dry run of an operation as a separate operation, which Execute cannot
// select.
func (b *builder) preview(at string, op *operation, common []header) {
	cfg := op.cfg.Preview
	if cfg == nil {
		return
	}
	dry := *op
	dry.method = cmp.Or(cfg.Method, op.method)
	switch dry.method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		b.fail(at+".method", errors.New("must be GET, POST, PUT, PATCH or DELETE"))
	}
	if dry.method == op.method && cfg.Path == op.cfg.Path && len(cfg.Headers) == 0 && cfg.Body == "" {
		b.fail(at, errors.New("is the operation's own request, which would carry the change out"))
	}
	dry.path = b.path(at+".path", cfg.Path, op.cfg.EncodeSlashes)
	if cfg.Body != "" {
		dry.body, dry.noBody = nil, false
		dry.cfg.Body, dry.cfg.Method = cfg.Body, dry.method
		b.body(at+".body", &dry)
	}
	if dry.method == http.MethodGet && (cfg.Body == "" || cfg.Body == "none") {
		dry.body, dry.noBody, dry.cfg.Body = nil, true, "none"
	}
	dry.headers = append(headers(nil), common...)
	if !dry.noBody {
		dry.headers.set(header{name: "Content-Type", value: template{{literal: "application/json"}}})
	}
	b.headers(&dry.headers, at+".headers", cfg.Headers)
	b.pointer(at+".after", &cfg.After)
	b.pointer(at+".before", cfg.Before)
	b.pointer(at+".rows", cfg.Rows)
	b.pointer(at+".failure", cfg.Failure)
	op.preview = &dry
}

// Previews implements [connector.Previewer]: the operation's configuration has a preview.
func (c *Connector) Previews(call connector.Call) bool {
	op, ok := c.operations[call.Operation]
	return ok && op.preview != nil
}

// Preview implements [connector.Previewer] by the dry run that the operator has configured.
func (c *Connector) Preview(ctx context.Context, call connector.Call) (gatehouse.Preview, error) {
	op, ok := c.operations[call.Operation]
	if !ok || op.preview == nil {
		return gatehouse.Preview{None: "the operation has no preview"}, nil
	}
	dry := call
	dry.IdempotencyKey = "preview of " + call.IdempotencyKey
	d, err := c.request(op.preview, dry)
	if err != nil {
		return connector.PreviewOfError(rest.Invalid(err))
	}
	ctx, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	a, failed := c.read(ctx, d)
	if failed != nil {
		return gatehouse.Preview{}, failed
	}
	if a.Status < 200 || a.Status > 299 {
		e := op.byDefault(a)
		if e == nil || e.Kind == connector.Ambiguous {
			e = &connector.Error{Kind: connector.Transient, Code: "preview_failed", Detail: a.Describe()}
		}
		e.Says = a.Text(a.JSON())
		return connector.PreviewOfError(e)
	}
	doc := answerBody{a.JSON()}
	if doc.json == "" && op.cfg.Preview.describes() {
		return gatehouse.Preview{}, &connector.Error{
			Kind: connector.Transient, Code: "preview_failed", Detail: a.Describe() + ", but without valid JSON",
		}
	}
	return op.previewed(call, a, doc), nil
}

// describes reports whether the configuration points into the answer's body.
func (p *Preview) describes() bool {
	return p.After != "" || p.Before != nil || p.Rows != nil || p.Failure != nil
}

// previewed reads the answer to a dry run. Fields that the change does not name are reported only if
// the configuration has Before.
func (op *operation) previewed(call connector.Call, a *rest.Answer, doc answerBody) gatehouse.Preview {
	cfg := op.cfg.Preview
	if cfg.Failure != nil {
		if j, ok := doc.at(*cfg.Failure); ok && !blank(j) {
			return gatehouse.Preview{Failure: &gatehouse.PreviewFailure{
				Code: "refused", Detail: a.Describe() + ", and would refuse the change", TargetSays: plain(j),
			}}
		}
	}
	var out gatehouse.Preview
	if cfg.Rows != nil {
		if j, ok := doc.at(*cfg.Rows); ok {
			if n, err := strconv.Atoi(plain(j)); err == nil && n >= 0 {
				out.Rows = n
			}
		}
	}
	after, ok := doc.at(cfg.After)
	if !ok || !after.IsObject() || !call.ProposedChange.IsObject() {
		return out
	}
	var before gatehouse.JSON
	if cfg.Before != nil {
		before, _ = doc.at(*cfg.Before)
	} else {
		before, after = only(call.ProposedChange, call.CurrentState), only(call.ProposedChange, after)
	}
	out.Changes = connector.PreviewChanges("", before, after, call.ProposedChange, sameValue)
	for _, ch := range out.Changes {
		out.Differs = out.Differs || ch.How == gatehouse.PreviewDiffers
	}
	return out
}

// only reduces an object to the members that the change has.
func only(change, object gatehouse.JSON) gatehouse.JSON {
	fields, _ := change.Fields()
	var out []gatehouse.Member
	for _, f := range fields {
		if v, ok := object.Get(f.Name); ok {
			out = append(out, gatehouse.Member{Name: f.Name, Value: v})
		}
	}
	return gatehouse.ObjectJSON(out...)
}

// sameValue compares values; a number may come back as a string.
func sameValue(proposed, after gatehouse.JSON) bool {
	if proposed.Equal(after) || plain(proposed) == plain(after) {
		return true
	}
	x, errX := gatehouse.ParseDecimal(plain(proposed))
	y, errY := gatehouse.ParseDecimal(plain(after))
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

func blank(j gatehouse.JSON) bool {
	switch j {
	case "null", "false", `""`, "[]", "{}", "0":
		return true
	}
	return false
}
