package webpush

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestRFC8291 encrypts the message of RFC 8291, appendix A, under its keys.
func TestRFC8291(t *testing.T) {
	t.Parallel()
	decode := func(s string) []byte {
		t.Helper()
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sender, err := ecdh.P256().NewPrivateKey(decode("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	s := &gatehouse.Subscription{
		P256DH: decode("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
		Auth:   decode("BTBZMqHH6r4Tts7J_aSIgg"),
	}
	got, err := encryptWith(
		[]byte("When I grow up, I want to be a watermelon"), s, sender, decode("DGv6ra1nlYgDCS1FRnbzlw"),
	)
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml" +
		"mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT" +
		"pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("encrypted:\n%s\nwant\n%s", text, want)
	}
	full, err := encrypt(make([]byte, maxPlain), s)
	if err != nil || len(full) != maxRecord {
		t.Errorf("the longest message: %d bytes, %v", len(full), err)
	}
	if _, err := encrypt(make([]byte, maxPlain+1), s); err == nil {
		t.Error("a message that is too long was encrypted")
	}
}

// TestContact: a contact that push services refuse is refused at the start.
func TestContact(t *testing.T) {
	t.Parallel()
	for contact, ok := range map[string]bool{
		"mailto:ops@example.com": true, "https://gate.example.com": true, "": false, "ops@example.com": false,
		"mailto:": false, "mailto:ops": false, "mailto:Ops <ops@example.com>": false, "http://gate.example.com": false,
		"https://localhost": false, "mailto:ops@gate.local": false, "https://gate.invalid/x": false,
	} {
		_, err := New(Config{Contact: contact})
		if (err == nil) != ok || err != nil && !strings.HasPrefix(err.Error(), "contact: ") {
			t.Errorf("%q: %v", contact, err)
		}
	}
}

// TestEndpoints: a browser cannot make the server call an address inside the network.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	const contact = "mailto:ops@example.com"
	outside, err := New(Config{Contact: contact})
	if err != nil {
		t.Fatal(err)
	}
	inside, err := New(Config{Contact: contact, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string][2]bool{ // allowed without, with AllowPrivate
		"https://fcm.googleapis.com/fcm/send/x":           {true, true},
		"https://updates.push.services.mozilla.com:443/x": {true, true},
		"https://push.example:8443/x":                     {false, true},
		"https://10.0.0.5/x":                              {false, true},
		"https://[::1]/x":                                 {false, true},
		"https://localhost/x":                             {false, true},
		"https://vault/x":                                 {false, true},
		"http://push.example/x":                           {false, false},
		"ftp://push.example/x":                            {false, false},
	} {
		got := [2]bool{outside.CheckEndpoint(endpoint) == nil, inside.CheckEndpoint(endpoint) == nil}
		if got != want {
			t.Errorf("%s: %v, want %v", endpoint, got, want)
		}
	}
}

// TestAudience: the audience of a token is the origin of the endpoint, which has no default port.
func TestAudience(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{
		"https://push.example/send/x":      `"aud":"https://push.example"`,
		"https://push.example:443/send/x":  `"aud":"https://push.example"`,
		"https://push.example:8443/send/x": `"aud":"https://push.example:8443"`,
	} {
		header, err := authorization(key, endpoint, "mailto:ops@example.com", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(header, ".")[1])
		if err != nil || !strings.Contains(string(claims), want) {
			t.Errorf("%s: %s, %v, want %s", endpoint, claims, err, want)
		}
	}
}
