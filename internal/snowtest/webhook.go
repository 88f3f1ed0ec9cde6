package snowtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Hook is the receiver of notices of incidents, as a business rule with an outbound REST message
// sends them.
type Hook struct {
	URL    string
	Secret []byte
	// KeyID, when given, is sent with the signature.
	KeyID string
	// Client is http.DefaultClient by default.
	Client *http.Client
}

// Notice is the notice of an incident's present state: event, such as incident.inserted, and the
// incident's values, all of them texts. Two notices of one event of an unchanged incident are equal.
// It panics when there is no such incident.
func (s *Server) Notice(sysID, event string) []byte {
	values := s.Incident(sysID)
	if values == nil {
		panic("snowtest: there is no incident " + sysID)
	}
	values["event"] = event
	body, err := json.Marshal(values)
	if err != nil {
		panic(err) // a map of strings can always be encoded
	}
	return body
}

// Sign returns the value of x-sn-hmac-signature-256 for a body: its HMAC-SHA256
// in base64, with the key's id where there is one.
func (h Hook) Sign(body []byte) string {
	mac := hmac.New(sha256.New, h.Secret)
	mac.Write(body)
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if h.KeyID != "" {
		return "KEYID=" + h.KeyID + ",SIGNATURE=" + signature
	}
	return signature
}

// Tell sends a notice of an incident, once, and returns the answer.
func (s *Server) Tell(ctx context.Context, h Hook, sysID, event string) (status int, answer []byte, err error) {
	body := s.Notice(sysID, event)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "ServiceNow/1.0 (gatehouse fake)")
	req.Header.Set("X-Sn-Hmac-Signature-256", h.Sign(body))
	client := h.Client
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("tell of an incident: %w", err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(res.Body, maxBody))
	return res.StatusCode, answer, err
}
