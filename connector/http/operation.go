package httpconn

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// operation is a compiled [Operation].
type operation struct {
	cfg         Operation
	class       connector.Class
	method      string
	path        *pathTemplate
	headers     headers
	body        *bodyTemplate // nil: the proposed change, or none
	noBody      bool
	shape       *jsonshape.Schema // of the proposed change; nil for any
	response    *jsonshape.Schema // of a successful answer; nil for any
	idempotency string
	conditional *conditional
	rules       []rule
	success     []StatusRange
	timeout     time.Duration
	check       *check
	readBack    *readBack
	preview     *operation // with the path, headers and body of the dry run
	reverse     *reverse
}

type conditional struct {
	header string
	from   string
}

type rule struct {
	status  []StatusRange
	json    *match
	applied bool
	kind    connector.Kind
	code    string
}

type match struct {
	pointer Pointer
	equals  *bodyTemplate
}

// source says where an answer has its version.
type source struct {
	header  string
	pointer *Pointer
}

type check struct {
	path    *pathTemplate
	headers headers
	version *source
	state   Pointer
}

type readBack struct {
	path    *pathTemplate
	headers headers
	status  []StatusRange
	json    *match
	change  *Pointer
	pages   *Pages // nil if the answer is not a list
	cfg     ReadBack
}

type reverse struct {
	operation string
	ref       template
	change    *bodyTemplate
	version   *source
}

func (b *builder) operation(name string, cfg Operation, common []header) *operation {
	at := "operations." + name
	op := &operation{cfg: cfg, class: cfg.Class, method: cfg.Method, success: cfg.Success}
	op.headers = append(op.headers, common...)
	switch op.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		b.fail(at+".method", errors.New("must be POST, PUT, PATCH or DELETE"))
	}
	op.path = b.path(at+".path", cfg.Path, cfg.EncodeSlashes)
	b.body(at+".body", op)
	op.shape = b.schema(at+".schema", cfg.Schema)
	op.response = b.schema(at+".response_schema", cfg.ResponseSchema)
	if !op.noBody {
		op.headers.set(header{name: "Content-Type", value: template{{literal: "application/json"}}})
	}
	b.headers(&op.headers, at+".headers", cfg.Headers)
	b.class(at, op)
	if op.success == nil {
		op.success = []StatusRange{{200, 299}}
	}
	for i, r := range cfg.Outcomes {
		op.rules = append(op.rules, b.rule(fmt.Sprintf("%s.outcomes[%d]", at, i), r))
	}
	b.pointer(at+".external_id", cfg.ExternalID)
	op.timeout = cfg.Timeout.D()
	if op.timeout == 0 {
		op.timeout = b.cfg.Timeout.D()
	}
	if op.timeout == 0 {
		op.timeout = defaultTimeout
	}
	b.fail(at+".amounts", gatehouse.CheckAmountFields(cfg.Amounts))
	b.levels(name, op)
	b.check(at+".check", op, common)
	b.readBack(at+".read_back", op, common)
	b.reverse(at+".reverse", op)
	b.preview(at+".preview", op, common)
	return op
}

func (b *builder) path(at, s string, encodeSlashes bool) *pathTemplate {
	p, err := parsePath(s, encodeSlashes)
	b.fail(at, err)
	return p
}

func (b *builder) body(at string, op *operation) {
	switch op.cfg.Body {
	case "":
		op.noBody = op.method == http.MethodDelete
	case "none":
		op.noBody = true
	default:
		var err error
		op.body, err = parseBody(op.cfg.Body)
		b.fail(at, err)
	}
}

// class compiles the settings that the operation's class requires: the idempotency header and the
// condition.
func (b *builder) class(at string, op *operation) {
	op.idempotency = op.cfg.IdempotencyHeader
	switch op.class {
	case connector.ClassA:
		if op.idempotency == "" {
			op.idempotency = "Idempotency-Key"
		}
	case connector.ClassB:
		if op.cfg.Conditional == nil {
			b.fail(at+".conditional", errors.New("is required for class B: the condition makes a second call fail"))
		}
	case connector.ClassC:
	case "":
		op.class = connector.ClassC
	default:
		b.fail(at+".class", errors.New("must be A, B or C"))
	}
	if op.idempotency != "" {
		op.idempotency = b.headerName(at+".idempotency_header", op.idempotency)
	}
	if c := op.cfg.Conditional; c != nil {
		op.conditional = &conditional{header: c.Header, from: c.From}
		if c.Header == "" {
			op.conditional.header = "If-Match"
		}
		if c.From == "" {
			op.conditional.from = "version"
		}
		op.conditional.header = b.headerName(at+".conditional.header", op.conditional.header)
		if err := knownName(op.conditional.from, false, nil); err != nil {
			b.fail(at+".conditional.from", err)
		}
	}
}

