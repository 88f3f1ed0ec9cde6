package link_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/link"
)

var update = flag.Bool("update", false, "write testdata/tokens.json")

// vector is one entry of testdata/tokens.json.
type vector struct {
	Name      string           `json:"name"`
	Secret    string           `json:"secret"` // hex
	Key       uint32           `json:"key"`
	Purpose   link.Purpose     `json:"purpose"`
	Tenant    string           `json:"tenant"`
	Subject   string           `json:"subject"`
	Digest    gatehouse.Digest `json:"digest,omitempty"`
	Recipient string           `json:"recipient"`
	Expires   int64            `json:"expires"`
	Task      string           `json:"task,omitempty"`
	Token     string           `json:"token"`
	Code      string           `json:"code,omitempty"`
}

func (v *vector) claims() link.Claims {
	c := link.Claims{
		Key: v.Key, Purpose: v.Purpose, Tenant: v.Tenant, Subject: v.Subject, Digest: v.Digest, Recipient: v.Recipient,
		Expires: time.Unix(v.Expires, 0).UTC(),
	}
	if v.Task != "" {
		task := sha256.Sum256([]byte(v.Task))
		c.Task = task[:]
	}
	return c
}

func vectors() []vector {
	secret := strings.Repeat("000102030405060708090a0b0c0d0e0f", 2)
	d := gatehouse.Digest("sha256:" + strings.Repeat("ab", 32))
	return []vector{
		{
			Name: "review", Secret: secret, Key: 7, Purpose: link.Review, Tenant: "default", Subject: "rev_1", Digest: d,
			Recipient: "prn_ana", Expires: 1_900_000_000,
		},
		{
			Name: "review with a task token", Secret: secret, Key: 4_294_967_295, Purpose: link.Review, Tenant: "acme",
			Subject: "rev_0193f2c2c2c27ccc8ccc0123456789ab", Digest: d, Recipient: "prn_ben", Expires: 4_000_000_000,
			Task: "AAAAKgAAAAIAAAAAAAAAAQ==",
		},
		{
			Name: "device", Secret: secret, Key: 1, Purpose: link.Device, Tenant: strings.Repeat("t", 128),
			Subject: "ses_1", Recipient: "prn_ana", Expires: 1_800_000_000,
		},
		{
			Name: "unsubscribe", Secret: secret, Key: 2, Purpose: link.Unsubscribe, Tenant: "default",
			Subject: "mail", Recipient: "prn_ana", Expires: 1_800_000_000,
		},
	}
}

// TestVectors compares the format with its language-neutral vectors.
func TestVectors(t *testing.T) {
	t.Parallel()
	if *update {
		list := vectors()
		for i := range list {
			secret, _ := hex.DecodeString(list[i].Secret)
			list[i].Token = link.Sign(secret, list[i].claims())
			if list[i].Purpose == link.Review {
				list[i].Code = link.Code(secret, list[i].Subject)
			}
		}
		b, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/tokens.json", append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(vectors()) {
		t.Fatalf("%d vectors", len(list))
	}
	for _, v := range list {
		secret, err := hex.DecodeString(v.Secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := link.Sign(secret, v.claims()); got != v.Token {
			t.Errorf("%s: %s, want %s", v.Name, got, v.Token)
		}
		if len(v.Token) >= link.MaxLen {
			t.Errorf("%s has %d characters", v.Name, len(v.Token))
		}
		token, err := link.Parse(v.Token)
		if err != nil {
			t.Fatal(err)
		}
		if !token.Verify(secret) || !token.HasClaims(v.claims()) || !token.About(v.Purpose, v.Subject) ||
			token.Key() != v.Key || token.Expires().Unix() != v.Expires {
			t.Errorf("%s is not read back as it was signed", v.Name)
		}
		if v.Code != "" && (link.Code(secret, v.Subject) != v.Code || link.ReadCode(v.Code) != v.Code) {
			t.Errorf("%s: the code %s", v.Name, v.Code)
		}
	}
}

// TestOtherClaims checks that each claim is signed, and compared.
func TestOtherClaims(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{9}, link.KeySize)
	base := vectors()[1]
	signed := link.Sign(secret, base.claims())
	token, err := link.Parse(signed)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*link.Claims){
		"key": func(c *link.Claims) { c.Key++ }, "purpose": func(c *link.Claims) { c.Purpose = link.Device },
		"tenant": func(c *link.Claims) { c.Tenant += "x" }, "subject": func(c *link.Claims) { c.Subject += "x" },
		"digest":    func(c *link.Claims) { c.Digest = "sha256:" + gatehouse.Digest(strings.Repeat("cd", 32)) },
		"recipient": func(c *link.Claims) { c.Recipient += "x" }, "task": func(c *link.Claims) { c.Task[0]++ },
		"no task": func(c *link.Claims) { c.Task = nil },
	} {
		c := base.claims()
		change(&c)
		if token.HasClaims(c) {
			t.Errorf("another %s is accepted as the same", name)
		}
		if link.Sign(secret, c) == signed {
			t.Errorf("the %s is not signed", name)
		}
	}
	// Every single bit is covered.
	raw, err := base64.RawURLEncoding.DecodeString(signed)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		bent := bytes.Clone(raw)
		bent[i/8] ^= 1 << (i % 8)
		if token, err := link.Parse(base64.RawURLEncoding.EncodeToString(bent)); err == nil && token.Verify(secret) {
			t.Fatalf("a token with bit %d flipped verifies", i)
		}
	}
	if token.Verify(bytes.Repeat([]byte{8}, link.KeySize)) || token.Verify(nil) || token.Verify(secret[:16]) {
		t.Error("another key verifies it")
	}
}

