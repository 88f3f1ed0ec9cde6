package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// reviewAnswer is a review with everything that mails, pages and programs show.
type reviewAnswer struct {
	gatehouse.OpenReview
	Sentence string `json:"sentence,omitempty"`
	// ProjectID, Feature, Edge, Iteration and FeatureVectorState come from the
	// proposal's context.
	ProjectID          gatehouse.JSON          `json:"project_id,omitempty"`
	Feature            gatehouse.JSON          `json:"feature,omitempty"`
	Edge               gatehouse.JSON          `json:"edge,omitempty"`
	Iteration          gatehouse.JSON          `json:"iteration,omitempty"`
	FeatureVectorState gatehouse.JSON          `json:"feature_vector_state,omitempty"`
	ArtifactDiff       *gatehouse.ArtifactDiff `json:"artifact_diff,omitempty"`
	// EvaluatorResults are the evaluations, grouped by kind.
	EvaluatorResults map[string][]gatehouse.Evaluation `json:"evaluator_results,omitempty"`
	Options          []reviewOption                    `json:"options"`
	CallbackURLs     *callbackURLs                     `json:"callback_urls,omitempty"`
}

// reviewOption is one possible answer.
type reviewOption struct {
	Decision gatehouse.DecisionKind `json:"decision"`
	Path     string                 `json:"path"`
}

// callbackURLs are the pages on which people answer.
type callbackURLs struct {
	Approve   string    `json:"approve"`
	Reject    string    `json:"reject"`
	ExpiresAt time.Time `json:"expires_at"`
}

// reviewBody is the optional body of an answer.
type reviewBody struct {
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
}

// The bounds, per address, on callers with a link instead of a key.
const (
	reviewsPerSecond = 20
	reviewBurst      = 100
)

var reviewQuery = []param{
	{name: "token", max: 400, doc: "The token of the link. No log contains it."},
	{name: "reason", max: gatehouse.MaxNotesBytes, doc: "The reason, unless the body has one."},
}

var (
	reviewCodes = []gatehouse.Code{gatehouse.CodeBadToken}
	decideCodes = []gatehouse.Code{
		gatehouse.CodeBadToken, gatehouse.CodeSignInRequired, gatehouse.CodeLinkExpired, gatehouse.CodeAlreadyDecided,
		gatehouse.CodeRoleRequired, gatehouse.CodeSelfApproval, gatehouse.CodeConfirmation, gatehouse.CodeTargetChanged,
		gatehouse.CodeAlreadyVoted, gatehouse.CodeCeilingExceeded, gatehouse.CodeAuthorityRevoked,
	}
)

// reviewRoutes are served outside the pipeline, because a holder of a link has
// no key.
var reviewRoutes = []route{
	{
		method: "GET", path: "/reviews/{review_id}", name: "getReview", tag: tagDecisions, open: true,
		summary: "Read a review by its link",
		doc: "Needs no key: the token authorizes reading. It changes nothing. state is pending, decided, expired, " +
			"superseded, revoked or not_yours.",
		status: http.StatusOK, out: typeOf[reviewAnswer](), query: reviewQuery[:1], codes: reviewCodes,
	}, {
		method: "POST", path: "/reviews/{review_id}/approve", name: "approveReview", tag: tagDecisions,
		open: true, decides: "link",
		summary: "Approve by a link",
		doc: "The token authorizes only reading. Deciding also needs the recipient's API key in Authorization or, if " +
			"the policy lets a code decide, the code in the mail. The edit token is not needed. L4 and L5 are not " +
			"decided by a link.",
		status: http.StatusOK, out: typeOf[gatehouse.Answer](), query: reviewQuery, codes: decideCodes,
	}, {
		method: "POST", path: "/reviews/{review_id}/reject", name: "rejectReview", tag: tagDecisions,
		open: true, decides: "link",
		summary: "Reject by a link", doc: "Works as approveReview does.",
		status: http.StatusOK, out: typeOf[gatehouse.Answer](), query: reviewQuery, codes: decideCodes,
	},
}

// mountReviews adds the routes.
func (s *Server) mountReviews(mux *http.ServeMux) {
	for i := range reviewRoutes {
		rt := &reviewRoutes[i]
		observe := s.metrics.observer(rt)
		mux.Handle(Prefix+rt.path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			id := requestID(w, r)
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			status := s.guarded(w, r, id, func() (int, error) { return s.review(w, r, rt, id) })
			if r.Method == rt.method {
				observe(r, status, time.Since(start))
			}
		}))
	}
}

