package api

import (
	"context"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// route is one row of the table: what the mux serves, what the pipeline checks,
// and what the OpenAPI document says.
type route struct {
	method, path string // path is below Prefix, in the mux's notation
	name         string // the operation's id
	tag          string
	summary, doc string

	// roles are the roles of which the caller needs one; none means that any key
	// is enough.
	roles []gatehouse.Role
	token tokenRule
	// changesRights is true if the route changes rights, credentials or rules, such as principals, groups,
	// delegations, grants, mandates, keys, policies, secrets or connectors, and so requires the edit token.
	changesRights bool
	// cached is true if the use case accepts a caller from the credential cache, and
	// compares the caller with the store in its own transaction.
	cached bool
	// object is the kind of object that {id} names.
	object string
	query  []param
	handler
	// example is a valid body, which the OpenAPI document and the page /docs show.
	example string
	// status is the status of the answer and out its type; with replays, 200
	// with the same type is possible too.
	status  int
	out     reflect.Type
	replays bool
	// media is the content type of answers other than JSON, "" for none.
	media string
	// codes are the errors that do not follow from the rest of the row.
	codes []gatehouse.Code
	// idempotent routes honour Idempotency-Key. The answers of secret routes
	// are sealed before they are stored.
	idempotent, secret bool
	// open routes need no key.
	open bool
	// decides is the endpoint's name in gatehouse_decisions_total, "" for none.
	decides string
	// bulk routes count against the person's limit of bulk decisions.
	bulk bool
	via  gatehouse.Channel
}

// tokenRule says whether a route reads X-Edit-Token.
type tokenRule int

const (
	tokenNone tokenRule = iota
	// tokenOptional means that the use case decides whether the token is required.
	tokenOptional
	tokenRequired
)

// handler is the code of a route and the type of its body.
type handler struct {
	in       reflect.Type // nil for no body
	optional bool         // an empty body stands for {}
	text     bool         // the body is YAML or JSON, passed on unparsed
	decode   func([]byte) (any, error)
	run      func(context.Context, *call) (reply, error)
}

// call is one request. A handler gets it when it has passed every check.
type call struct {
	id     string // the path's {id}
	query  values
	in     any
	caller *gatehouse.Caller
	// secret is the API key, from which the keys of sealed answers are derived.
	secret string
	// lastEvent is the request's Last-Event-ID.
	lastEvent string
	answer    encoded
	w         http.ResponseWriter
	// answers counts waiting requests; over, when not nil, removes this request
	// from the count.
	answers *answers
	over    func()
}

// reply is the result of a handler. Status 0 means the route's status. written
// says that the handler has written the response itself.
type reply struct {
	status  int
	value   any
	written bool
}

// answer turns the results of a service into a reply.
func answer[T any](value T, err error) (reply, error) { return reply{value: value}, err }

// noBody returns a handler without a body.
func noBody(run func(context.Context, *call) (reply, error)) handler {
	return handler{run: run}
}

// body returns a handler that takes a JSON object. check, which may be nil,
// checks it before any state is read.
func body[T any](check func(*T) error, run func(context.Context, *call, *T) (reply, error)) handler {
	return handler{
		in: reflect.TypeFor[T](),
		decode: func(b []byte) (any, error) {
			in := new(T)
			if err := decodeStrict(b, in); err != nil {
				return nil, err
			}
			if check != nil {
				return in, check(in)
			}
			return in, nil
		},
		run: func(ctx context.Context, c *call) (reply, error) { return run(ctx, c, c.in.(*T)) },
	}
}

// textBody returns a handler that takes YAML or JSON of at most limit bytes as
// text.
func textBody(limit int, run func(context.Context, *call, string) (reply, error)) handler {
	return handler{
		in: reflect.TypeFor[string](), text: true,
		decode: func(b []byte) (any, error) {
			switch {
			case len(b) > limit:
				return nil, gatehouse.E(gatehouse.CodeBodyTooLarge, "this body is at most %d bytes", limit).With("limit", limit)
			case !utf8.Valid(b):
				return nil, malformed("", "is not UTF-8")
			}
			return string(b), nil
		},
		run: func(ctx context.Context, c *call) (reply, error) { return run(ctx, c, c.in.(string)) },
	}
}

// maybe makes the body optional.
func maybe(h handler) handler {
	h.optional = true
	return h
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// list returns an unpaged list in the form of a page.
func list[T any](items []T, err error) (reply, error) {
	return reply{value: gatehouse.Page[T]{Items: items}}, err
}

// table lists every route.
func (s *Server) table() []route {
	var t []route
	t = append(t, s.actionRoutes()...)
	t = append(t, s.conversationRoutes()...)
	t = append(t, s.decisionRoutes()...)
	t = append(t, s.dispatchRoutes()...)
	t = append(t, s.workflowRoutes()...)
	t = append(t, s.runRoutes()...)
	t = append(t, s.runReads()...)
	t = append(t, s.workerRoutes()...)
	t = append(t, s.adminRoutes()...)
	t = append(t, s.groupRoutes()...)
	t = append(t, s.sessionRoutes()...)
	t = append(t, s.noticeRoutes()...)
	t = append(t, s.notificationRoutes()...)
	t = append(t, s.linkKeyRoutes()...)
	t = append(t, s.secretRoutes()...)
	t = append(t, s.delegationRoutes()...)
	t = append(t, s.grantRoutes()...)
	t = append(t, s.deviceRoutes()...)
	t = append(t, s.preferenceRoutes()...)
	t = append(t, s.mandateRoutes()...)
	t = append(t, s.targetRoutes()...)
	t = append(t, s.evaluationRoutes()...)
	t = append(t, s.eventRoutes()...)
	t = append(t, s.insightRoutes()...)
	t = append(t, s.policyRoutes()...)
	t = append(t, s.connectorRoutes()...)
	t = append(t, s.checkRoutes()...)
	t = append(t, s.keeperRoutes()...)
	t = append(t, s.auditRoutes()...)
	for i := range t {
		if t[i].changesRights {
			t[i].token = tokenRequired
		}
	}
	return t
}

// The role sets of routes.
var (
	readers = []gatehouse.Role{
		gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor,
		gatehouse.RoleViewer, gatehouse.RoleEvaluator,
	}
	proposers = []gatehouse.Role{gatehouse.RoleProposer}
	approvers = []gatehouse.Role{gatehouse.RoleApprover}
	editors   = []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleOperator}
	operators = []gatehouse.Role{gatehouse.RoleOperator}
	auditors  = []gatehouse.Role{gatehouse.RoleAuditor}
	admins    = []gatehouse.Role{gatehouse.RoleAdmin}
	workers   = []gatehouse.Role{gatehouse.RoleWorker}
)