// TestForm refuses texts that are not tokens.
func TestForm(t *testing.T) {
	t.Parallel()
	good := link.Sign(make([]byte, link.KeySize), vectors()[0].claims())
	for _, s := range []string{
		"", "x", good + "A", good[:len(good)-4], good + "=", good + "\n", " " + good, strings.ToUpper(good),
		strings.Repeat("A", link.MaxLen+1), "Ag" + good[2:],
	} {
		token, err := link.Parse(s)
		if err == nil && token.Verify(make([]byte, link.KeySize)) {
			t.Errorf("%q is accepted as a token", s)
		}
	}
}

// TestNonce checks to which values a nonce is bound.
func TestNonce(t *testing.T) {
	t.Parallel()
	key, now := bytes.Repeat([]byte{1}, link.KeySize), time.Unix(1_800_000_000, 0)
	nonce := link.Nonce(key, "rev_1", "cookie", now)
	if nonce == link.Nonce(key, "rev_1", "cookie", now) {
		t.Error("two nonces are the same")
	}
	check := func(want bool, what string, key []byte, nonce, review, cookie string, at time.Time) {
		t.Helper()
		if link.CheckNonce(key, nonce, review, cookie, at) != want {
			t.Errorf("%s: not %v", what, want)
		}
	}
	check(true, "as it was made", key, nonce, "rev_1", "cookie", now.Add(link.NonceTTL-time.Second))
	check(false, "too late", key, nonce, "rev_1", "cookie", now.Add(link.NonceTTL))
	check(false, "before its time", key, nonce, "rev_1", "cookie", now.Add(-2*time.Second))
	check(false, "another cookie", key, nonce, "rev_1", "other", now)
	check(false, "no cookie", key, link.Nonce(key, "rev_1", "", now), "rev_1", "", now)
	check(false, "another review", key, nonce, "rev_2", "cookie", now)
	check(false, "another key", bytes.Repeat([]byte{2}, link.KeySize), nonce, "rev_1", "cookie", now)
	other := []byte(nonce)
	other[len(other)-1] ^= 1 // another character, of base64 or not
	check(false, "another nonce", key, string(other), "rev_1", "cookie", now)
	check(false, "no nonce", key, "", "rev_1", "cookie", now)
}

// TestCodes checks how codes are read.
func TestCodes(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{3}, link.KeySize)
	code := link.Code(key, "rev_1")
	if code == link.Code(key, "rev_2") || code == link.Code(bytes.Repeat([]byte{4}, link.KeySize), "rev_1") {
		t.Error("two reviews have one code")
	}
	for _, typed := range []string{code, strings.ToLower(code), " " + code[:3] + "-" + code[3:] + " "} {
		if !link.SameCode(link.ReadCode(typed), code) {
			t.Errorf("%q is not read", typed)
		}
	}
	for _, typed := range []string{"", code + "X", code[:5], "123456", "ABCDEF", "ß2345", "approve"} {
		if link.ReadCode(typed) != "" {
			t.Errorf("%q is accepted as a code", typed)
		}
	}
	if link.SameCode("", "") || link.SameCode("", code) {
		t.Error("nothing is a code")
	}
}

func FuzzParse(f *testing.F) {
	secret := bytes.Repeat([]byte{5}, link.KeySize)
	for _, v := range vectors() {
		f.Add(link.Sign(secret, v.claims()))
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := link.Parse(s)
		if err != nil {
			return
		}
		token.Key()
		token.Expires()
		if token.Verify(secret) {
			again, err := link.Parse(s)
			if err != nil || !again.Verify(secret) {
				t.Fatal("it is not the same twice")
			}
			known := false
			for _, v := range vectors() {
				known = known || link.Sign(secret, v.claims()) == s
			}
			if !known {
				t.Fatalf("%q was never signed", s)
			}
		}
	})
}
