package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// binary is the path of the gatehouse that this run has built.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gatehouse-proof")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "gatehouse")
	build := exec.Command("go", "build", "-o", binary, "github.com/gatehouse-dev/gatehouse/cmd/gatehouse")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the binary:", err)
		return 1
	}
	return m.Run()
}

// long reports whether the long form of the storms was asked for.
func long() bool { return os.Getenv("GATEHOUSE_STORM") == "long" }

// scale returns short, or the number of the long form.
func scale(short, longer int) int {
	if long() {
		return longer
	}
	return short
}

// seeded returns random numbers, and logs the seed that repeats them.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("GATEHOUSE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("GATEHOUSE_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0x6761746568))
}
