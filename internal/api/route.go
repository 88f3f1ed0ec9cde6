package api

import (
	"context"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// route is one line of the table: what the mux serves, what the pipeline
// checks, and what the OpenAPI document says.
type route struct {
	method, path string // path is below Prefix, in the mux's notation
	name         string // the operation's id
	tag          string
	summary, doc string

	// roles: any of them is needed; none listed means that a key is enough.
	roles []gatehouse.Role
	token tokenRule
	// mints says that the route makes or changes credentials, roles, groups,
	// set-up links, policies, secrets or connectors: it needs the edit token.
	mints bool
	// proves says that the use case takes a caller who is presumed.
	proves bool
	// thing is what {id} names.
	thing string
	query []param
	handler
	// status is the answer's, out its type; replays says that 200 can come
	// instead, with the same type.
	status  int
	out     reflect.Type
	replays bool
	// media is the content type of answers besides JSON, "" for none.
	media string
	// codes are the errors beyond those that follow from the rest of the line.
	codes []gatehouse.Code
	// idempotent routes heed Idempotency-Key; of secret ones the answer is
	// sealed before it is stored.
	idempotent, secret bool
	// open routes need no key.
	open bool
	// decides is the endpoint's name in gatehouse_decisions_total, "" for none.
	decides string
	// bulk routes count against the person's bulk decisions.
	bulk bool
	via  gatehouse.Channel
}

// tokenRule says whether a route looks at X-Edit-Token.
type tokenRule int

const (
	tokenNone tokenRule = iota
	// tokenOptional leaves it to the use case whether one was needed.
	tokenOptional
	tokenRequired
)

// handler is the code of a route, with the type of body that it takes.
type handler struct {
	in       reflect.Type // nil for no body
	optional bool         // an empty body stands for {}
	text     bool         // the body is YAML or JSON, taken as it is
	decode   func([]byte) (any, error)
	run      func(context.Context, *call) (reply, error)
}

// call is one request that passed every check.
type call struct {
	id     string // the path's {id}
	query  values
	in     any
	caller *gatehouse.Caller
	// secret is the API key, from which sealed answers' keys are derived.
	secret string
	// lastEvent is the request's Last-Event-ID.
	lastEvent string
	answer    encoded
	w         http.ResponseWriter
	// answers counts the requests that wait; over, when not nil, ends one's wait.
	answers *answers
	over    func()
}

// reply is what a handler answers. Status 0 means the route's. A handler that
// wrote the answer itself says so with written.
type reply struct {
	status  int
	value   any
	written bool
}

// answer makes a reply of what services return.
func answer[T any](value T, err error) (reply, error) { return reply{value: value}, err }

// plain is a handler without a body.
func plain(run func(context.Context, *call) (reply, error)) handler {
	return handler{run: run}
}

// body is a handler that takes a JSON object, which check looks at before any
// state is; check may be nil.
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

// textBody is a handler that takes YAML or JSON of at most limit bytes as it is.
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

// list is the answer of what is not paged, in the form of what is.
func list[T any](items []T, err error) (reply, error) {
	return reply{value: gatehouse.Page[T]{Items: items}}, err
}

// table lists every route.
func (s *Server) table() []route {
	var t []route
	t = append(t, s.actionRoutes()...)
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
	t = append(t, s.delegationRoutes()...)
	t = append(t, s.targetRoutes()...)
	t = append(t, s.eventRoutes()...)
	t = append(t, s.insightRoutes()...)
	t = append(t, s.policyRoutes()...)
	t = append(t, s.checkRoutes()...)
	t = append(t, s.keeperRoutes()...)
	t = append(t, s.auditRoutes()...)
	for i := range t {
		if t[i].mints {
			t[i].token = tokenRequired
		}
	}
	return t
}

// The roles that routes ask for.
var (
	readers   = []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor, gatehouse.RoleViewer}
	proposers = []gatehouse.Role{gatehouse.RoleProposer}
	approvers = []gatehouse.Role{gatehouse.RoleApprover}
	operators = []gatehouse.Role{gatehouse.RoleOperator}
	auditors  = []gatehouse.Role{gatehouse.RoleAuditor}
	admins    = []gatehouse.Role{gatehouse.RoleAdmin}
	workers   = []gatehouse.Role{gatehouse.RoleWorker}
)
