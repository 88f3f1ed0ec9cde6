package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/gatehouse-dev/gatehouse"
)

// Document returns the OpenAPI 3.1 document as JSON, generated from the table
// of routes.
func (s *Server) Document() ([]byte, error) {
	b, err := json.Marshal(document(s.routes, s.hookRoutes(), s.cfg.Reviews != nil, s.cfg.Build.Version))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, b, "", " ")
	return out.Bytes(), err
}

// hookRoutes returns the served routes for senders without a key.
func (s *Server) hookRoutes() (out []*route) {
	if s.cfg.Hooks != nil {
		out = append(out, &hookRoute)
	}
	if s.cfg.TargetHooks != nil {
		out = append(out, &targetHookRoute)
	}
	if s.cfg.Bounces != nil {
		out = append(out, &bounceRoute)
	}
	return out
}

func document(routes []route, hooks []*route, reviews bool, version string) *huma.OpenAPI {
	if version == "" {
		version = "dev"
	}
	r := newRegistry()
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Gatehouse", Version: version,
			Description: "The gate between AI agents and the systems that they change. Checks come in this order: " +
				"401, 429, 404, 403 role, 403 edit token, 429 for bulk decisions, 400/413/422, then the object's state.",
		},
		Servers: []*huma.Server{{URL: "/"}},
		Components: &huma.Components{
			Schemas: r,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "An API key, gth_…"},
				"editToken": {Type: "apiKey", In: "header", Name: "X-Edit-Token",
					Description: "A person's second secret, needed to decide and to change rights, credentials and rules."},
			},
		},
		Security: []map[string][]string{{"key": {}}},
	}
	for _, tag := range []string{
		tagActions, tagDecisions, tagDispatch, tagWorkflows, tagRuns, tagWorkers, tagPolicy, tagAudit, tagNotifications,
		tagAdmin, tagOps,
	} {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: tag})
	}
	var requests []reflect.Type
	for i := range routes {
		if routes[i].in != nil {
			requests = append(requests, routes[i].in)
		}
		doc.AddOperation(operation(r, &routes[i]))
	}
	for _, rt := range hooks {
		doc.AddOperation(operation(r, rt))
	}
	if reviews {
		requests = append(requests, typeOf[reviewBody]())
		for i := range reviewRoutes {
			op := operation(r, &reviewRoutes[i])
			op.RequestBody = nil
			if op.Method != http.MethodGet {
				op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{
					"application/json": {Schema: r.Schema(typeOf[reviewBody](), true, "")},
				}}
			}
			doc.AddOperation(op)
		}
	}
	for _, o := range opsDocs {
		doc.AddOperation(o(r))
	}
	finish(r, requests)
	completeProblem(r)
	return doc
}

func operation(r huma.Registry, rt *route) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: Prefix + rt.path, OperationID: rt.name,
		Tags: []string{rt.tag}, Summary: rt.summary, Description: rt.doc,
		Parameters: parameters(rt),
		Responses:  responses(r, rt),
		Extensions: map[string]any{},
	}
	if len(rt.roles) > 0 {
		op.Extensions["x-roles"] = words(rt.roles)
		op.Description += " Roles: " + anyOf(rt.roles) + "."
	}
	if rt.changesRights {
		op.Extensions["x-changes-rights"] = true
		op.Description += " Needs the edit token: it changes rights, credentials or rules."
	}
	if rt.token == tokenRequired {
		op.Security = []map[string][]string{{"key": {}, "editToken": {}}}
	}
	if rt.token == tokenOptional {
		op.Security = []map[string][]string{{"key": {}}, {"key": {}, "editToken": {}}}
	}
	if rt.open {
		op.Security = []map[string][]string{}
		op.RequestBody = &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{}}}}
	}
	if rt.in != nil {
		media := &huma.MediaType{Schema: r.Schema(rt.in, true, "")}
		if rt.example != "" {
			media.Example = json.RawMessage(rt.example)
		}
		op.RequestBody = &huma.RequestBody{
			Required: !rt.optional, Content: map[string]*huma.MediaType{"application/json": media},
		}
	}
	if rt.text {
		op.RequestBody.Content = map[string]*huma.MediaType{
			"application/yaml": {Schema: &huma.Schema{Type: "string"}, Example: rt.example},
			"application/json": {Schema: &huma.Schema{Type: "object"}},
		}
	}
	return op
}

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

func parameters(rt *route) []*huma.Param {
	var out []*huma.Param
	for _, m := range pathParam.FindAllStringSubmatch(rt.path, -1) {
		out = append(out, &huma.Param{Name: m[1], In: "path", Required: true, Schema: &huma.Schema{Type: "string"}})
	}
	for i := range rt.query {
		p := &rt.query[i]
		out = append(out, &huma.Param{Name: p.name, In: "query", Description: p.doc, Schema: p.schema()})
	}
	if rt.idempotent {
		low, high := 1, MaxIdempotencyKey
		out = append(out, &huma.Param{
			Name: "Idempotency-Key", In: "header",
			Description: "The same key with the same body answers 200 with the first body and Idempotency-Replayed: true, for " +
				"24 hours.",
			Schema: &huma.Schema{Type: "string", MinLength: &low, MaxLength: &high, Pattern: "^[ -~]+$"},
		})
	}
	return out
}

