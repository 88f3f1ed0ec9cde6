package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// childEnv names the file to which the restarted test binary writes until it is
// killed.
const childEnv = "GATEHOUSE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
		return
	}
	os.Exit(m.Run())
}

// child inserts tenants from several goroutines and prints each id after its
// Update has returned.
func child(path string) {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	for g := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("t%d-%d-%d", os.Getpid(), g, i)
				err := s.Update(context.Background(), id, func(tx gatehouse.Tx) error {
					if err := tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()}); err != nil {
						return err
					}
					return tx.AppendLeaf(&gatehouse.Leaf{Tenant: id, Type: "t", Subject: id, Actor: "a"})
				})
				out.Lock()
				if err != nil {
					fmt.Println("error", err)
				} else {
					fmt.Println(id)
				}
				out.Unlock()
			}
		}()
	}
	select {}
}

// TestKilled kills a writing process repeatedly. Everything it acknowledged
// must be there, and each transaction must be there completely or not at all.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	acknowledged := make(map[string]bool)
	for round := range 4 {
		before := len(acknowledged)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // in case the test ends early
		lines := bufio.NewScanner(stdout)
		for killed := false; lines.Scan(); {
			line := lines.Text()
			if strings.HasPrefix(line, "error") {
				t.Fatalf("child: %s", line)
			}
			acknowledged[line] = true
			if !killed && len(acknowledged) >= before+100+37*round {
				killed = true
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // an error: the process was killed
		if len(acknowledged) < before+100 {
			t.Fatalf("round %d: the child ended by itself", round)
		}
		s, err := Open(context.Background(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		check := func(q gatehouse.ReadQueues) error {
			stored, err := q.ListTenants()
			if err != nil {
				return err
			}
			known := make(map[string]bool)
			for _, n := range stored {
				known[n.ID] = true
			}
			for id := range acknowledged {
				if !known[id] {
					t.Errorf("round %d: %s was acknowledged and is lost", round, id)
				}
			}
			leaves, err := q.UnnumberedLeaves(1 << 30)
			if len(leaves) != len(stored)-1 {
				t.Errorf("round %d: %d leaves for %d transactions", round, len(leaves), len(stored)-1)
			}
			return err
		}
		if err := s.ViewQueues(context.Background(), check); err != nil {
			t.Fatal(err)
		}
		if n, err := s.writer.c.first(`PRAGMA integrity_check`, func(r *stmt) error {
			if got := r.Text(); got != "ok" {
				t.Errorf("integrity: %s", got)
			}
			return nil
		}); err != nil || !n {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
