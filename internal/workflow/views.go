package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// maxWait bounds the for, the until and the timeout of a wait.
const maxWait = gatehouse.Duration(366 * 24 * time.Hour)

func parseTime(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }

// invalid returns the error for a wrong value in an evaluated `with`.
func invalid(pointer, format string, args ...any) error {
	var v gatehouse.Violations
	v.Add("/with"+pointer, format, args...)
	return v.Err()
}

// Key evaluates idempotency_key, which the step must have.
func (s *Step) Key(scope *Scope) (string, error) {
	key, err := s.IdempotencyKey.Text(scope)
	if err == nil && (key == "" || len(key) > MaxKey || strings.ContainsRune(key, 0)) {
		err = fmt.Errorf("must have 1 to %d bytes and no NUL", MaxKey)
	}
	return key, err
}

// proposalWith is the `with` of connector and approval steps.
type proposalWith struct {
	Title        string                  `json:"title"` // approval only
	About        *gatehouse.About        `json:"about"` // approval only
	Target       gatehouse.Target        `json:"target"`
	Change       gatehouse.JSON          `json:"change"`
	CurrentState gatehouse.JSON          `json:"current_state"`
	Rationale    string                  `json:"rationale"`
	Magnitude    *gatehouse.Magnitude    `json:"magnitude"`
	Evaluations  []gatehouse.Evaluation  `json:"evaluations"`
	ArtifactDiff *gatehouse.ArtifactDiff `json:"artifact_diff"`
	Metadata     gatehouse.JSON          `json:"metadata"`
	Context      gatehouse.JSON          `json:"context"`
	ExpiresIn    gatehouse.Span          `json:"expires_in"`
}

// Proposal builds the action that a connector or approval step proposes from
// its evaluated `with`. The caller sets the proposer, on_behalf_of, the
// idempotency key and, for an approval, the run as the target; until then the
// target is the step. An approval without a change gets an empty one. The error
// has code invalid.
func (s *Step) Proposal(with gatehouse.JSON) (*gatehouse.Proposal, error) {
	if !s.Kind.Proposes() {
		return nil, gatehouse.E(gatehouse.CodeInternal, "a step that uses %s proposes nothing", s.Kind)
	}
	var w proposalWith
	if err := decode(with, &w); err != nil {
		return nil, err
	}
	if s.Kind == KindApproval {
		w.Target = gatehouse.Target{EntityType: "step", EntityRef: s.ID}
		if w.Change == "" {
			w.Change = "{}"
		}
	}
	p := &gatehouse.Proposal{
		ActionType: s.ActionType, Connector: s.Connector, Operation: s.Operation, RiskLevel: s.Risk,
		Target: w.Target, CurrentState: w.CurrentState, ProposedChange: w.Change, Rationale: w.Rationale,
		Magnitude: w.Magnitude, Evaluations: w.Evaluations, ArtifactDiff: w.ArtifactDiff,
		Metadata: w.Metadata, Context: w.Context, ExpiresIn: w.ExpiresIn,
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, w.checkAbout()
}

// checkAbout checks the entity that an approval step asks about.
func (w *proposalWith) checkAbout() error {
	if w.About == nil {
		return nil
	}
	if err := w.About.Validate(w.CurrentState); err != nil {
		return invalid("/about", "%v", err)
	}
	return nil
}

// About returns the entity that an approval step asks about, from its evaluated `with`;
// nil for none. The error has code invalid.
func (s *Step) About(with gatehouse.JSON) (*gatehouse.About, error) {
	if s.Kind != KindApproval {
		return nil, nil
	}
	var w proposalWith
	if err := decode(with, &w); err != nil {
		return nil, err
	}
	return w.About, w.checkAbout()
}

// MaxTitle bounds the question of an approval step, in characters.
const MaxTitle = 200

// Title returns the question of an approval step from its evaluated `with`; ""
// when it sets none. The error has code invalid.
func (s *Step) Title(with gatehouse.JSON) (string, error) {
	if s.Kind != KindApproval {
		return "", nil
	}
	var w proposalWith
	if err := decode(with, &w); err != nil {
		return "", err
	}
	title := strings.TrimSpace(w.Title)
	if strings.ContainsAny(title, "\r\n") || utf8.RuneCountInString(title) > MaxTitle {
		return "", invalid("/title", "must be one line of at most %d characters", MaxTitle)
	}
	return title, nil
}

// WaitFor reads the evaluated `with` of a wait. With an event, until is the
// time by which the event must come, zero for no limit.
func (s *Step) WaitFor(with gatehouse.JSON, now time.Time) (until time.Time, event string, err error) {
	var w struct {
		For     *gatehouse.Duration `json:"for"`
		Until   *string             `json:"until"`
		Event   *string             `json:"event"`
		Timeout *gatehouse.Duration `json:"timeout"`
		From    []string            `json:"from"` // read when the workflow was parsed
	}
	if err := decode(with, &w); err != nil {
		return time.Time{}, "", err
	}
	switch {
	case w.For != nil:
		if *w.For > maxWait {
			return time.Time{}, "", invalid("/for", "is longer than %s", maxWait)
		}
		return now.Add(w.For.D()), "", nil
	case w.Until != nil:
		t, err := parseTime(*w.Until)
		if err != nil {
			return time.Time{}, "", invalid("/until", "must be a time such as 2026-11-21T08:00:00Z")
		}
		if t.After(now.Add(maxWait.D())) {
			return time.Time{}, "", invalid("/until", "is more than %s away", maxWait)
		}
		if t.Before(now) { // the zero time too, which would mean no limit
			t = now
		}
		return t.UTC(), "", nil
	case w.Event == nil || !gatehouse.ValidName(*w.Event):
		return time.Time{}, "", invalid("/event", "must be letters, digits, or any of ._@:+-")
	}
	if w.Timeout != nil {
		if *w.Timeout > maxWait {
			return time.Time{}, "", invalid("/timeout", "is longer than %s", maxWait)
		}
		until = now.Add(w.Timeout.D())
	}
	return until, *w.Event, nil
}

// decode decodes a `with` strictly: an unknown key is an error that names the
// key.
func decode(with gatehouse.JSON, into any) error {
	if with == "" {
		with = "{}"
	}
	d := json.NewDecoder(bytes.NewReader([]byte(with)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		return invalid("", "cannot be read: %s", text)
	}
	return nil
}

// Result computes the output of a run whose steps have all succeeded; "" when
// the workflow defines none.
func (d *Definition) Result(s *Scope) (gatehouse.JSON, error) {
	if d.output == nil {
		return "", nil
	}
	return d.output.Eval(s)
}
