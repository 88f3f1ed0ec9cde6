package hook

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// CheckSecret returns an error if the secrets, one per line, are not valid for a kind of webhook.
func CheckSecret(kind, secret string) error {
	_, err := parseSecrets(kind, []byte(secret))
	var e *gatehouse.Error
	if errors.As(err, &e) {
		return errors.New(e.Detail) // only operators read this error, so it needs no code
	}
	return err
}

// ShareKey reports whether two receivers accept the same key. Each may then accept the other's
// webhooks, because no signature names the receiver.
func ShareKey(kind, secret, otherKind, otherSecret string) bool {
	keys, err := parseSecrets(kind, []byte(secret))
	others, otherErr := parseSecrets(otherKind, []byte(otherSecret))
	return err == nil && otherErr == nil && slices.ContainsFunc(keys, func(key []byte) bool {
		return slices.ContainsFunc(others, func(other []byte) bool { return bytes.Equal(key, other) })
	})
}

// TargetFields are the JSON pointers (RFC 6901) to the fields of a report about a changed
// target. An EntityType that does not begin with a slash is the type itself; Version may be "".
type TargetFields struct{ EntityType, EntityRef, Version string }

// Change parses the body of a report. The error has code malformed for a body that is not JSON,
// and invalid for one that does not name an entity.
func (f TargetFields) Change(connector string, body []byte) (gatehouse.TargetChange, error) {
	none := gatehouse.TargetChange{}
	j, err := gatehouse.Canonicalize(body)
	if err != nil {
		return none, gatehouse.E(gatehouse.CodeMalformed, "the body of a webhook must be JSON: %v", err)
	}
	out := gatehouse.TargetChange{Connector: connector, EntityType: f.EntityType}
	for _, m := range []struct {
		pointer string
		into    *string
		needed  bool
	}{{f.EntityType, &out.EntityType, true}, {f.EntityRef, &out.EntityRef, true}, {f.Version, &out.Version, false}} {
		if !strings.HasPrefix(m.pointer, "/") {
			continue
		}
		if *m.into, err = textOrNumber(j, m.pointer, m.needed); err != nil {
			return none, err
		}
	}
	if err := out.Validate(); err != nil {
		return none, err
	}
	return out, nil
}

// textOrNumber returns a string or number of the body; "" if it is missing or null.
func textOrNumber(j gatehouse.JSON, pointer string, needed bool) (string, error) {
	v, ok := j.At(pointer)
	if !ok || v == "null" {
		v = `""`
	}
	s, isText := v.Text()
	if _, isNumber := v.Number(); isNumber {
		s, isText = string(v), true
	}
	var bad gatehouse.Violations
	switch {
	case !isText:
		bad.Add(pointer, "must be a text or a number")
	case needed && s == "":
		bad.Add(pointer, "is required")
	}
	return s, bad.Err()
}
