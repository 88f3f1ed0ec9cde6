package proof

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// binary is the path of the gatehouse binary of this run, which GATEHOUSE_BINARY names if scripts/test
// has built it; mortal returns the path of a binary with failpoints and a clock that can jump, which it
// builds on first use.
var (
	binary string
	mortal func() (string, error)
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if file := os.Getenv(envWorker); file != "" {
		return work(file)
	}
	debug.SetGCPercent(400) // the clients of a storm leave much garbage
	dir, err := os.MkdirTemp("", "gatehouse-proof")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("GATEHOUSE_BINARY"); binary == "" {
		binary = filepath.Join(dir, "gatehouse")
		if err := build(binary); err != nil {
			fmt.Fprintln(os.Stderr, "build the binary:", err)
			return 1
		}
	}
	mortal = sync.OnceValues(func() (string, error) {
		path := filepath.Join(dir, "mortal")
		overlay, err := mortalSources(dir)
		if err != nil {
			return "", err
		}
		return path, build(path, "-overlay", overlay)
	})
	return pgtest.Main(m)
}

func build(path string, flags ...string) error {
	args := append([]string{"build", "-ldflags=-s -w", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "github.com/gatehouse-dev/gatehouse/cmd/gatehouse")...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	// Build like a release: scripts/test has compiled those packages by then.
	if goflags := os.Getenv("GATEHOUSE_TEST_GOFLAGS"); goflags != "" {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+goflags)
	}
	return cmd.Run()
}

// long reports whether the long form of the storms was requested.
func long() bool { return os.Getenv("GATEHOUSE_STORM") == "long" }

// scale returns short, or longer in the long form.
func scale(short, longer int) int {
	if long() {
		return longer
	}
	return short
}

// givenSeed is GATEHOUSE_SEED, or 0.
var givenSeed = sync.OnceValue(func() uint64 {
	s := os.Getenv("GATEHOUSE_SEED")
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("GATEHOUSE_SEED: %v", err))
	}
	return n
})

// oddSeeds says whether the seeds of this run are odd, which selects the failpoints of each engine: see failpointsOn.
var oddSeeds = sync.OnceValue(func() bool {
	if n := givenSeed(); n != 0 {
		return n%2 == 1
	}
	return rand.IntN(2) == 1
})

// seeded returns random numbers and the seed that reproduces them.
func seeded(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := givenSeed()
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) &^ 1
		if oddSeeds() {
			seed |= 1
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0x6761746568)), seed
}
