package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// serve wraps a route in the pipeline.
func (s *Server) serve(rt *route) http.Handler {
	observe := s.metrics.observer(rt)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := requestID(w, r)
		status := s.guarded(w, r, id, func() (int, error) { return s.pass(w, r, rt, id) })
		observe(r, status, time.Since(start))
	})
}

// guarded runs fn and writes its error or panic as a response.
func (s *Server) guarded(w http.ResponseWriter, r *http.Request, id string, fn func() (int, error)) (status int) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.log.ErrorContext(r.Context(), "panic", "request_id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			status = s.problem(w, r, id, gatehouse.E(gatehouse.CodeInternal, ""))
		}
	}()
	status, err := fn()
	if err != nil {
		status = s.problem(w, r, id, err)
	}
	return status
}

// plain wraps a handler outside the pipeline.
func (s *Server) plain(fn func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(w, r)
		s.guarded(w, r, id, func() (int, error) { return http.StatusOK, fn(w, r) })
	})
}

// authenticated is plain for callers with a valid key.
func (s *Server) authenticated(fn func(http.ResponseWriter, *http.Request) error) http.Handler {
	return s.plain(func(w http.ResponseWriter, r *http.Request) error {
		if _, _, err := s.authenticate(r); err != nil {
			return err
		}
		return fn(w, r)
	})
}

// pass is the pipeline; the contract fixes the order of its checks.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, rt *route, requestID string) (int, error) {
	caller, key, err := s.caller(r, rt)
	if err != nil {
		return 0, err
	}
	caller.Via, caller.RequestID = channel(r, rt), requestID
	ctx := gatehouse.NewContext(r.Context(), caller)
	if err := s.general.spend(ctx, caller.Principal); err != nil {
		return 0, err
	}
	if s.answers.full(caller.Principal.ID) {
		return 0, unread()
	}
	w = &countedWriter{ResponseWriter: w, answers: &s.answers, principal: caller.Principal.ID}
	c := &call{id: r.PathValue("id"), caller: caller, secret: key, lastEvent: r.Header.Get("Last-Event-ID"), w: w,
		answers: &s.answers}
	defer func() {
		if c.over != nil {
			c.over()
		}
	}()
	if err := s.resolve(ctx, rt, c); err != nil {
		return 0, err
	}
	if err := s.admit(ctx, r, rt, c); err != nil {
		if not := s.lookUp(ctx, r, rt, c); not != nil {
			err = not
		}
		return 0, s.refusal(ctx, rt, c, err)
	}
	if caller.Idempotency != nil {
		release, err := s.running.hold(caller)
		if err != nil {
			return 0, err
		}
		defer release()
	}
	out, err := rt.run(ctx, c)
	if err != nil && caller.Cached != nil && !caller.Cached.Verified {
		if err := s.lookUp(ctx, r, rt, c); err != nil {
			return 0, s.refusal(ctx, rt, c, err)
		}
		out, err = rt.run(ctx, c)
	}
	s.metrics.decided(rt.decides, out.value, err)
	if replay := (*gatehouse.Replay)(nil); errors.As(err, &replay) {
		return s.replay(w, rt, c, replay)
	}
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return 0, s.refusal(ctx, rt, c, err)
	}
	if err != nil {
		return 0, err
	}
	status := out.status
	if status == 0 {
		status = rt.status
	}
	if out.written {
		return status, nil
	}
	return status, s.write(w, status, c, out.value)
}

// refusal returns the error for a refused caller: not_found if the object that the
// path names does not exist, else err. A cached caller that is not verified always gets
// err, and so learns nothing about existence.
func (s *Server) refusal(ctx context.Context, rt *route, c *call, err error) error {
	if p := c.caller.Cached; p != nil && !p.Verified {
		return err
	}
	if gone := s.missing(ctx, rt, c.id); gone != nil {
		return gone
	}
	return err
}

// admit makes the checks that do not depend on the object's state: role, edit token,
// limit of bulk decisions, query, body and Idempotency-Key.
func (s *Server) admit(ctx context.Context, r *http.Request, rt *route, c *call) (err error) {
	p := c.caller.Principal
	if err := s.entitle(ctx, r, rt, c); err != nil {
		return err
	}
	if rt.bulk {
		if err := s.bulk.take(p.Tenant + "/" + p.Person); err != nil {
			return err
		}
	}
	if c.query, err = parseQuery(r.URL.RawQuery, rt.query); err != nil {
		return err
	}
	raw, done, err := readBody(c.w, r, rt, s.cfg.BodyTimeout)
	if err != nil {
		return err
	}
	defer done()
	if rt.decode != nil {
		if c.in, err = rt.decode(raw); err != nil {
			return err
		}
	}
	if rt.idempotent {
		c.caller.Idempotency, err = idempotencyOf(r, rt, c, raw)
	}
	return err
}

