package slack

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
)

// InteractionsPath is the path for Slack's requests: clicks, forms and commands.
const InteractionsPath = "/slack/interactions"

// maxRequest limits a request from Slack, in bytes.
const maxRequest = 512 << 10

// ServeHTTP processes a signed request. All that it carries out comes from the verified body. It
// answers once the click is stored, or the form is open.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		http.Error(w, "the address accepts no query", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "the body is too large, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	a := d.signer(r.Header, body)
	if a == nil {
		http.Error(w, "the signature is wrong, or too old", http.StatusUnauthorized)
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form, err := url.ParseQuery(string(body))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		http.Error(w, "the body is not a form", http.StatusBadRequest)
		return
	}
	var reply any
	switch payloads := form["payload"]; {
	case len(payloads) == 1:
		reply, err = d.interact(r.Context(), a, []byte(payloads[0]))
	case len(payloads) == 0 && form.Get("command") != "":
		reply, err = d.command(r.Context(), a, form)
	case len(payloads) == 0 && form.Get("ssl_check") == "1":
	default:
		http.Error(w, "the form has no payload", http.StatusBadRequest)
		return
	}
	switch {
	case invalidRequest(err):
		http.Error(w, "the payload is not a request of Gatehouse's Slack app", http.StatusBadRequest)
	case err != nil:
		d.Log.WarnContext(r.Context(), "slack: a request was not accepted", "error", err)
		http.Error(w, "not accepted; try again", http.StatusServiceUnavailable)
	case reply == nil:
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(reply)
	}
}

// signer is the app whose secret signed a request, nil for none.
func (d *Handler) signer(h http.Header, body []byte) (found *app) {
	for _, a := range d.apps {
		for _, secret := range a.secrets {
			if Verify(secret, h, body, d.Now()) == nil {
				found = a
			}
		}
	}
	return found
}
