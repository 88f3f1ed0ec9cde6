package mcp

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
)

// TestTornJournal: a line that was cut off does not take the next one with it.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	must(t, f.open("one", "act_1"))
	must(t, f.open("two", "act_2"))
	b, err := os.ReadFile(f.path(callsFile))
	must(t, err)
	must(t, os.WriteFile(f.path(callsFile), b[:len(b)-5], 0o600))
	f, err = OpenFolder(f.dir)
	must(t, err)
	must(t, f.open("three", "act_3"))
	f, err = OpenFolder(f.dir)
	must(t, err)
	for hash, want := range map[string]string{"one": "act_1", "two": "", "three": "act_3"} {
		if got := f.call(hash).Open; got != want {
			t.Errorf("the call %s has the open action %q, want %q", hash, got, want)
		}
	}
}

// TestForgottenCalls: the call that has not changed for the longest time is forgotten first.
func TestForgottenCalls(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	for i := range maxCalls {
		f.put(storedCall{strconv.Itoa(i), callState{Open: "act_1"}})
	}
	f.put(storedCall{"0", callState{Open: "act_2"}})
	f.put(storedCall{"new", callState{Open: "act_3"}})
	for hash, want := range map[string]string{"0": "act_2", "1": "", "2": "act_1", "new": "act_3"} {
		if got := f.call(hash).Open; got != want {
			t.Errorf("the call %s has the open action %q, want %q", hash, got, want)
		}
	}
}

// TestJournalIsShortened: the journal is shortened while the proxy runs, and keeps what another
// process has written.
func TestJournalIsShortened(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	var journal bytes.Buffer
	for i := range 2 * maxCalls {
		fmt.Fprintf(&journal, "\n"+`{"hash":"one","open":"act_%d"}`, i)
	}
	must(t, os.WriteFile(f.path(callsFile), journal.Bytes(), 0o600))
	f, err = OpenFolder(f.dir)
	must(t, err)
	other, err := OpenFolder(f.dir)
	must(t, err)
	must(t, f.replace(callsFile, append(journal.Bytes(), "\n"+`{"hash":"two","open":"act_2"}`...)))
	must(t, f.open("one", "act_1"))
	b, err := os.ReadFile(f.path(callsFile))
	must(t, err)
	if want := `{"hash":"two","open":"act_2"}` + "\n" + `{"hash":"one","open":"act_1"}` + "\n"; string(b) != want {
		t.Errorf("the journal is %.300q, want %q", b, want)
	}
	must(t, other.open("two", "act_3"))
	f, err = OpenFolder(f.dir)
	must(t, err)
	if one, two := f.call("one").Open, f.call("two").Open; one != "act_1" || two != "act_3" {
		t.Errorf("the open actions are %q and %q", one, two)
	}
}

// TestJournalOfTwoProcesses: what one process writes while another shortens the journal is kept.
func TestJournalOfTwoProcesses(t *testing.T) {
	t.Parallel()
	f, err := OpenFolder(t.TempDir())
	must(t, err)
	var long bytes.Buffer
	for range 2 * maxCalls {
		long.WriteString(`{"hash":"old","open":"act_0"}` + "\n")
	}
	must(t, f.replace(callsFile, long.Bytes()))
	f, err = OpenFolder(f.dir)
	must(t, err)
	other, err := OpenFolder(f.dir)
	must(t, err)
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range 500 {
			if err := other.open(strconv.Itoa(i), "act_1"); err != nil {
				t.Error(err)
			}
		}
	})
	must(t, f.open("one", "act_1"))
	writing.Wait()
	f, err = OpenFolder(f.dir)
	must(t, err)
	for i := range 500 {
		if f.call(strconv.Itoa(i)).Open == "" {
			t.Fatalf("call %d is lost", i)
		}
	}
}
