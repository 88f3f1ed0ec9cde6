package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// newKey makes a key for an origin from a seed of one repeated byte.
func newKey(t testing.TB, origin string, seed byte) *audit.Key {
	t.Helper()
	key, err := audit.NewKey(origin, bytes.Repeat([]byte{seed}, 32))
	must(t, err)
	return key
}

func TestCheckpointRoundTrip(t *testing.T) {
	t.Parallel()
	origin := audit.Origin("gate.example.com", "a+b")
	key := newKey(t, origin, 1)
	_, head := logOf(11)
	msg, err := audit.SignCheckpoint(head, key)
	must(t, err)
	root, _ := head.Root.MarshalText()
	if want := fmt.Sprintf("gate.example.com/a%%2Bb\n11\n%s\n\n— gate.example.com/a%%2Bb ",
		root); !strings.HasPrefix(string(msg), want) {
		t.Errorf("checkpoint:\n%swant the beginning\n%s", msg, want)
	}
	got, err := audit.VerifyCheckpoint(msg, key.Public())
	if err != nil || got != (gatehouse.LogHead{Tenant: "a+b", Size: 11, Root: head.Root}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestCheckpointTamper flips every bit of a checkpoint. Only the two bits that
// base64 leaves unused at the signature's end may have no effect.
func TestCheckpointTamper(t *testing.T) {
	t.Parallel()
	origin := "gate.example.com/acme"
	key := newKey(t, origin, 1)
	_, head := logOf(11)
	msg, err := audit.SignCheckpoint(head, key)
	must(t, err)
	accepted := 0
	for i := range msg {
		for bit := range 8 {
			bad := bytes.Clone(msg)
			bad[i] ^= 1 << bit
			got, err := audit.VerifyCheckpoint(bad, key.Public())
			switch {
			case err == nil && got.Root == head.Root && got.Size == head.Size:
				accepted++
			case !errors.Is(err, audit.ErrBadCheckpoint):
				t.Errorf("bit %d of byte %d flipped: %+v, %v", bit, i, got, err)
			}
		}
	}
	if accepted > 2 {
		t.Errorf("%d flipped bits were accepted", accepted)
	}
	for i := range msg {
		if _, err := audit.VerifyCheckpoint(msg[:i], key.Public()); !errors.Is(err, audit.ErrBadCheckpoint) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
}

func TestCheckpointText(t *testing.T) {
	t.Parallel()
	const origin = "gate.example.com/acme"
	key, next, stranger := newKey(t, origin, 1), newKey(t, origin, 2), newKey(t, origin, 3)
	zen, witness := newKey(t, "gate.example.com/zen", 1), newKey(t, "witness.example.org", 1)
	_, head := logOf(3)
	rootText, _ := head.Root.MarshalText()
	root := string(rootText)
	sign := func(text string, signers ...note.Signer) []byte {
		msg, err := note.Sign(&note.Note{Text: text}, signers...)
		must(t, err)
		return msg
	}
	good := origin + "\n3\n" + root + "\n"
	for _, tt := range []struct {
		name string
		msg  []byte
		keys []string
		ok   bool
	}{
		{"as signed", sign(good, key), []string{key.Public()}, true},
		{"a witness signed too", sign(good, witness, key), []string{key.Public()}, true},
		{"an extension line", sign(good+"more\n", key), []string{key.Public()}, true},
		{"another key of that name", sign(good, key), []string{stranger.Public()}, false},
		{"the key of another log", sign(good, key), []string{zen.Public()}, false},
		{"signed by another log's key, which is given", sign(good, zen), []string{zen.Public()}, false},
		{"signed by the witness alone", sign(good, witness), []string{key.Public()}, false},
		{"another origin, signed by our key", sign("gate.example.com/zen\n3\n"+root+"\n", key),
			[]string{key.Public()}, false},
		{"size with a leading zero", sign(origin+"\n03\n"+root+"\n", key), []string{key.Public()}, false},
		{"negative size", sign(origin+"\n-3\n"+root+"\n", key), []string{key.Public()}, false},
		{"size too big", sign(origin+"\n9223372036854775808\n"+root+"\n", key), []string{key.Public()}, false},
		{"short root", sign(origin+"\n3\n"+root[:40]+"\n", key), []string{key.Public()}, false},
		{"signed before the key was replaced", sign(good, key), []string{next.Public(), key.Public()}, true},
		{"one key, given twice", sign(good, key), []string{key.Public(), key.Public()}, true},
		{"no key", sign(good, key), nil, false},
		{"a text that is not a key", sign(good, key), []string{"gate.example.com/acme"}, false},
		{"no note", []byte(good), []string{key.Public()}, false},
		{"no root", sign(origin+"\n3\n", key), []string{key.Public()}, false},
		{"too long", sign(good+strings.Repeat("x", 70_000)+"\n", key), []string{key.Public()}, false},
	} {
		got, err := audit.VerifyCheckpoint(tt.msg, tt.keys...)
		switch {
		case tt.ok && (err != nil || got.Size != 3 || got.Root != head.Root):
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		case !tt.ok && !errors.Is(err, audit.ErrBadCheckpoint):
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestCheckpointRefusals(t *testing.T) {
	t.Parallel()
	_, head := logOf(3)
	head.Size = -1
	if _, err := audit.SignCheckpoint(head, newKey(t, "gate.example.com/acme", 1)); err == nil {
		t.Error("a negative size was signed")
	}
	for _, origin := range []string{"", "a b", "a+b", "a\nb", "a\u2003b", "a\xff", "a\x00b"} {
		if _, err := audit.NewKey(origin, make([]byte, 32)); err == nil {
			t.Errorf("a key for the origin %q", origin)
		}
	}
}
