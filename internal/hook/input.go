package hook

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// shown are the headers that a run gets to see: none of them can hold a secret.
var shown = []string{
	"Content-Type", "User-Agent",
	"X-GitHub-Delivery", "X-GitHub-Event", "X-GitHub-Hook-ID",
	"X-GitHub-Hook-Installation-Target-ID", "X-GitHub-Hook-Installation-Target-Type",
	"Webhook-Id", "Webhook-Timestamp",
}

// Input is what a run of a delivery begins with: an object of body (as JSON,
// digit for digit), delivery, event ("" for none) and headers, those of a fixed
// list, by their names in lower case. Of these only the body, and what of the
// delivery [Verify] says is signed, is the sender's word. The error has code
// malformed: the body is not JSON, or nested too deep for a run.
func Input(h http.Header, d Delivery, body []byte) (gatehouse.JSON, error) {
	j, err := gatehouse.Canonicalize(body)
	if err != nil {
		return "", gatehouse.E(gatehouse.CodeMalformed, "the body of a webhook must be JSON: %v", err)
	}
	var headers []gatehouse.Member
	for _, name := range shown {
		if v, ok := header(h, name, maxName); ok {
			headers = append(headers, gatehouse.Member{Name: strings.ToLower(name), Value: gatehouse.StringJSON(v)})
		}
	}
	input := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "body", Value: j},
		gatehouse.Member{Name: "delivery", Value: gatehouse.StringJSON(d.ID)},
		gatehouse.Member{Name: "event", Value: gatehouse.StringJSON(d.Event)},
		gatehouse.Member{Name: "headers", Value: gatehouse.ObjectJSON(headers...)},
	)
	if err := gatehouse.CheckJSON([]byte(input)); err != nil {
		return "", gatehouse.E(gatehouse.CodeMalformed, "the body of a webhook must be nested at most %d deep", gatehouse.MaxDepth-1)
	}
	return input, nil
}
