package sqlconn_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

// childEnv turns the test binary into a caller that the test kills.
const childEnv = "GATEHOUSE_TEST_SQLCONN_CHILD"

// child makes one change after the other until it is killed. It prints "call" and the version before
// each call, and "ok" and the version after it.
func child(dsn string) {
	c, err := sqlconn.New(context.Background(), items(dsn), nil)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	version, err := strconv.Atoi(os.Getenv(childEnv + "_VERSION"))
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for {
		fmt.Printf("call %d\n", version)
		if _, err := c.Execute(context.Background(), killCall(version)); err != nil {
			fmt.Println("error", err)
			return
		}
		fmt.Printf("ok %d\n", version)
		version++
	}
}

// killCall is the change of one version, with a new key.
func killCall(version int) connector.Call {
	return call("update", "SKU-1042", fmt.Sprint(version), "", fmt.Sprintf(`{"qty":%d}`, version))
}

// TestKilledCallers kills callers with SIGKILL at random moments. Acknowledged changes must remain,
// and the interrupted call is made exactly once by the caller that repeats it.
func TestKilledCallers(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		version, calls := 7, 0
		rounds := 12
		if engine != "sqlite" { // a server, which the kill leaves alone
			rounds = 3
		}
		for round := range rounds {
			last, acknowledged := killedChild(t, tg.dsn, version, time.Duration(random.IntN(30_000))*time.Microsecond)
			if last < 0 {
				continue // killed before its first call
			}
			calls += last - version + 1
			stands := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`)
			if stands != fmt.Sprint(acknowledged+1) && stands != fmt.Sprint(last+1) {
				t.Fatalf("seed %d, round %d: version %s after calls up to %d, answered up to %d", seed, round, stands, last,
					acknowledged)
			}
			mustExecute(t, c, killCall(last)) // the dispatcher's next attempt
			version = last + 1
			if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != fmt.Sprint(version) {
				t.Fatalf("seed %d, round %d: version %s after the call was repeated, want %d", seed, round, got, version)
			}
		}
		if got := tg.one(t, `SELECT count(*) FROM gatehouse_applied`); got != fmt.Sprint(version-7) || calls == 0 {
			t.Errorf("seed %d: %s records of %d changes, %d calls", seed, got, version-7, calls)
		}
	})
}

// killedChild runs a child for a while after its first output. It returns the version of the last
// call that was started (-1 for none) and of the last one that was answered.
func killedChild(t *testing.T, dsn string, version int, life time.Duration) (last, acknowledged int) {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	connectortest.Must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+dsn, fmt.Sprintf("%s_VERSION=%d", childEnv, version))
	out, err := cmd.StdoutPipe()
	connectortest.Must(t, err)
	connectortest.Must(t, cmd.Start())
	last, acknowledged = -1, version-1
	lines := bufio.NewScanner(out)
	var timer *time.Timer
	for lines.Scan() {
		if timer == nil {
			timer = time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
		}
		word, number, _ := strings.Cut(lines.Text(), " ")
		var n int
		_, _ = fmt.Sscan(number, &n)
		switch word {
		case "call":
			last = n
		case "ok":
			acknowledged = n
		default:
			t.Errorf("the child says %s", lines.Text())
		}
	}
	_ = cmd.Wait() // killed
	return last, acknowledged
}