func (s *Server) review(w http.ResponseWriter, r *http.Request, rt *route, requestID string) (int, error) {
	if r.Method != rt.method && (rt.method != http.MethodGet || r.Method != http.MethodHead) {
		w.Header().Set("Allow", rt.method)
		return 0, gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path allows %s", rt.method)
	}
	if err := s.reviews.take(s.cfg.Addresses.Of(r)); err != nil {
		return 0, err
	}
	ctx := r.Context()
	if r.Header.Get("Authorization") != "" {
		p, _, err := s.authenticate(r)
		if err != nil {
			return 0, err
		}
		ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: p, Via: gatehouse.ViaAPI, RequestID: requestID})
	}
	query, err := parseQuery(r.URL.RawQuery, rt.query)
	if err != nil {
		return 0, err
	}
	id, token := r.PathValue("review_id"), query["token"]
	if rt.method == http.MethodGet {
		out, err := s.readReview(ctx, id, token)
		if err != nil {
			return 0, err
		}
		return http.StatusOK, s.write(w, http.StatusOK, &call{}, out)
	}
	in := reviewBody{}
	var body bytes.Buffer
	if err := fill(&body, w, r, s.cfg.BodyTimeout); err != nil {
		return 0, err
	}
	if raw := bytes.TrimSpace(body.Bytes()); len(raw) > 0 {
		if !isJSON(r.Header["Content-Type"]) {
			return 0, malformed("", "the content type must be application/json")
		}
		if err := decodeStrict(raw, &in); err != nil {
			return 0, err
		}
	}
	d := gatehouse.ReviewDecision{Decision: gatehouse.Approve, Reason: in.Reason, Code: in.Code}
	if d.Reason == "" {
		d.Reason = query["reason"]
	}
	if rt.name == "rejectReview" {
		d.Decision = gatehouse.Reject
	}
	answer, err := s.cfg.Reviews.DecideReview(ctx, id, token, d)
	s.metrics.decided(rt.decides, answer, err)
	if err != nil {
		return 0, err
	}
	return http.StatusOK, s.write(w, http.StatusOK, &call{}, answer)
}

// readReview collects the answer for a review.
func (s *Server) readReview(ctx context.Context, id, token string) (*reviewAnswer, error) {
	open, err := s.cfg.Reviews.OpenReview(ctx, id, token, "")
	if err != nil {
		return nil, err
	}
	out := &reviewAnswer{OpenReview: *open, Options: []reviewOption{}}
	if open.Action == nil {
		return out, nil
	}
	a := *open.Action
	a.Callback = nil // belongs to the proposer
	out.Action = &a
	out.Sentence, out.ArtifactDiff = card.Sentence(&a), a.ArtifactDiff
	out.EvaluatorResults = make(map[string][]gatehouse.Evaluation)
	for _, e := range a.Evaluations {
		out.EvaluatorResults[e.Kind] = append(out.EvaluatorResults[e.Kind], e)
	}
	var about map[string]json.RawMessage
	if json.Unmarshal([]byte(a.Context), &about) == nil {
		for name, to := range map[string]*gatehouse.JSON{
			"project_id": &out.ProjectID, "feature": &out.Feature, "edge": &out.Edge, "iteration": &out.Iteration,
			"feature_vector_state": &out.FeatureVectorState,
		} {
			*to = gatehouse.JSON(about[name])
		}
	}
	if open.State != gatehouse.ReviewPending {
		return out, nil
	}
	query := "?token=" + url.QueryEscape(token)
	out.CallbackURLs = &callbackURLs{
		Approve: s.cfg.PublicURL + gatehouse.ReviewPath(id, gatehouse.Approve) + query,
		Reject:  s.cfg.PublicURL + gatehouse.ReviewPath(id, gatehouse.Reject) + query, ExpiresAt: open.ExpiresAt,
	}
	if len(open.Proofs) > 0 {
		path := Prefix + "/reviews/" + id
		out.Options = []reviewOption{{gatehouse.Approve, path + "/approve"}, {gatehouse.Reject, path + "/reject"}}
	}
	return out, nil
}