// entitle checks the role and the edit token that a route requires.
func (s *Server) entitle(ctx context.Context, r *http.Request, rt *route, c *call) (err error) {
	p := c.caller.Principal
	if len(rt.roles) > 0 && !slices.ContainsFunc(rt.roles, p.Has) {
		return roleRequired(rt)
	}
	if rt.token == tokenNone || c.caller.Cached != nil && c.caller.StepUp {
		return nil
	}
	if c.caller.StepUp, err = s.stepUp(ctx, r, p); err != nil {
		return err
	}
	if rt.token == tokenRequired && !c.caller.StepUp {
		format := "%s needs your edit token in X-Edit-Token"
		if editToken(r) != "" {
			format = "%s needs your edit token: the one in X-Edit-Token is not yours, or was replaced"
		}
		return gatehouse.E(gatehouse.CodeEditTokenRequired, format, rt.tokenProtects())
	}
	return nil
}

func roleRequired(rt *route) error {
	return gatehouse.E(gatehouse.CodeRoleRequired, "this needs the role %s", anyOf(rt.roles)).With("roles", rt.roles)
}

// tokenProtects says what the edit token protects on this route.
func (rt *route) tokenProtects() string {
	if rt.changesRights {
		return "changing rights, credentials or rules"
	}
	return "deciding"
}

// caller identifies the caller. On a cached route, the result may come from the
// credential cache, if that caller has the role and edit token for the route.
func (s *Server) caller(r *http.Request, rt *route) (*gatehouse.Caller, string, error) {
	// A short id is resolved before the use case, so its caller must be
	// authenticated.
	_, short := gatehouse.ShortID(rt.object, r.PathValue("id"))
	if rt.cached && !short {
		key, token := bearer(r), editToken(r)
		if rt.token == tokenNone {
			token = ""
		}
		if c := s.cfg.Auth.CachedCaller(key, token); c != nil &&
			(len(rt.roles) == 0 || slices.ContainsFunc(rt.roles, c.Principal.Has)) && (rt.token == tokenNone || c.StepUp) {
			return c, key, nil
		}
	}
	p, key, err := s.authenticate(r)
	if err != nil {
		return nil, "", err
	}
	return &gatehouse.Caller{Principal: p}, key, nil
}

// lookUp replaces a cached caller with an authenticated one. It fails if the
// secrets are no longer valid, or if the caller may no longer use the route.
func (s *Server) lookUp(ctx context.Context, r *http.Request, rt *route, c *call) error {
	if c.caller.Cached == nil {
		return nil
	}
	p, _, err := s.authenticate(r)
	if err != nil {
		return err
	}
	c.caller.Principal, c.caller.StepUp, c.caller.Cached = p, false, nil
	return s.entitle(ctx, r, rt, c)
}

// authenticate returns the principal of the only credential, Authorization: Bearer.
func (s *Server) authenticate(r *http.Request) (p *gatehouse.Principal, key string, err error) {
	if key = bearer(r); key == "" {
		return nil, "", unauthenticated()
	}
	if err := s.cfg.Addresses.Allow(r, key); err != nil {
		return nil, "", err
	}
	p, err = s.cfg.Auth.Authenticate(r.Context(), key)
	if err == nil && (p == nil || p.Disabled) {
		err = unauthenticated()
	}
	switch {
	case err == nil:
		s.cfg.Addresses.Right(key)
	case gatehouse.CodeOf(err) == gatehouse.CodeUnauthenticated:
		s.cfg.Addresses.Failed(r)
	}
	return p, key, err
}

// bearer returns the key of a request, "" for none.
func bearer(r *http.Request) string {
	header := r.Header["Authorization"]
	if len(header) != 1 {
		return ""
	}
	scheme, key, found := strings.Cut(header[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") || len(key) > 512 {
		return ""
	}
	return key
}

// editToken returns the edit token of a request, "" for none.
func editToken(r *http.Request) string {
	token := r.Header["X-Edit-Token"]
	if len(token) != 1 || len(token[0]) > 512 {
		return ""
	}
	return token[0]
}

func unauthenticated() error {
	return gatehouse.E(gatehouse.CodeUnauthenticated, "a valid API key is needed: Authorization: Bearer gth_…")
}

func (s *Server) stepUp(ctx context.Context, r *http.Request, p *gatehouse.Principal) (bool, error) {
	token := editToken(r)
	if token == "" {
		return false, nil
	}
	return s.cfg.Auth.CheckEditToken(ctx, p, token)
}

// channel returns the channel to record for a decision: the route's own if it has one;
// ViaClient if the request names a channel, which the server cannot verify; else ViaAPI.
func channel(r *http.Request, rt *route) gatehouse.Channel {
	switch {
	case rt.via != "":
		return rt.via
	case len(r.Header["X-Gatehouse-Channel"]) > 0:
		return gatehouse.ViaClient
	}
	return gatehouse.ViaAPI
}

func anyOf(roles []gatehouse.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, " or ")
}
