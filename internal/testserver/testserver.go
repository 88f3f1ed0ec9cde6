// Package testserver runs the programs of database servers as child processes of a test.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host is a folder of a server and the user that its programs run as.
type Host struct {
	// Dir is a temporary folder that the user may write to.
	Dir  string
	cred *syscall.Credential
}

// NewHost makes a temporary folder, whose name begins with prefix. Database servers refuse to
// run as root, so root runs their programs as one of the users, the first that exists.
// The folder is within GATEHOUSE_TEST_MEMORY, if that is set. Scripts set it to a folder in memory, because a new
// database spends most of its CPU time in the file system.
func NewHost(prefix string, users ...string) (h *Host, err error) {
	h = &Host{}
	if os.Geteuid() == 0 {
		if h.cred, err = unprivileged(users); err != nil {
			return nil, err
		}
	}
	if h.Dir, err = os.MkdirTemp(os.Getenv("GATEHOUSE_TEST_MEMORY"), prefix); err != nil {
		return nil, err
	}
	if err := h.Own(h.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.Dir))
	}
	return h, nil
}

// Own gives a file to the user that the programs run as.
func (h *Host) Own(path string) error {
	if h.cred == nil {
		return nil
	}
	return os.Chown(path, int(h.cred.Uid), int(h.cred.Gid))
}

// Remove deletes the folder. It refuses a folder whose name does not begin with "gatehouse-".
func (h *Host) Remove() error {
	if !strings.HasPrefix(filepath.Base(h.Dir), "gatehouse-") {
		return fmt.Errorf("%s was not made by a test", h.Dir)
	}
	return os.RemoveAll(h.Dir)
}

func unprivileged(users []string) (*syscall.Credential, error) {
	for _, name := range users {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("root cannot run a database server, and there is no user %s to run it as",
		strings.Join(users, " or "))
}

// Command prepares a program of the server.
func (h *Host) Command(program string, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(context.Background(), program, args...)
	cmd.Dir = h.Dir
	// Each server has its own TMPDIR: at its start, MariaDB deletes all temporary tables there, also those of others.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "TMPDIR=" + h.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.cred, Setpgid: true}
	return cmd
}

// Process is a running server.
type Process struct {
	host    *Host
	process *os.Process
	exited  chan exit
}

// exit is the result of the server process.
type exit struct{ err error }

func (h *Host) log() string { return filepath.Join(h.Dir, "log") }

// Start runs a server whose output goes to the host's log. On Linux, the server stops when the test process is killed.
func (h *Host) Start(cmd *osexec.Cmd) (*Process, error) {
	log, err := os.OpenFile(h.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd.SysProcAttr)
	p := &Process{host: h, exited: make(chan exit, 1)}
	started := make(chan error)
	go func() {
		// dieWithParent signals when the thread that started the process ends, so this thread
		// must live on.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.exited <- exit{cmd.Wait()}
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.process = cmd.Process
	return p, nil
}

// WaitReady connects until that succeeds; a server gives no other sign of readiness.
func (p *Process) WaitReady(connect func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		err := connect(ctx)
		if err == nil {
			return nil
		}
		select {
		case end := <-p.exited:
			out, _ := os.ReadFile(p.host.log())
			return fmt.Errorf("the server ended: %w\n%s", end.err, out)
		case <-ctx.Done():
			return fmt.Errorf("the server accepted no connection within 2 minutes: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop signals the server and waits until it has ended.
func (p *Process) Stop(signal os.Signal) error {
	if err := p.process.Signal(signal); err != nil {
		return err
	}
	select {
	case <-p.exited: // the status reports the signal
		return nil
	case <-time.After(2 * time.Minute):
		return errors.New("the server did not stop within 2 minutes")
	}
}
