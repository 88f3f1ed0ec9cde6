package hook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
)

var now = time.Unix(1614265330, 0)

// request is a received webhook.
type request struct {
	kind, secret string
	header       http.Header
	body         string
	now          time.Time
}

func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// github is GitHub's example: the secret, body and signature of "Testing the
// webhook payload validation" on
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries.
func github() request {
	return request{
		kind: hook.KindGitHub, secret: "It's a Secret to Everybody", body: "Hello, World!", now: now,
		header: headers(
			"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
			"X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event", "issues"),
	}
}

// generic is the vector of the reference libraries of Standard Webhooks, "sign
// function works" in libraries/javascript/src/webhook.test.ts.
func generic() request {
	return request{
		kind: hook.KindGeneric, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", body: `{"test": 2432232314}`, now: now,
		header: headers(
			"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
			"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
	}
}

// serviceNow is signed by the HMAC of RFC 4231, section 4.3, whose key and data
// are texts.
func serviceNow() request {
	mac, _ := hex.DecodeString("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
	return request{
		kind: hook.KindServiceNow, secret: "Jefe", body: "what do ya want for nothing?", now: now,
		header: headers("x-sn-hmac-signature-256", base64.StdEncoding.EncodeToString(mac)),
	}
}

func (r request) verify() (hook.Delivery, error) {
	return hook.Verify(r.kind, []byte(r.secret), r.header, []byte(r.body), r.now)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	long := serviceNow()
	long.header.Set("x-sn-hmac-signature-256", "KEYID=8c11fe,SIGNATURE="+long.header.Get("x-sn-hmac-signature-256"))
	body := sha256.Sum256([]byte(long.body))
	bare := generic()
	bare.secret = strings.TrimPrefix(bare.secret, "whsec_")
	many := generic()
	many.header.Set("webhook-signature",
		"v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== "+
			"v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= "+many.header.Get("webhook-signature"))
	rotated := github()
	rotated.secret = "another\r\n\n" + rotated.secret + "\nnext\n"
	for name, tc := range map[string]struct {
		request request
		want    hook.Delivery
	}{
		"github":             {github(), hook.Delivery{ID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", Event: "issues"}},
		"github rotating":    {rotated, hook.Delivery{ID: "72d3162e-cc78-11e3-81ab-4c9367dc0958", Event: "issues"}},
		"servicenow":         {serviceNow(), hook.Delivery{ID: "sha256:" + hex.EncodeToString(body[:])}},
		"servicenow long":    {long, hook.Delivery{ID: "sha256:" + hex.EncodeToString(body[:])}},
		"generic":            {generic(), hook.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"}},
		"generic bare":       {bare, hook.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"}},
		"generic several":    {many, hook.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"}},
		"generic just late":  {at(generic(), hook.Tolerance), hook.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"}},
		"generic just early": {at(generic(), -hook.Tolerance), hook.Delivery{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.request.verify()
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

func at(r request, after time.Duration) request {
	r.now = r.now.Add(after)
	return r
}

func TestRefused(t *testing.T) {
	t.Parallel()
	base := map[string]func() request{"github": github, "servicenow": serviceNow, "generic": generic}
	signature := map[string]string{"github": "X-Hub-Signature-256", "servicenow": "X-Sn-Hmac-Signature-256",
		"generic": "Webhook-Signature"}
	for name, change := range map[string]func(r *request, signature string){
		"another body":       func(r *request, _ string) { r.body += " " },
		"no body":            func(r *request, _ string) { r.body = "" },
		"another secret":     func(r *request, _ string) { r.secret = "whsec_AAAA" },
		"no signature":       func(r *request, s string) { r.header.Del(s) },
		"an empty signature": func(r *request, s string) { r.header.Set(s, "") },
		"a cut signature":    func(r *request, s string) { v := r.header.Get(s); r.header.Set(s, v[:len(v)-4]) },
		"half a MAC":         func(r *request, s string) { r.header.Set(s, r.header.Get(s)[:20]) },
		"two headers":        func(r *request, s string) { r.header.Add(s, r.header.Get(s)) },
		"a long header": func(r *request,
			s string) {
			r.header.Set(s, strings.Repeat("v1,AAAA ", 1000)+r.header.Get(s))
		},
		"a prefix only": func(r *request, s string) {
			r.header.Set(s, map[string]string{"github": "sha256=", "generic": "v1,"}[r.kind])
		},
	} {
		for kind, request := range base {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				r := request()
				change(&r, signature[kind])
				refused(t, r)
			})
		}
	}
	for name, r := range map[string]request{
		"github without its name": without(github(), "X-GitHub-Delivery"),
		"github without an event": without(github(), "X-GitHub-Event"),
		"github by SHA-1": with(github(), "X-Hub-Signature-256",
			"sha1=7d38cdd689735b008b3c702edd92eea23791c5f6"),
		"github without sha256=": with(github(), "X-Hub-Signature-256",
			strings.TrimPrefix(github().header.Get("X-Hub-Signature-256"), "sha256=")),
		"servicenow in digits": with(serviceNow(), "X-Sn-Hmac-Signature-256",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
		"servicenow no SIGNATURE":      with(serviceNow(), "X-Sn-Hmac-Signature-256", "KEYID=1"),
		"generic of another id":        with(generic(), "Webhook-Id", "msg_2"),
		"generic without an id":        without(generic(), "Webhook-Id"),
		"generic of another time":      with(generic(), "Webhook-Timestamp", "1614265331"),
		"generic without a time":       without(generic(), "Webhook-Timestamp"),
		"generic with a word for time": with(generic(), "Webhook-Timestamp", "hello"),
		"generic with a signed time":   with(generic(), "Webhook-Timestamp", "+1614265330"),
		"generic with a huge time":     with(generic(), "Webhook-Timestamp", "999999999999"),
		"generic too old":              at(generic(), hook.Tolerance+time.Second),
		"generic from the future":      at(generic(), -hook.Tolerance-time.Second),
		"generic of another version": with(generic(), "Webhook-Signature",
			"v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
		"generic with parts in between": with(generic(), "Webhook-Signature",
			"v1, g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, r)
		})
	}
}

func without(r request, name string) request {
	r.header.Del(name)
	return r
}

func with(r request, name, value string) request {
	r.header.Set(name, value)
	return r
}

func refused(t *testing.T, r request) {
	t.Helper()
	d, err := r.verify()
	if gatehouse.CodeOf(err) != gatehouse.CodeBadSignature || d != (hook.Delivery{}) {
		t.Errorf("delivery %+v, err = %v", d, err)
	}
	if err != nil && strings.Contains(err.Error(), r.secret) {
		t.Errorf("the secret is in the error: %v", err)
	}
}

// TestManySignatures: the body is hashed once, however many signatures a stranger sends. Each hash allocates.
func TestManySignatures(t *testing.T) {
	allocations := func(signatures int) float64 {
		r := generic()
		r.header.Set("Webhook-Signature", strings.Repeat("v1, ", signatures))
		return testing.AllocsPerRun(10, func() {
			if _, err := r.verify(); gatehouse.CodeOf(err) != gatehouse.CodeBadSignature {
				t.Errorf("%d signatures: %v", signatures, err)
			}
		})
	}
	if one, many := allocations(1), allocations(1000); many > 2*one {
		t.Errorf("1 signature: %.0f allocations, 1000: %.0f", one, many)
	}
}

// TestUnusableSecrets: unusable secrets never verify anything; even an empty key would produce
// MACs.
func TestUnusableSecrets(t *testing.T) {
	t.Parallel()
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte("x"))
	for _, tc := range []struct {
		kind, secret string
		code         gatehouse.Code
	}{
		{hook.KindGitHub, "", gatehouse.CodeInternal},
		{hook.KindServiceNow, "\r\n\n", gatehouse.CodeInternal},
		{hook.KindGeneric, "whsec_", gatehouse.CodeInternal},
		{hook.KindGeneric, "not base64", gatehouse.CodeInternal},
		{hook.KindGeneric, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nnot base64", gatehouse.CodeInternal},
		{"stripe", "x", gatehouse.CodeUnsupported},
	} {
		h := headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)), "X-GitHub-Delivery", "1",
			"X-GitHub-Event", "e",
			"X-Sn-Hmac-Signature-256", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		_, err := hook.Verify(tc.kind, []byte(tc.secret), h, []byte("x"), now)
		if gatehouse.CodeOf(err) != tc.code {
			t.Errorf("%s %q: %v", tc.kind, tc.secret, err)
		}
	}
}

// sign signs a body as a sender of a kind does.
func sign(kind, secret, id string, body []byte) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	switch kind {
	case hook.KindGitHub:
		mac.Write(body)
		return headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)), "X-GitHub-Delivery", id,
			"X-GitHub-Event", "push")
	case hook.KindServiceNow:
		mac.Write(body)
		return headers("X-Sn-Hmac-Signature-256", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	default:
		fmt.Fprintf(mac, "%s.%d.%s", id, now.Unix(), body)
		return headers("Webhook-Id", id, "Webhook-Timestamp", fmt.Sprint(now.Unix()), "Webhook-Signature",
			"v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
}

func TestEventsOfBodies(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]map[string]string{
		`{"event": "incident.inserted", "type": "contact.created"}`: {hook.KindServiceNow: "incident.inserted",
			hook.KindGeneric: "contact.created"},
		`{"event": 5, "type": null}`: {},
		`[1]`:                        {},
		`nonsense`:                   {},
		`{"event": "` + strings.Repeat("x", 256) + `"}`: {},
	} {
		for _, kind := range []string{hook.KindServiceNow, hook.KindGeneric} {
			secret := "0123456789abcdef"
			given := secret
			if kind == hook.KindGeneric {
				given = base64.StdEncoding.EncodeToString([]byte(secret))
			}
			d, err := hook.Verify(kind, []byte(given), sign(kind, secret, "msg_1", []byte(body)), []byte(body), now)
			if err != nil || d.Event != want[kind] {
				t.Errorf("%s %s: %+v, %v", kind, body, d, err)
			}
		}
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	h := headers("Authorization", "Bearer x", "Cookie", "a=b", "X-Hub-Signature-256", "sha256=00", "Webhook-Signature",
		"v1,x",
		"User-Agent", "GitHub-Hookshot/044aadd", "X-Github-Event", "issues", "Webhook-Id", "1", "Webhook-Id", "2",
		"Content-Type", "application/json\x01")
	got, err := hook.Input(h, hook.Delivery{ID: "d-1", Event: "issues"},
		[]byte(`{"n": 12345678901234567890.10, "a": "é"}`))
	want := gatehouse.JSON(
		`{"body":{"a":"é","n":12345678901234567890.10},"delivery":"d-1","event":"issues",` +
			`"headers":{"user-agent":"GitHub-Hookshot/044aadd","x-github-event":"issues"}}`)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := hook.Input(nil, hook.Delivery{}, deep(gatehouse.MaxDepth-1)); err != nil {
		t.Error(err)
	}
	for _, body := range [][]byte{nil, []byte("payload=%7B%7D"), []byte(`{"a":1,"a":2}`), deep(gatehouse.MaxDepth)} {
		if got, err := hook.Input(nil, hook.Delivery{}, body); gatehouse.CodeOf(err) != gatehouse.CodeMalformed || got != "" {
			t.Errorf("%.40s: %s, %v", body, got, err)
		}
	}
}

// FuzzVerify tries headers and bodies: an accepted request has an id, and is refused with another
// body or another secret.
func FuzzVerify(f *testing.F) {
	for _, r := range []request{github(), serviceNow(), generic()} {
		h := r.header
		f.Add(r.kind, r.body, h.Get("X-Hub-Signature-256")+h.Get("X-Sn-Hmac-Signature-256")+h.Get("Webhook-Signature"),
			h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"))
	}
	secrets := map[string]string{hook.KindGitHub: github().secret, hook.KindServiceNow: serviceNow().secret,
		hook.KindGeneric: generic().secret}
	f.Fuzz(func(t *testing.T, kind, body, signature, id, at string) {
		h := http.Header{
			"X-Hub-Signature-256": {signature}, "X-Sn-Hmac-Signature-256": {signature}, "Webhook-Signature": {signature},
			"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "X-Github-Delivery": {id}, "X-Github-Event": {id},
		}
		secret := secrets[kind]
		d, err := hook.Verify(kind, []byte(secret), h, []byte(body), now)
		if err != nil {
			if d != (hook.Delivery{}) {
				t.Errorf("a delivery beside %v: %+v", err, d)
			}
			return
		}
		if d.ID == "" || len(d.ID) > 255 {
			t.Errorf("delivery %+v", d)
		}
		if _, err := hook.Verify(kind, []byte(secret), h, []byte(body+"x"), now); err == nil {
			t.Error("another body was accepted")
		}
		if _, err := hook.Verify(kind, []byte("QUFBQQ=="), h, []byte(body), now); err == nil {
			t.Error("another secret was accepted")
		}
		if _, err := hook.Input(h, d, []byte(body)); err != nil && gatehouse.CodeOf(err) != gatehouse.CodeMalformed {
			t.Error(err)
		}
	})
}
