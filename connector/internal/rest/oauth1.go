package rest

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OAuth1 signs requests by OAuth 1.0 (RFC 5849) with HMAC-SHA256.
type OAuth1 struct {
	// Realm is left out if it is empty.
	Realm                                           string
	ConsumerKey, ConsumerSecret, Token, TokenSecret string
	// Now is the clock of the time stamps.
	Now func() time.Time

	nonce string // for tests; random if it is empty
}

// Sign sets the Authorization header. The query parameters are signed, but stay in the URL only;
// the JSON body and the realm are not signed.
func (a *OAuth1) Sign(r *Request) {
	oauth := [][2]string{
		{"oauth_consumer_key", a.ConsumerKey},
		{"oauth_nonce", cmp.Or(a.nonce, rand.Text())},
		{"oauth_signature_method", "HMAC-SHA256"},
		{"oauth_timestamp", strconv.FormatInt(a.Now().Unix(), 10)},
		{"oauth_token", a.Token},
		{"oauth_version", "1.0"},
	}
	pairs := slices.Clone(oauth)
	for name, values := range r.URL.Query() {
		for _, value := range values {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	mac := hmac.New(sha256.New, []byte(encode(a.ConsumerSecret)+"&"+encode(a.TokenSecret)))
	mac.Write([]byte(baseString(r.Method, r.URL, pairs)))
	oauth = append(oauth, [2]string{"oauth_signature", base64.StdEncoding.EncodeToString(mac.Sum(nil))})

	if a.Realm != "" {
		oauth = slices.Insert(oauth, 0, [2]string{"realm", a.Realm})
	}
	parameters := make([]string, len(oauth))
	for i, p := range oauth {
		parameters[i] = p[0] + `="` + encode(p[1]) + `"`
	}
	r.SetSecret("Authorization", "OAuth "+strings.Join(parameters, ", "))
}

// baseString is RFC 5849, section 3.4.1.
func baseString(method string, u *url.URL, pairs [][2]string) string {
	encoded := make([][]string, len(pairs))
	for i, p := range pairs {
		encoded[i] = []string{encode(p[0]), encode(p[1])}
	}
	slices.SortFunc(encoded, slices.Compare) // by name, then by value
	parameters := make([]string, len(pairs))
	for i, p := range encoded {
		parameters[i] = strings.Join(p, "=")
	}
	host := strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return strings.ToUpper(method) + "&" + encode(u.Scheme+"://"+host+cmp.Or(u.EscapedPath(), "/")) + "&" +
		encode(strings.Join(parameters, "&"))
}

// encode is RFC 5849, section 3.6.
func encode(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}
