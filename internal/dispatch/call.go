package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Connectors are foreign code. The functions below recover their panics, and
// remove configured secrets from their results and errors. Only readState and
// preview return results as they are: ReadState and boundPreview handle the
// secrets in them. A panic, or an error that is not a *connector.Error, proves
// nothing about the effect of a call.

func (r *Registry) execute(
	ctx context.Context, c connector.Connector, call connector.Call,
) (res connector.Result, failure *connector.Error) {
	defer func() { res, failure = redactCall(r.redactor(call.Tenant), res, failure) }()
	defer recoverTo(&failure)
	res, err := c.Execute(ctx, call)
	return res, asError(err)
}

func (r *Registry) check(ctx context.Context, c connector.Checker, call connector.Call) (s connector.State, err error) {
	var failure *connector.Error
	func() {
		defer recoverTo(&failure)
		var err error
		s, err = c.Check(ctx, call)
		failure = asError(err)
	}()
	if failure != nil {
		return connector.State{}, redactFailure(r.redactor(call.Tenant), failure)
	}
	return redactState(r.redactor(call.Tenant), s), nil
}

// asksTarget reports whether Check asks the target. It is true for a connector
// that panics: Check then reports the panic.
func asksTarget(c connector.SelectiveChecker, call connector.Call) (asks bool) {
	failure := (*connector.Error)(nil)
	defer func() { asks = asks || failure != nil }()
	defer recoverTo(&failure)
	return c.Checks(call)
}

// readsState returns the connector's ReadsState, and false if that panics.
func readsState(c connector.StateReader, call connector.Call) (reads bool) {
	var failure *connector.Error
	defer recoverTo(&failure)
	return c.ReadsState(call)
}

func (r *Registry) readState(
	ctx context.Context, c connector.StateReader, call connector.Call,
) (s connector.Snapshot, failure *connector.Error) {
	defer func() { failure = redactFailure(r.redactor(call.Tenant), failure) }()
	defer recoverTo(&failure)
	s, err := c.ReadState(ctx, call)
	return s, asError(err)
}

func (r *Registry) readBack(
	ctx context.Context, c connector.ReadBacker, call connector.Call,
) (f connector.Finding, res connector.Result, failure *connector.Error) {
	defer func() {
		if failure != nil {
			f = connector.Inconclusive
		}
		res, failure = redactCall(r.redactor(call.Tenant), res, failure)
	}()
	defer recoverTo(&failure)
	f, res, err := c.ReadBack(ctx, call)
	return f, res, asError(err)
}

func (r *Registry) probe(ctx context.Context, tenant string, p connector.Prober) (failure *connector.Error) {
	defer func() { failure = redactFailure(r.redactor(tenant), failure) }()
	defer recoverTo(&failure)
	if err := p.Probe(ctx); err != nil {
		return &connector.Error{Kind: connector.NotSent, Code: "probe_failed", Detail: err.Error(), Err: err}
	}
	return nil
}

func recoverTo(failure **connector.Error) {
	if p := recover(); p != nil {
		*failure = &connector.Error{
			Kind: connector.Ambiguous, Code: "connector_panic",
			Detail: "the connector failed in an unexpected way", Err: fmt.Errorf("panic: %v", p),
		}
	}
}

// asError classifies an error; nil stays nil. The text of an unclassified error
// goes only to the log, since it may hold secrets.
func asError(err error) *connector.Error {
	if err == nil {
		return nil
	}
	code := "connector_error"
	var e *connector.Error
	typed := errors.As(err, &e)
	switch {
	case e != nil:
		return e
	case !typed && errors.Is(err, context.DeadlineExceeded):
		code = "timeout"
	}
	return &connector.Error{Kind: connector.Ambiguous, Code: code, Detail: "the connector failed in an unexpected way",
		Err: err}
}

// maxDetail bounds the stored text of an error, in bytes, without the "…" of a clipped text.
const maxDetail = 2 << 10

func clip(s string) string { return clipTo(s, maxDetail+len("…")) }

// clipTo makes a text valid UTF-8 without NUL and limits its length to most bytes.
func clipTo(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	n := most - len("…")
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