func (p *param) schema() *huma.Schema {
	switch p.kind {
	case paramInteger:
		low := float64(p.min)
		s := &huma.Schema{Type: "integer", Format: "int64", Minimum: &low}
		if p.max < 1<<53 {
			high := float64(p.max)
			s.Maximum = &high
		}
		return s
	case paramEnum:
		return enumeration(p.enum)()
	case paramTime:
		return &huma.Schema{Type: "string", Format: "date-time"}
	case paramWait:
		return scalars[typeOf[gatehouse.Duration]()]()
	}
	high := int(p.max)
	return &huma.Schema{Type: "string", MaxLength: &high}
}

func responses(r huma.Registry, rt *route) map[string]*huma.Response {
	ok := func(description string) *huma.Response {
		content := make(map[string]*huma.MediaType)
		if rt.out != nil {
			content["application/json"] = &huma.MediaType{Schema: r.Schema(rt.out, true, "")}
		}
		if rt.media != "" {
			content[rt.media] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
		}
		return &huma.Response{Description: description, Headers: commonHeaders(), Content: content}
	}
	out := map[string]*huma.Response{strconv.Itoa(rt.status): ok(http.StatusText(rt.status))}
	if (rt.replays || rt.idempotent) && rt.status != http.StatusOK {
		out["200"] = ok("The stored answer of an earlier request, an unchanged object, or a dry run.")
	}
	byStatus := make(map[int][]string)
	for _, code := range rt.allCodes() {
		status := gatehouse.StatusOf(code)
		byStatus[status] = append(byStatus[status], string(code))
	}
	for status, codes := range byStatus {
		slices.Sort(codes)
		out[strconv.Itoa(status)] = problemOf(status, codes...)
	}
	return out
}

// problemOf describes the error response with a status, whose code is one of codes.
func problemOf(status int, codes ...string) *huma.Response {
	headers := commonHeaders()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		headers["Retry-After"] = &huma.Header{Description: "Seconds.", Schema: &huma.Schema{Type: "integer"}}
	}
	return &huma.Response{
		Description: strings.Join(codes, ", "), Headers: headers,
		Content: map[string]*huma.MediaType{
			"application/problem+json": {Schema: &huma.Schema{Ref: schemaPrefix + "Problem"}}},
		Extensions: map[string]any{"x-codes": codes},
	}
}

func commonHeaders() map[string]*huma.Header {
	return map[string]*huma.Header{
		"X-Request-Id": {Description: "The id of this request; give it when you report a problem.",
			Schema: &huma.Schema{Type: "string"}}}
}

// allCodes returns the error codes of a route: its own, and those of its checks in
// the pipeline.
func (rt *route) allCodes() []gatehouse.Code {
	codes := append([]gatehouse.Code{
		gatehouse.CodeRateLimited, gatehouse.CodeBusy, gatehouse.CodeInternal, gatehouse.CodeInvalid,
	}, rt.codes...)
	if !rt.open {
		codes = append(codes, gatehouse.CodeUnauthenticated)
	}
	if len(rt.roles) > 0 {
		codes = append(codes, gatehouse.CodeRoleRequired)
	}
	if rt.object != "" {
		codes = append(codes, gatehouse.CodeNotFound)
	}
	if gatehouse.HasShortIDs(rt.object) {
		codes = append(codes, gatehouse.CodeAmbiguousID)
	}
	if rt.token == tokenRequired {
		codes = append(codes, gatehouse.CodeEditTokenRequired)
	}
	if rt.method != http.MethodGet {
		codes = append(codes, gatehouse.CodeMalformed, gatehouse.CodeBodyTooLarge)
	}
	if rt.idempotent {
		codes = append(codes, gatehouse.CodeInProgress, gatehouse.CodeKeyReused)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

const tagOps = "Operation"

// opsDocs describes the endpoints outside the table. They need no key, except /metrics for a request from
// another machine.
var opsDocs = []func(huma.Registry) *huma.Operation{
	opsDoc("/healthz", "health", "Show that the process answers, and its build", "application/json",
		typeOf[gatehouse.Health]()),
	opsDoc("/readyz", "ready", "Show whether the server is ready; 503 busy if not", "application/json", nil,
		gatehouse.CodeBusy),
	opsDoc("/metrics", "metrics",
		"Metrics for Prometheus; from another machine with the key of an auditor of the tenant default", "text/plain", nil,
		gatehouse.CodeUnauthenticated, gatehouse.CodeRoleRequired),
}

func opsDoc(
	path, name, summary, contentType string, out reflect.Type, codes ...gatehouse.Code,
) func(huma.Registry) *huma.Operation {
	return func(r huma.Registry) *huma.Operation {
		schema := &huma.Schema{}
		if out != nil {
			schema = r.Schema(out, true, "")
		}
		responses := map[string]*huma.Response{"200": {
			Description: "OK", Content: map[string]*huma.MediaType{contentType: {Schema: schema}},
		}}
		for _, code := range codes {
			status := gatehouse.StatusOf(code)
			responses[strconv.Itoa(status)] = problemOf(status, string(code))
		}
		return &huma.Operation{
			Method: http.MethodGet, Path: path, OperationID: name, Tags: []string{tagOps}, Summary: summary,
			Security: []map[string][]string{}, Responses: responses,
		}
	}
}
