package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"time"
)

// notes remembers, across an interruption, which bugs were caught. A bug counts as a
// different one if its name, its patch, or the name of its test has changed since.
type notes struct {
	file string
	took map[string]time.Duration
}

// openNotes reads the notes of a file; without a name nothing is noted.
func openNotes(file string) (*notes, error) {
	n := &notes{file: file, took: map[string]time.Duration{}}
	if file == "" {
		return n, nil
	}
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return n, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		id, text, _ := strings.Cut(lines.Text(), " ")
		// A line that was truncated by the interruption counts as not written.
		if took, err := time.ParseDuration(text); err == nil {
			n.took[id] = took
		}
	}
	return n, lines.Err()
}

func (b bug) id() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", []any{b.name, b.edits, b.pkg, b.run})))
}

func (n *notes) caught(b bug) bool {
	_, ok := n.took[b.id()]
	return ok
}

func (n *notes) add(r result) error {
	if n.file == "" || !r.caught {
		return nil
	}
	f, err := os.OpenFile(n.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// The first line feed ends a truncated line.
	if _, err := fmt.Fprintf(f, "\n%s %s\n", r.id(), r.took); err != nil {
		return err
	}
	return f.Close()
}
