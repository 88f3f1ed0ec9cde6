package netsuite_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// certificate is the key pair that is mapped in the fake account, generated once.
var certificate = sync.OnceValue(generate)

func generate() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func certificatePEM() string { return keyPEM(certificate()) }

func keyPEM(key *ecdsa.PrivateKey) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// serveToken is the token endpoint of the client credentials flow.
func (a *account) serveToken(w http.ResponseWriter, r *http.Request, body string) {
	refuse := func(why string) {
		a.t.Logf("token refused: %s", why)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
	}
	form, err := url.ParseQuery(body)
	switch {
	case err != nil || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/x-www-form-urlencoded":
		refuse("no form")
		return
	case form.Get("grant_type") != "client_credentials" ||
		form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
		refuse("another grant")
		return
	}
	signed, err := jose.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{
		jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	})
	if err != nil {
		refuse(err.Error())
		return
	}
	payload, err := signed.Verify(&certificate().PublicKey)
	if err != nil {
		refuse(err.Error())
		return
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Scope    string `json:"scope"`
		Audience string `json:"aud"`
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		refuse(err.Error())
		return
	}
	header, now := signed.Signatures[0].Protected, time.Now().Unix()
	switch {
	case header.KeyID != "cert-1" || header.ExtraHeaders["typ"] != "JWT":
		refuse("kid or typ")
	case claims.Issuer != "client-1" || claims.Scope != "restlets,rest_webservices":
		refuse("iss or scope")
	case claims.Audience != a.URL+"/services/rest/auth/oauth2/v1/token":
		refuse("aud")
	case claims.Expires <= now || claims.IssuedAt > now+60 || claims.Expires >= claims.IssuedAt+3600:
		refuse("iat or exp")
	default:
		token := rand.Text()
		a.mu.Lock()
		a.tokens[token] = time.Now().Add(time.Hour)
		a.log = append(a.log, "GET token")
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":"3600","token_type":"bearer"}`, token)
	}
}

// authorize checks the caller's credentials.
func (a *account) authorize(r *http.Request) error {
	header := r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(header, "Bearer "); ok {
		if until, known := a.tokens[token]; !known || time.Now().After(until) {
			return errors.New("no such token")
		}
		return nil
	}
	text, ok := strings.CutPrefix(header, "OAuth ")
	if !ok {
		return errors.New("no credentials")
	}
	given := map[string]string{}
	for part := range strings.SplitSeq(text, ", ") {
		name, quoted, _ := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.Trim(quoted, `"`))
		if err != nil {
			return err
		}
		given[name] = value
	}
	stamp, err := strconv.ParseInt(given["oauth_timestamp"], 10, 64)
	age := time.Since(time.Unix(stamp, 0))
	switch {
	case err != nil || age > 5*time.Minute || age < -5*time.Minute:
		return errors.New("timestamp")
	case given["realm"] != "1234567_SB1":
		return errors.New("realm")
	case given["oauth_signature_method"] != "HMAC-SHA256" || given["oauth_version"] != "1.0":
		return errors.New("method")
	case given["oauth_consumer_key"] != "ck" || given["oauth_token"] != "tk":
		return errors.New("key or token")
	case len(given["oauth_nonce"]) < 6 || a.nonces[given["oauth_nonce"]]:
		return errors.New("nonce")
	}
	a.nonces[given["oauth_nonce"]] = true
	var pairs []string
	for name, value := range given {
		if name != "realm" && name != "oauth_signature" {
			pairs = append(pairs, percent(name)+"="+percent(value))
		}
	}
	for name, values := range r.URL.Query() {
		for _, value := range values {
			pairs = append(pairs, percent(name)+"="+percent(value))
		}
	}
	slices.Sort(pairs)
	base := r.Method + "&" + percent("http://"+r.Host+r.URL.EscapedPath()) + "&" + percent(strings.Join(pairs, "&"))
	mac := hmac.New(sha256.New, []byte(percent(a.tba["ck"])+"&"+percent(a.tba["tk"])))
	mac.Write([]byte(base))
	if base64.StdEncoding.EncodeToString(mac.Sum(nil)) != given["oauth_signature"] {
		return errors.New("signature")
	}
	return nil
}

// percent is RFC 5849, section 3.6, implemented independently of the connector.
func percent(s string) string {
	return strings.NewReplacer("+", "%20", "%7E", "~", "*", "%2A").Replace(url.QueryEscape(s))
}
