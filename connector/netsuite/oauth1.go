package netsuite

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// tba signs requests by OAuth 1.0 (RFC 5849) with HMAC-SHA256, as NetSuite's token-based
// authentication requires.
type tba struct {
	realm                                             string
	consumerKey, consumerSecret, tokenID, tokenSecret string
	nonce                                             func() string
	now                                               func() time.Time
}

// sign sets the Authorization header. The query parameters are signed, but stay in the URL only;
// the JSON body and the realm are not signed.
func (a *tba) sign(r *rest.Request) {
	oauth := [][2]string{
		{"oauth_consumer_key", a.consumerKey},
		{"oauth_nonce", a.nonce()},
		{"oauth_signature_method", "HMAC-SHA256"},
		{"oauth_timestamp", strconv.FormatInt(a.now().Unix(), 10)},
		{"oauth_token", a.tokenID},
		{"oauth_version", "1.0"},
	}
	pairs := slices.Clone(oauth)
	for name, values := range r.URL.Query() {
		for _, value := range values {
			pairs = append(pairs, [2]string{name, value})
		}
	}
	mac := hmac.New(sha256.New, []byte(encode(a.consumerSecret)+"&"+encode(a.tokenSecret)))
	mac.Write([]byte(baseString(r.Method, r.URL, pairs)))
	oauth = append(oauth, [2]string{"oauth_signature", base64.StdEncoding.EncodeToString(mac.Sum(nil))})

	header := `OAuth realm="` + encode(a.realm) + `"`
	for _, p := range oauth {
		header += `, ` + p[0] + `="` + encode(p[1]) + `"`
	}
	r.SetSecret("Authorization", header)
}

// baseString is RFC 5849, section 3.4.1.
func baseString(method string, u *url.URL, pairs [][2]string) string {
	encoded := make([]string, len(pairs))
	for i, p := range pairs {
		encoded[i] = encode(p[0]) + "=" + encode(p[1])
	}
	slices.Sort(encoded)
	return strings.ToUpper(method) + "&" + encode(u.Scheme+"://"+u.Host+u.EscapedPath()) + "&" +
		encode(strings.Join(encoded, "&"))
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
