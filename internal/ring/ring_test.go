package ring_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

func parse(t *testing.T, text string) *ring.Master {
	t.Helper()
	m, err := ring.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPlaces opens a value in its own place only.
func TestPlaces(t *testing.T) {
	t.Parallel()
	m := parse(t, ring.NewMasterKey())
	key := ring.NewKey()
	sealed, err := m.Seal(key, "default", "links", "7")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, key) {
		t.Fatal("it is not sealed")
	}
	plain, err := m.Open(sealed, m.ID(), "default", "links", "7")
	if err != nil || !bytes.Equal(plain, key) {
		t.Fatal(err)
	}
	for _, place := range [][]string{
		{"acme", "links", "7"}, {"default", "links", "8"}, {"default", "secrets", "7"}, {"default", "links7"},
		{"default\" \"links", "7"}, {},
	} {
		if _, err := m.Open(sealed, m.ID(), place...); !errors.Is(err, ring.ErrSealed) {
			t.Errorf("%q opens it: %v", place, err)
		}
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := m.Open(sealed, m.ID(), "default", "links", "7"); !errors.Is(err, ring.ErrSealed) {
		t.Errorf("a changed value opens: %v", err)
	}
}

// TestReplaced reads with an old master key and writes with the new one.
func TestReplaced(t *testing.T) {
	t.Parallel()
	first, second := ring.NewMasterKey(), ring.NewMasterKey()
	before := parse(t, first)
	sealed, err := before.Seal([]byte("secret"), "a")
	if err != nil {
		t.Fatal(err)
	}
	both := parse(t, second+"\n"+first+"\n")
	if both.ID() == before.ID() || !both.Has(before.ID()) {
		t.Fatal("the new key does not seal, or the old one is missing")
	}
	if plain, err := both.Open(sealed, before.ID(), "a"); err != nil || string(plain) != "secret" {
		t.Fatalf("%q, %v", plain, err)
	}
	if _, err := parse(t, second).Open(sealed, before.ID(), "a"); !errors.Is(err, ring.ErrSealed) {
		t.Errorf("it opens without its key: %v", err)
	}
}

// TestMasterKeys refuses invalid keys.
func TestMasterKeys(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " \n", "c2hvcnQ=", ring.NewMasterKey()[:40], ring.NewMasterKey() + " x", strings.Repeat("!", 44),
	} {
		if _, err := ring.Parse(text); err == nil {
			t.Errorf("%q is accepted as a key", text)
		}
	}
}
