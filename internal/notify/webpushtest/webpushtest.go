// Package webpushtest is a push service and the browsers that subscribe to it, for tests. The
// service checks what real ones check (RFC 8030, RFC 8292), and browsers decrypt as real ones do
// (RFC 8291).
package webpushtest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Service is a push service over TLS.
type Service struct {
	*httptest.Server
	mu       sync.Mutex
	browsers map[string]*Browser
}

// Start starts a service, which ends with the test.
func Start(t testing.TB) *Service {
	t.Helper()
	s := &Service{browsers: make(map[string]*Browser)}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// CA is the certificate that clients have to trust, as PEM.
func (s *Service) CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Browser is a subscribed browser.
type Browser struct {
	Endpoint     string
	P256DH, Auth []byte

	service *Service
	private *ecdh.PrivateKey
	// key is the applicationServerKey.
	key     []byte
	status  int
	after   string
	got     []Push
	refused []string
}

// Push is a message as the browser shows it, with headers of the sender's request.
type Push struct {
	Title, Body, Navigate, Tag string
	Urgency, Topic             string
	TTL                        int
}

// Subscribe makes a browser that accepts messages only from the holder of a key.
func (s *Service) Subscribe(t testing.TB, applicationServerKey []byte) *Browser {
	t.Helper()
	if _, err := ecdh.P256().NewPublicKey(applicationServerKey); err != nil {
		t.Fatalf("applicationServerKey: %v", err)
	}
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{
		P256DH: private.PublicKey().Bytes(), Auth: make([]byte, 16), service: s, private: private,
		key: applicationServerKey, status: http.StatusCreated,
	}
	_, _ = rand.Read(b.Auth)
	path := "/push/" + rand.Text()
	b.Endpoint = s.URL + path
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return b
}

// JSON is the subscription as PushSubscription.toJSON gives it.
func (b *Browser) JSON() string {
	encode := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"endpoint":%q,"expirationTime":null,"keys":{"p256dh":%q,"auth":%q}}`,
		b.Endpoint, encode(b.P256DH), encode(b.Auth))
}

// Answer makes the service answer for this browser with a status, and with the header Retry-After if
// retryAfter is not "".
func (b *Browser) Answer(status int, retryAfter string) {
	b.service.mu.Lock()
	defer b.service.mu.Unlock()
	b.status, b.after = status, retryAfter
}

// Got returns the messages that the browser has received.
func (b *Browser) Got() []Push {
	b.service.mu.Lock()
	defer b.service.mu.Unlock()
	return slices.Clone(b.got)
}

// Refused returns why the service refused requests that a real one would refuse.
func (b *Browser) Refused() []string {
	b.service.mu.Lock()
	defer b.service.mu.Unlock()
	return slices.Clone(b.refused)
}

// ServeHTTP takes a message.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.browsers[r.URL.Path]
	if b == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	p, status, err := b.take(r, s.URL)
	if err != nil {
		b.refused = append(b.refused, err.Error())
		http.Error(w, err.Error(), status)
		return
	}
	if b.after != "" {
		w.Header().Set("Retry-After", b.after)
	}
	if b.status/100 == 2 {
		b.got = append(b.got, p)
		w.Header().Set("Location", s.URL+"/message/"+rand.Text())
	}
	w.WriteHeader(b.status)
}

var topics = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func (b *Browser) take(r *http.Request, origin string) (p Push, status int, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return p, http.StatusBadRequest, err
	}
	if r.Method != http.MethodPost || r.URL.RawQuery != "" {
		return p, http.StatusBadRequest, errors.New("not a POST to the endpoint")
	}
	if err := vapid(r.Header.Get("Authorization"), b.key, origin, time.Now()); err != nil {
		return p, http.StatusForbidden, err
	}
	if p.TTL, err = strconv.Atoi(r.Header.Get("TTL")); err != nil || p.TTL < 0 {
		return p, http.StatusBadRequest, errors.New("no TTL")
	}
	p.Urgency, p.Topic = r.Header.Get("Urgency"), r.Header.Get("Topic")
	switch {
	case !slices.Contains([]string{"", "very-low", "low", "normal", "high"}, p.Urgency):
		return p, http.StatusBadRequest, errors.New("unknown urgency")
	case p.Topic != "" && !topics.MatchString(p.Topic):
		return p, http.StatusBadRequest, errors.New("invalid topic")
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return p, http.StatusBadRequest, errors.New("not encoded by aes128gcm")
	case len(body) > 4096:
		return p, http.StatusRequestEntityTooLarge, errors.New("more than 4096 bytes")
	}
	plain, err := b.decrypt(body)
	if err != nil {
		return p, http.StatusBadRequest, err
	}
	var message struct {
		Version      int `json:"web_push"`
		Notification *Push
	}
	message.Notification = &p
	if err := json.Unmarshal(plain, &message); err != nil || message.Version != 8030 {
		return p, http.StatusBadRequest, fmt.Errorf("not a declarative message: %s", plain)
	}
	return p, 0, nil
}

// vapid checks the header Authorization by RFC 8292.
func vapid(header string, key []byte, origin string, now time.Time) error {
	fields, ok := strings.CutPrefix(header, "vapid ")
	if !ok {
		return errors.New("no VAPID")
	}
	values := make(map[string]string)
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		values[name] = value
	}
	decode := base64.RawURLEncoding.DecodeString
	if k, err := decode(values["k"]); err != nil || string(k) != string(key) {
		return errors.New("the key is not that of the subscription")
	}
	parts := strings.Split(values["t"], ".")
	if len(parts) != 3 {
		return errors.New("not a JWT")
	}
	var head struct{ Typ, Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	for i, to := range []any{&head, &claims} {
		text, err := decode(parts[i])
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		if err != nil {
			return err
		}
	}
	signature, err := decode(parts[2])
	if err != nil || head.Alg != "ES256" || head.Typ != "JWT" || len(signature) != 64 {
		return errors.New("not signed by ES256")
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	left := time.Unix(claims.Exp, 0).Sub(now)
	switch {
	case !ecdsa.Verify(public, sum[:], r, s):
		return errors.New("the signature is wrong")
	case claims.Aud != origin:
		return errors.New("aud is " + claims.Aud)
	case left <= 0 || left > 24*time.Hour:
		return fmt.Errorf("exp is in %s", left)
	case !strings.HasPrefix(claims.Sub, "mailto:") && !strings.HasPrefix(claims.Sub, "https:"):
		return errors.New("sub is " + claims.Sub)
	}
	return nil
}

// decrypt opens a message of one record (RFC 8188, RFC 8291).
func (b *Browser) decrypt(body []byte) ([]byte, error) {
	const fixed = 16 + 4 + 1
	if len(body) < fixed || len(body) < fixed+int(body[20]) {
		return nil, errors.New("no header of aes128gcm")
	}
	salt, size := body[:16], int(binary.BigEndian.Uint32(body[16:20]))
	sender, record := body[fixed:fixed+int(body[20])], body[fixed+int(body[20]):]
	switch {
	case size < 18:
		return nil, errors.New("the record size is below 18")
	case len(record) > size:
		return nil, errors.New("more than one record")
	}
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.private.ECDH(public)
	if err != nil {
		return nil, err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, e := hkdf.Key(sha256.New, secret, salt, info, n)
		err = errors.Join(err, e)
		return out
	}
	input := derive(shared, b.Auth, "WebPush: info\x00"+string(b.P256DH)+string(sender), 32)
	key := derive(input, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce := derive(input, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, record, nil)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(plain), "\x00")
	if !strings.HasSuffix(text, "\x02") {
		return nil, errors.New("no last record")
	}
	return []byte(strings.TrimSuffix(text, "\x02")), nil
}
