package snowtest

import (
	"net/http"
	"time"
)

// giveToken answers the grant client_credentials (RFC 6749, section 4.4) with a
// bearer token.
func (s *Server) giveToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" ||
		r.ParseForm() != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	secret, ok := s.options.Clients[r.PostForm.Get("client_id")]
	if r.PostForm.Get("grant_type") != "client_credentials" || !ok || r.PostForm.Get("client_secret") != secret {
		writeJSON(w, http.StatusUnauthorized, map[string]string{
			"error": "server_error", "error_description": "access_denied",
		})
		return
	}
	life := s.options.TokenLife
	if life == 0 {
		life = 30 * time.Minute
	}
	s.mu.Lock()
	token := "token-" + s.newID("oauth_credential")
	s.tokens[token] = s.options.Now().Add(life)
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "scope": "useraccount", "token_type": "Bearer", "expires_in": int(life / time.Second),
	})
}

// RevokeTokens ends every token that was given, and returns their number.
func (s *Server) RevokeTokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.tokens)
	clear(s.tokens)
	return n
}
