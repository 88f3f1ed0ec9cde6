package netsuite

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
)

// TestValues converts each type to each wire form and back.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field             Field
		value             gatehouse.JSON
		rest, ours, plain gatehouse.JSON
	}{
		{Field{Type: "text"}, `"a \"b\""`, `"a \"b\""`, `"a \"b\""`, `"a \"b\""`},
		{Field{Type: "money"}, `12.50`, `12.50`, `"12.50"`, `"12.50"`},
		{Field{Type: "decimal"}, `"0.00000001"`, `0.00000001`, `"0.00000001"`, `"0.00000001"`},
		{Field{Type: "integer"}, `-3`, `-3`, `"-3"`, `"-3"`},
		{Field{Type: "boolean"}, `true`, `true`, `true`, `true`},
		{Field{Type: "date", Format: "DD.MM.YYYY"}, `"2026-11-24"`, `"2026-11-24"`, `"2026-11-24"`, `"24.11.2026"`},
		{Field{Type: "reference"}, `"-5"`, `{"id":"-5"}`, `"-5"`, `"-5"`},
		{Field{Type: "choice", Values: map[string]string{"on": "ON"}}, `"on"`, `{"id":"ON"}`, `"ON"`, `"ON"`},
		{Field{Type: "text"}, `null`, `null`, `null`, `null`},
	} {
		c.field.Field = "f"
		f, err := compileField("f", c.field, false)
		connectortest.Must(t, err)
		for w, want := range map[wire]gatehouse.JSON{wireREST: c.rest, wireGatehouse: c.ours, wirePlain: c.plain} {
			sent := f.send(c.value, w)
			if sent != want {
				t.Errorf("%s %s is sent as %s, want %s", f.Type, c.value, sent, want)
			}
			if got := f.read(sent, w); !f.same(c.value, got) {
				t.Errorf("%s %s is read as %s", f.Type, c.value, got)
			}
		}
	}
}

// TestScale: money has two digits after the point, but a currency such as the yen has none.
func TestScale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale *int
		value gatehouse.JSON
		wrong int
	}{{nil, `12.50`, 0}, {nil, `12.505`, 1}, {new(int), `12`, 0}, {new(int), `12.5`, 1}} {
		f, err := compileField("f", Field{Field: "f", Type: "money", Scale: c.scale}, false)
		connectortest.Must(t, err)
		var v gatehouse.Violations
		if f.check("/f", c.value, &v); len(v) != c.wrong {
			t.Errorf("scale %v, %s: %v", c.scale, c.value, v)
		}
	}
}

// TestSameValues: the differences in NetSuite's representation that count as equal.
func TestSameValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		a, b gatehouse.JSON
		same bool
	}{
		{"money", `12.50`, `"12.5"`, true},
		{"money", `12.50`, `12.51`, false},
		{"money", `0`, `null`, false},
		{"text", `""`, `null`, true},
		{"text", `"a"`, `"a "`, false},
	} {
		f, err := compileField("f", Field{Field: "f", Type: c.kind}, false)
		connectortest.Must(t, err)
		if got := f.same(c.a, c.b); got != c.same {
			t.Errorf("%s %s and %s: %v", c.kind, c.a, c.b, got)
		}
	}
}

// TestKeys: the keys that NetSuite accepts, and their algorithms.
func TestKeys(t *testing.T) {
	t.Parallel()
	text := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		connectortest.Must(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	for curve, want := range map[elliptic.Curve]jose.SignatureAlgorithm{
		elliptic.P256(): jose.ES256, elliptic.P384(): jose.ES384, elliptic.P521(): jose.ES512,
	} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		connectortest.Must(t, err)
		if _, got, err := parseKey(text(key)); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	for bits, want := range map[int]jose.SignatureAlgorithm{2048: "", 3072: jose.PS256} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		connectortest.Must(t, err)
		if _, got, err := parseKey(text(key)); got != want || (err == nil) != (want != "") {
			t.Errorf("RSA of %d bits: %s, %v", bits, got, err)
		}
	}
}
