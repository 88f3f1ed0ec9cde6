package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wallClocks are the lines of the product that read the wall clock where it
// matters, by package, and their replacement in a server whose clock jumps.
// Leases and calls are measured on the monotonic clock, which does not jump.
var wallClocks = []struct{ pkg, file, line, jumpy string }{
	{"sqlite", "../store/sqlite/store.go", "\t\tc.Clock = time.Now\n", "\t\tc.Clock = jumpyClock\n"},
	{"telemetry", "../telemetry/telemetry.go", "max(0, time.Until(all.Now()))", "max(0, all.Now().Sub(jumpyClock()))"},
}

const trapSource = `package main

import _ "github.com/gatehouse-dev/gatehouse/internal/failpoint/trap"
`

// jumpySource is a clock whose offset is in the file that envClock names.
const jumpySource = `

import (
	"os"
	"time"
)

func jumpyClock() time.Time {
	file := os.Getenv("` + envClock + `")
	if file == "" {
		return time.Now()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		panic(err)
	}
	return time.Now().Add(d)
}
`

// mortalSources writes the sources of a program with traps at its failpoints and with jumpyClock into dir, and the
// overlay for the compiler that names them.
func mortalSources(dir string) (overlay string, err error) {
	main, err := filepath.Abs("../../cmd/gatehouse/trap.go")
	if err != nil {
		return "", err
	}
	trap := filepath.Join(dir, "trap.go")
	if err := os.WriteFile(trap, []byte(trapSource), 0o600); err != nil {
		return "", err
	}
	replaced := map[string]string{main: trap}
	for _, w := range wallClocks {
		path, err := filepath.Abs(w.file)
		if err != nil {
			return "", err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if strings.Count(string(source), w.line) != 1 {
			return "", fmt.Errorf("%s does not have %q once", w.file, w.line)
		}
		patched, added := filepath.Join(dir, w.pkg+".go"), filepath.Join(dir, w.pkg+"_clock.go")
		replaced[path], replaced[filepath.Join(filepath.Dir(path), "jumpy.go")] = patched, added
		if err := errors.Join(
			os.WriteFile(patched, []byte(strings.Replace(string(source), w.line, w.jumpy, 1)), 0o600),
			os.WriteFile(added, []byte("package "+w.pkg+jumpySource), 0o600),
		); err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}
