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

// keyPair makes a key for an origin.
func keyPair(t testing.TB, origin string) (note.Signer, note.Verifier) {
	t.Helper()
	secret, public, err := audit.NewKey(origin)
	must(t, err)
	signer, err := note.NewSigner(secret)
	must(t, err)
	verifier, err := note.NewVerifier(public)
	must(t, err)
	return signer, verifier
}

func TestCheckpointRoundTrip(t *testing.T) {
	t.Parallel()
	origin := audit.Origin("gate.example.com", "a+b")
	signer, verifier := keyPair(t, origin)
	_, head := logOf(11)
	msg, err := audit.SignCheckpoint(head, origin, signer)
	must(t, err)
	root, _ := head.Root.MarshalText()
	if want := fmt.Sprintf("gate.example.com/a%%2Bb\n11\n%s\n\n— gate.example.com/a%%2Bb ",
		root); !strings.HasPrefix(string(msg), want) {
		t.Errorf("checkpoint:\n%swant the beginning\n%s", msg, want)
	}
	got, err := audit.VerifyCheckpoint(msg, origin, verifier)
	if err != nil || got != (gatehouse.LogHead{Size: 11, Root: head.Root}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestCheckpointTamper flips every bit of a checkpoint. Only the two bits that
// base64 leaves unused at the signature's end may have no effect.
func TestCheckpointTamper(t *testing.T) {
	t.Parallel()
	origin := "gate.example.com/acme"
	signer, verifier := keyPair(t, origin)
	_, head := logOf(11)
	msg, err := audit.SignCheckpoint(head, origin, signer)
	must(t, err)
	accepted := 0
	for i := range msg {
		for bit := range 8 {
			bad := bytes.Clone(msg)
			bad[i] ^= 1 << bit
			got, err := audit.VerifyCheckpoint(bad, origin, verifier)
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
		if _, err := audit.VerifyCheckpoint(msg[:i], origin, verifier); !errors.Is(err, audit.ErrBadCheckpoint) {
			t.Errorf("cut after %d bytes: %v", i, err)
		}
	}
}

func TestCheckpointText(t *testing.T) {
	t.Parallel()
	const origin = "gate.example.com/acme"
	signer, verifier := keyPair(t, origin)
	_, stranger := keyPair(t, origin)
	zen, elsewhere := keyPair(t, "gate.example.com/zen")
	witness, _ := keyPair(t, "witness.example.org")
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
		name     string
		msg      []byte
		verifier note.Verifier
		ok       bool
	}{
		{"as signed", sign(good, signer), verifier, true},
		{"a witness signed too", sign(good, witness, signer), verifier, true},
		{"an extension line", sign(good+"more\n", signer), verifier, true},
		{"another key of that name", sign(good, signer), stranger, false},
		{"the key of another log", sign(good, signer), elsewhere, false},
		{"signed by another log's key, which is asked for", sign(good, zen), elsewhere, false},
		{"signed by the witness alone", sign(good, witness), verifier, false},
		{"another origin, signed by our key", sign("gate.example.com/zen\n3\n"+root+"\n", signer), verifier, false},
		{"size with a leading zero", sign(origin+"\n03\n"+root+"\n", signer), verifier, false},
		{"negative size", sign(origin+"\n-3\n"+root+"\n", signer), verifier, false},
		{"size too big", sign(origin+"\n9223372036854775808\n"+root+"\n", signer), verifier, false},
		{"short root", sign(origin+"\n3\n"+root[:40]+"\n", signer), verifier, false},
		{"no root", sign(origin+"\n3\n", signer), verifier, false},
		{"too long", sign(good+strings.Repeat("x", 70_000)+"\n", signer), verifier, false},
	} {
		got, err := audit.VerifyCheckpoint(tt.msg, origin, tt.verifier)
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
	signer, _ := keyPair(t, "gate.example.com/acme")
	_, head := logOf(3)
	if _, err := audit.SignCheckpoint(head, "gate.example.com/zen", signer); err == nil {
		t.Error("one log's key signed for another")
	}
	head.Size = -1
	if _, err := audit.SignCheckpoint(head, "gate.example.com/acme", signer); err == nil {
		t.Error("a negative size was signed")
	}
	for _, origin := range []string{"", "a b", "a+b", "a\nb", "a\u2003b", "a\xff", "a\x00b"} {
		if _, _, err := audit.NewKey(origin); err == nil {
			t.Errorf("a key for the origin %q", origin)
		}
	}
}
