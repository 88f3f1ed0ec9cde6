package gatehouse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// JSON is a JSON value in canonical form (see [Canonicalize]), or "" for absent.
// Numbers keep their exact lexeme. It marshals as itself, absent as null. It
// unmarshals by canonicalizing: duplicate keys, and anything else that the
// canonical form refuses, are errors.
type JSON string

// MarshalJSON returns the text unchanged.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON canonicalizes. A null becomes absent.
func (j *JSON) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*j = ""
		return nil
	}
	c, err := Canonicalize(b)
	if err != nil {
		return err
	}
	*j = c
	return nil
}

// IsObject reports whether the value is a JSON object.
func (j JSON) IsObject() bool { return strings.HasPrefix(string(j), "{") }

// MustJSON canonicalizes the encoding/json form of v. It panics when v cannot be
// marshaled: use it for the program's own values only.
func MustJSON(v any) JSON {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gatehouse: marshal %T: %v", v, err))
	}
	c, err := Canonicalize(b)
	if err != nil {
		panic(fmt.Sprintf("gatehouse: canonicalize %T: %v", v, err))
	}
	return c
}

// Duration marshals like 4h, 1h30m or 7d; days are 24 hours.
type Duration time.Duration

const maxDays = 36500

// ParseDuration reads "4h", "1h30m", "7d". Negative ones, and those over
// 36500d, are refused.
func ParseDuration(s string) (Duration, error) {
	if number, ok := strings.CutSuffix(s, "d"); ok && len(number) <= 6 && allDigits(number) {
		days, err := strconv.Atoi(number)
		if err != nil || days > maxDays {
			return 0, fmt.Errorf("%s is not a duration such as 30s, 4h or 7d", Quote(s))
		}
		return Duration(time.Duration(days) * 24 * time.Hour), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxDays*24*time.Hour {
		return 0, fmt.Errorf("%s is not a duration such as 30s, 4h or 7d", Quote(s))
	}
	return Duration(d), nil
}

// D returns the duration as a [time.Duration].
func (d Duration) D() time.Duration { return time.Duration(d) }

func (d Duration) String() string {
	const day = Duration(24 * time.Hour)
	if d != 0 && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns the form that ParseDuration reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	if err != nil {
		return err
	}
	*d = v
	return nil
}

// Span is an optional Duration with a default: the zero Span is absent, and a
// written one must be positive. "0s" is refused, so that it cannot pass for an
// omitted value.
type Span Duration

// D returns the span as a [time.Duration].
func (s Span) D() time.Duration { return time.Duration(s) }

func (s Span) String() string { return Duration(s).String() }

// MarshalText returns the form that ParseDuration reads.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseDuration reads, except for zero.
func (s *Span) UnmarshalText(b []byte) error {
	d, err := ParseDuration(string(b))
	if err != nil {
		return err
	}
	if d == 0 {
		return fmt.Errorf("%s is zero; leave it out for the default", Quote(string(b)))
	}
	*s = Span(d)
	return nil
}

// Hash is a SHA-256 value. Its text form is base64, as in transparency logs.
type Hash [32]byte

// MarshalText returns standard base64.
func (h Hash) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString(h[:])), nil
}

// UnmarshalText reads standard base64 of 32 bytes.
func (h *Hash) UnmarshalText(b []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%s is not a base64 SHA-256", Quote(string(b)))
	}
	copy(h[:], raw)
	return nil
}

// Digest is the SHA-256 of a canonical form: "sha256:" and 64 lower-case hexadecimal
// digits. An action's digest identifies the content that is shown, voted on, queued and
// sent.
type Digest string

// NewDigest hashes the bytes of a canonical form.
func NewDigest(canonical JSON) Digest {
	sum := sha256.Sum256([]byte(canonical))
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@:+-]{0,127}$`)

// NameRule says what [ValidName] requires.
const NameRule = "must be 1 to 128 letters, digits, or any of ._@:+- and begin with a letter or digit"

// ValidName reports whether s can name a principal, tenant or connector.
func ValidName(s string) bool { return nameForm.MatchString(s) }
