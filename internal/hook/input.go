package hook

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// shown lists the headers that a run can read. None of them can contain a secret.
var shown = []string{
	"Content-Type", "User-Agent",
	"X-GitHub-Delivery", "X-GitHub-Event", "X-GitHub-Hook-ID",
	"X-GitHub-Hook-Installation-Target-ID", "X-GitHub-Hook-Installation-Target-Type",
	"Webhook-Id", "Webhook-Timestamp",
}

// Input makes the input of a run from a delivery: an object of body (JSON with exact numbers),
// delivery, event ("" for none), and headers, a fixed list in lower case. The sender's signature
// covers only the body and, for generic, the id and the time of the delivery. The error has code
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
		return "", gatehouse.E(gatehouse.CodeMalformed, "the body of a webhook must be nested at most %d deep",
			gatehouse.MaxDepth-1)
	}
	return input, nil
}
