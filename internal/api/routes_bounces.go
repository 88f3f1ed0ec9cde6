package api

import (
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// bounceRoute is served outside the pipeline, because mail servers have no key.
var bounceRoute = route{
	method: "POST", path: "/hooks/mail/bounces", name: "receiveBounce", tag: tagNotifications,
	summary: "Deliver a returned mail",
	doc: "Needs no key: the MAC in the recipient address authenticates the request. The body is the unchanged mail, at " +
		"most 262144 bytes; the sender may cut off the end of a longer mail. A delivery status notification with the " +
		"action failed makes the notification failed; one with delayed is recorded; other mails change nothing.",
	status: http.StatusOK, out: typeOf[gatehouse.Bounce](), open: true,
	query: []param{{
		name: "recipient", max: 320,
		doc: "The address that the mail was sent to; by default that of the header X-Original-To, Delivered-To or To.",
	}},
	codes: []gatehouse.Code{gatehouse.CodeBadToken},
}

func (s *Server) receiveBounce(w http.ResponseWriter, r *http.Request) (int, error) {
	if r.ContentLength > gatehouse.MaxBounce {
		return 0, tooLarge(gatehouse.MaxBounce)
	}
	query, body, err := s.readHook(w, r, &bounceRoute, "mail/bounces")
	if err != nil {
		return 0, err
	}
	if len(body) > gatehouse.MaxBounce {
		return 0, tooLarge(gatehouse.MaxBounce)
	}
	out, err := s.cfg.Bounces.ReceiveBounce(r.Context(), query["recipient"], body)
	if err != nil {
		return 0, err
	}
	return http.StatusOK, s.write(w, http.StatusOK, &call{}, out)
}
