package gatehouse_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want time.Duration
		form string
	}{
		{"0s", 0, "0s"},
		{"0d", 0, "0s"},
		{"30s", 30 * time.Second, "30s"},
		{"90s", 90 * time.Second, "1m30s"},
		{"90m", 90 * time.Minute, "1h30m"},
		{"4h", 4 * time.Hour, "4h"},
		{"10m", 10 * time.Minute, "10m"},
		{"1h0m30s", time.Hour + 30*time.Second, "1h0m30s"},
		{"24h", 24 * time.Hour, "1d"},
		{"7d", 7 * 24 * time.Hour, "7d"},
		{"36h", 36 * time.Hour, "36h"},
		{"240h", 240 * time.Hour, "10d"},
		{"1.5h", 90 * time.Minute, "1h30m"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"36500d", 36500 * 24 * time.Hour, "36500d"},
	} {
		d, err := gatehouse.ParseDuration(c.text)
		if err != nil || d.D() != c.want || d.String() != c.form {
			t.Errorf("ParseDuration(%q) = %s, %v; want %s as %s", c.text, d, err, c.want, c.form)
		}
		var v struct{ D gatehouse.Duration }
		if err := json.Unmarshal([]byte(`{"D":"`+c.text+`"}`), &v); err != nil || v.D != d {
			t.Errorf("decoded %q as %s, %v", c.text, v.D, err)
		}
		if b, err := json.Marshal(d); err != nil || string(b) != `"`+c.form+`"` {
			t.Errorf("encoded %s as %s, %v", d, b, err)
		}
	}
	for _, text := range []string{"", "4", "d", "-1h", "-1d", "1.5d", "1d12h", "36501d", "876001h", "9999999d", "1w",
		" 1h", "1h ", "soon", "９d"} {
		if d, err := gatehouse.ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %s", text, d)
		}
	}
}

// TestSpan: a written zero is refused, so that the zero Span always means an
// omitted value.
func TestSpan(t *testing.T) {
	t.Parallel()
	type member struct {
		S gatehouse.Span `json:"s,omitempty"`
	}
	for text, want := range map[string]string{`{"s":"4h"}`: `{"s":"4h"}`, `{"s":"24h"}`: `{"s":"1d"}`,
		`{"s":"1ns"}`: `{"s":"1ns"}`, `{}`: `{}`, `{"s":null}`: `{}`} {
		var m member
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if b, err := json.Marshal(m); err != nil || string(b) != want {
			t.Errorf("%s came back as %s, %v", text, b, err)
		}
	}
	for _, text := range []string{"0s", "0d", "0", "-0s", "0h0m", "0.0000000001ns", "soon", "-1s", ""} {
		var s gatehouse.Span
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("read %q as %s, want an error", text, s)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(
			[]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		limit := int64(36500 * 24 * time.Hour / unit)
		d := gatehouse.Duration(time.Duration(rapid.Int64Range(0, limit).Draw(t, "n")) * unit)
		if back, err := gatehouse.ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("%d is %s, which is %d, %v", d, d, back, err)
		}
	})
}

func TestHash(t *testing.T) {
	t.Parallel()
	h := gatehouse.Hash{0: 1, 31: 0xff}
	b, err := json.Marshal(h)
	if err != nil || string(b) != `"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP8="` {
		t.Fatalf("%s, %v", b, err)
	}
	var back gatehouse.Hash
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("%x, %v", back, err)
	}
	for _, text := range []string{`""`, `"AQ=="`, `"!"`, `"` + strings.Repeat("A", 44) + `"`,
		`"` + strings.Repeat("A", 48) + `"`} {
		if err := json.Unmarshal([]byte(text), &back); err == nil || back != h {
			t.Errorf("decoded %s as %x, %v", text, back, err)
		}
	}
}

// TestNewDigest uses the SHA-256 of "abc" from FIPS 180-2.
func TestNewDigest(t *testing.T) {
	t.Parallel()
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := gatehouse.NewDigest("abc"); got != want {
		t.Errorf("NewDigest = %s", got)
	}
}