func (b *builder) rule(at string, cfg Rule) rule {
	r := rule{status: cfg.Status, code: cfg.Code, json: b.match(at+".json", cfg.JSON)}
	if len(cfg.Status) == 0 && cfg.JSON == nil {
		b.fail(at, errors.New("needs status or json"))
	}
	switch cfg.Outcome {
	case "applied":
		r.applied = true
	case "not_sent":
		r.kind = connector.NotSent
	case "transient":
		r.kind = connector.Transient
	case "terminal":
		r.kind = connector.Terminal
	case "ambiguous":
		r.kind = connector.Ambiguous
	default:
		b.fail(at+".outcome", errors.New("must be applied, transient, terminal, ambiguous or not_sent"))
	}
	if cfg.Code != "" && !gatehouse.ValidName(cfg.Code) {
		b.fail(at+".code", errors.New(gatehouse.NameRule))
	}
	return r
}

func (b *builder) match(at string, cfg *Match) *match {
	if cfg == nil {
		return nil
	}
	b.pointer(at+".pointer", &cfg.Pointer)
	m := &match{pointer: cfg.Pointer}
	if cfg.Equals == nil {
		return m
	}
	// A text that is not JSON, such as paid or {idempotency_key}, is a string.
	var err error
	if m.equals, err = parseBody(*cfg.Equals); err != nil {
		m.equals, err = newBody(gatehouse.StringJSON(*cfg.Equals), nil)
	}
	b.fail(at+".equals", err)
	return m
}

func (b *builder) pointer(at string, p *Pointer) {
	if p != nil && *p != "" && !strings.HasPrefix(string(*p), "/") {
		b.fail(at, errors.New("must be a JSON pointer such as /data/id"))
	}
}

func (b *builder) source(at, s string) *source {
	if s == "" {
		return nil
	}
	if name, ok := strings.CutPrefix(s, "header "); ok {
		return &source{header: http.CanonicalHeaderKey(strings.TrimSpace(name))}
	}
	p := Pointer(s)
	b.pointer(at, &p)
	return &source{pointer: &p}
}

func (b *builder) check(at string, op *operation, common []header) {
	cfg := op.cfg.Check
	if cfg == nil {
		return
	}
	op.check = &check{
		path: b.path(at+".path", cfg.Path, op.cfg.EncodeSlashes), version: b.source(at+".version", cfg.Version),
		state: cfg.State,
	}
	b.pointer(at+".state", &cfg.State)
	op.check.headers = append(op.check.headers, common...)
	b.headers(&op.check.headers, at+".headers", cfg.Headers)
}

func (b *builder) readBack(at string, op *operation, common []header) {
	cfg := op.cfg.ReadBack
	if cfg == nil {
		return
	}
	op.readBack = &readBack{
		path: b.path(at+".path", cfg.Path, op.cfg.EncodeSlashes), status: cfg.Status,
		json: b.match(at+".json", cfg.JSON), change: cfg.Change, cfg: *cfg,
	}
	if op.readBack.status == nil {
		op.readBack.status = []StatusRange{{200, 200}}
	}
	b.pointer(at+".change", cfg.Change)
	b.pointer(at+".external_id", cfg.ExternalID)
	if cfg.JSON == nil && cfg.Change == nil && !strings.Contains(cfg.Path, "{idempotency_key}") {
		b.fail(at, errors.New("needs json, change, or a path with {idempotency_key}: an answer alone proves nothing"))
	}
	b.pages(at+".pages", op.readBack)
	op.readBack.headers = append(op.readBack.headers, common...)
	b.headers(&op.readBack.headers, at+".headers", cfg.Headers)
}

func (b *builder) reverse(at string, op *operation) {
	cfg := op.cfg.Reverse
	if cfg == nil {
		return
	}
	if _, ok := b.cfg.Operations[cfg.Operation]; !ok {
		b.fail(at+".operation", fmt.Errorf("there is no operation %s", gatehouse.Quote(cfg.Operation)))
	}
	op.reverse = &reverse{operation: cfg.Operation, version: b.source(at+".version", cfg.Version)}
	var err error
	if cfg.EntityRef != "" {
		op.reverse.ref, err = parseTemplate(cfg.EntityRef, false, "external_id")
		b.fail(at+".entity_ref", err)
	}
	if cfg.Change != "" {
		op.reverse.change, err = parseBody(cfg.Change, "external_id")
		b.fail(at+".change", err)
		if err == nil && op.reverse.change.kind != '{' {
			b.fail(at+".change", errors.New("must be an object"))
		}
	}
}
