package httpconn

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// Checks is true if the operation has a check and the call names a version or a pre-image to
// compare.
func (c *Connector) Checks(call connector.Call) bool {
	op, ok := c.operations[call.Operation]
	if !ok || op.check == nil {
		return false
	}
	pre, _ := call.CurrentState.Fields()
	return len(pre) > 0 || call.Target.Version != "" && op.check.version != nil
}

// Check reads the target and compares the version and the pre-image. An operation without a check matches, unchecked;
// so does a call that names only a version, which the check does not read.
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	op, ok := c.operations[call.Operation]
	if !ok || op.check == nil {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	if !c.Checks(call) {
		return connector.State{Matches: true, Unchecked: call.Target.Version != ""}, nil
	}
	pre, _ := call.CurrentState.Fields()
	byVersion := call.Target.Version != "" && op.check.version != nil
	a, doc, gone, err := c.look(ctx, op, call, len(pre) > 0 || op.check.version.needsBody(byVersion))
	if err != nil {
		return connector.State{}, err
	}
	if gone {
		return connector.State{Expected: expectation(call, byVersion, pre), Actual: "null"}, nil
	}
	if byVersion {
		version, _ := op.check.version.version(a, doc)
		if !sameVersion(call.Target.Version, version) {
			return rest.OtherVersion(call.Target.Version, version), nil
		}
	}
	return op.check.compare(doc, call), nil
}

// look reads the target with the operation's check. gone is true when the target does not exist.
// With needed, an answer without JSON is an error.
func (c *Connector) look(
	ctx context.Context, op *operation, call connector.Call, needed bool,
) (a *rest.Answer, doc answerBody, gone bool, err error) {
	a, doc, err = c.get(ctx, op, op.check.path, op.check.headers, call)
	switch {
	case err != nil:
		return nil, answerBody{}, false, err
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		return a, doc, true, nil
	case a.Status < 200 || a.Status > 299:
		return nil, answerBody{}, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: a.Describe(), Says: a.Text(doc.json),
			RetryAfter: rest.RetryAfter(a.Header),
		}
	case doc.json == "" && needed:
		return nil, answerBody{}, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed",
			Detail: a.Describe() + ", but without valid JSON",
		}
	}
	return a, doc, false, nil
}

// Conditional reports whether the request carries a condition.
func (c *Connector) Conditional(call connector.Call) bool {
	op, ok := c.operations[call.Operation]
	return ok && op.conditional != nil
}

// needsBody reports whether the version must be read from the body.
func (s *source) needsBody(used bool) bool { return used && s != nil && s.pointer != nil }

func expectation(call connector.Call, byVersion bool, pre []gatehouse.Member) gatehouse.JSON {
	if byVersion {
		return gatehouse.StringJSON(call.Target.Version)
	}
	return gatehouse.ObjectJSON(pre...)
}

// compare lists the members of the pre-image that differ.
func (k *check) compare(doc answerBody, call connector.Call) connector.State {
	state, _ := doc.at(k.state)
	return rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got, ok := state.Get(m.Name)
		return got, ok && m.Value.Equal(got) || !ok && m.Value == "null"
	})
}

// ReadBack asks the target for the effect of an earlier call. It never returns Absent, because an
// earlier call may still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	op, ok := c.operations[call.Operation]
	if !ok || op.readBack == nil {
		return connector.Inconclusive, connector.Result{}, nil
	}
	r := op.readBack
	d, err := c.lookup(r.path, r.headers, call)
	if err != nil {
		return connector.Inconclusive, connector.Result{}, err
	}
	for page, read := 1, 0; ; page++ {
		a, doc, err := c.fetch(ctx, op, d)
		if err != nil {
			return connector.Inconclusive, connector.Result{}, err
		}
		if !contains(r.status, a.Status) || a.Cut != "" {
			return connector.Inconclusive, connector.Result{}, nil
		}
		found := r.elements(doc)
		for _, one := range found {
			if r.proves(call, one) {
				return connector.Present, c.readResult(op, call, a, one), nil
			}
		}
		if r.pages == nil {
			return connector.Inconclusive, connector.Result{}, nil
		}
		read += len(found)
		next, failed := r.pages.next(d.URL, a, doc, read, len(found))
		switch {
		case failed != nil:
			return connector.Inconclusive, connector.Result{}, failed
		case next == nil:
			return connector.Inconclusive, connector.Result{}, nil
		case page == r.pages.Max:
			return connector.Inconclusive, connector.Result{}, &connector.Error{
				Kind: connector.Terminal, Code: "too_many_pages",
				Detail: fmt.Sprintf("the effect is not on the first %d pages, and there are more", page),
			}
		}
		d.URL = next
	}
}

// proves reports whether an answer, or an element of its list, shows the effect of a call.
func (r *readBack) proves(call connector.Call, doc answerBody) bool {
	return (r.json == nil || r.json.matches(call, doc)) &&
		(r.change == nil || hasFields(call.ProposedChange, doc, *r.change))
}

// readResult is the result of a call whose effect was found.
func (c *Connector) readResult(op *operation, call connector.Call, a *rest.Answer, doc answerBody) connector.Result {
	res := connector.Result{ResponseMetadata: a.Metadata(doc.json)}
	if id := op.readBack.cfg.ExternalID; id != nil {
		if j, ok := doc.at(*id); ok {
			res.ExternalID = plain(j)
		}
	}
	res.Reversal = c.reversal(op, call, a, doc, res.ExternalID)
	return res
}

// hasFields reports whether the object at p has every member of a change, with the same value.
func hasFields(change gatehouse.JSON, doc answerBody, p Pointer) bool {
	object, ok := doc.at(p)
	fields, err := change.Fields()
	if !ok || err != nil || len(fields) == 0 {
		return false
	}
	for _, f := range fields {
		got, ok := object.Get(f.Name)
		if !ok || !f.Value.Equal(got) {
			return false
		}
	}
	return true
}

// get sends a GET. It can be repeated, so its failures are never ambiguous.
func (c *Connector) get(
	ctx context.Context, op *operation, path *pathTemplate, hs headers, call connector.Call,
) (*rest.Answer, answerBody, error) {
	d, err := c.lookup(path, hs, call)
	if err != nil {
		return nil, answerBody{}, err
	}
	return c.fetch(ctx, op, d)
}

// lookup makes a GET without sending it.
func (c *Connector) lookup(path *pathTemplate, hs headers, call connector.Call) (*rest.Request, error) {
	d, err := c.draft(http.MethodGet, path, hs, values{call: call})
	if err != nil {
		return nil, rest.Invalid(err)
	}
	return d, nil
}

func (c *Connector) fetch(ctx context.Context, op *operation, d *rest.Request) (*rest.Answer, answerBody, error) {
	ctx, cancel := context.WithTimeout(ctx, op.timeout)
	defer cancel()
	a, failed := c.read(ctx, d)
	if failed != nil {
		return nil, answerBody{}, failed
	}
	return a, answerBody{a.JSON()}, nil
}
