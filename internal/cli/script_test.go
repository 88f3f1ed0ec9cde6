package cli

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestScripts runs testdata/script against the real binary, with a real server
// and real targets. The scripts' own commands are below.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			if slices.Contains(serving, filepath.Base(e.WorkDir)) {
				e.Setenv("PATH", filepath.Dir(watched)+string(filepath.ListSeparator)+e.Getenv("PATH"))
			}
			for _, name := range []string{"GATEHOUSE_URL", "GATEHOUSE_KEY", "GATEHOUSE_EDIT_TOKEN", "GATEHOUSE_DATA"} {
				e.Setenv(name, "")
			}
			// Nothing listens at this address; the script command "server" replaces it.
			e.Setenv("GATEHOUSE_URL", "http://127.0.0.1:1")
			e.Values[testKey{}] = e.T()
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": serverScript, "principal": principalScript, "as": asScript, "exits": exitsScript, "usage": usageScript,
			"field": fieldScript, "sqlite": sqliteScript, "target": targetScript, "answer": answerScript, "metric": metricScript,
			"tamper": tamperScript, "await": awaitScript,
		},
	})
}

// initialized is a new data folder with an administrator.
type initialized struct {
	files map[string][]byte
	Key   string `json:"admin_key"`
	Token string `json:"edit_token"`
}

// firstFolder is made once for all scripts.
var firstFolder = sync.OnceValues(func() (*initialized, error) {
	dir, err := os.MkdirTemp("", "gatehouse-init-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return initialize(nil, filepath.Join(dir, "data"))
})

func initialize(env []string, data string, flags ...string) (*initialized, error) {
	cmd := exec.Command("gatehouse", append([]string{"init", "--data", data, "--json"}, flags...)...)
	cmd.Env = env
	out, err := cmd.Output()
	made := &initialized{files: map[string][]byte{}}
	if err = errors.Join(err, json.Unmarshal(out, made)); err != nil {
		return nil, err
	}
	for _, name := range []string{"gatehouse.db", "master.key"} {
		if made.files[name], err = os.ReadFile(filepath.Join(data, name)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// testKey is the key of a script's test.
type testKey struct{}

// serverScript is: server [FLAG...]. It serves the folder data with the script's gatehouse.yaml on a
// free port until the script ends, and waits until it is ready. If there is no such folder, it makes
// one, and makes the script's user the administrator.
func serverScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! server")
	}
	data, env := ts.MkAbs("data"), append(os.Environ(), "WORK="+ts.Getenv("WORK"), "TARGET="+ts.Getenv("TARGET"))
	if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
		first, err := firstFolder()
		if strings.Contains(ts.ReadFile("gatehouse.yaml"), "\npolicy:") { // init applies it
			first, err = initialize(env, data, "--config", ts.MkAbs("gatehouse.yaml"))
		}
		ts.Check(err)
		ts.Check(os.MkdirAll(data, 0o700))
		for name, content := range first.files {
			ts.Check(os.WriteFile(filepath.Join(data, name), content, 0o600))
		}
		setCredentials(ts, "admin", first.Key, first.Token)
	}
	cmd := exec.Command(watched, append([]string{
		"serve", "--data", data, "--config", ts.MkAbs("gatehouse.yaml"), "--listen", "127.0.0.1:0", "--log-format", "json",
	}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	address := make(chan string, 1)
	drained := make(chan struct{})
	var log bytes.Buffer
	go func() {
		defer close(drained)
		defer close(address)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				address <- line.URL
			}
			log.Write(append(lines.Bytes(), '\n'))
		}
	}()
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-drained
		err := cmd.Wait()
		ts.Logf("the server ended with %v; its log:\n%s", err, log.String())
		if err != nil { // such as 66, after a race; Fatalf does not work at the end of a script
			ts.Value(testKey{}).(testscript.T).FailNow()
		}
	})
	url, ok := <-address
	if !ok {
		ts.Fatalf("the server did not start")
	}
	ts.Setenv("GATEHOUSE_URL", url)
	ready := &http.Client{Timeout: 10 * time.Second}
	resp, err := ready.Get(url + "/readyz")
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("/readyz answers %s", resp.Status)
	}
}

func setCredentials(ts *testscript.TestScript, name, key, token string) {
	ts.Setenv("KEY_"+name, key)
	ts.Setenv("TOKEN_"+name, token)
	ts.Setenv("GATEHOUSE_KEY", key)
	ts.Setenv("GATEHOUSE_EDIT_TOKEN", token)
}

// principalScript is: principal NAME KIND ROLES [FLAG...]. The administrator creates a principal;
// the script can then act as it.
func principalScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: principal NAME KIND ROLES [FLAG...]")
	}
	code, out := runHere(ts, append([]string{
		"principal", "create", "--json", "--name", args[0], "--kind", args[1], "--role", args[2],
		"--url", ts.Getenv("GATEHOUSE_URL"), "--key", ts.Getenv("KEY_admin"), "--edit-token", ts.Getenv("TOKEN_admin"),
	}, args[3:]...))
	if code != term.ExitDone {
		ts.Fatalf("exit code %d", code)
	}
	var c gatehouse.Credentials
	ts.Check(json.Unmarshal(out, &c))
	ts.Setenv("ID_"+args[0], c.ID)
	ts.Setenv("KEY_"+args[0], c.Key)
	ts.Setenv("TOKEN_"+args[0], c.EditToken)
}

// runHere runs a command line in this process, which saves the start of a program. It finds neither the script's folder
// nor its environment.
func runHere(ts *testscript.TestScript, args []string) (code int, stdout []byte) {
	var out bytes.Buffer
	code = run(globals{URL: "http://127.0.0.1:1", IO: term.IO{
		Ctx: context.Background(), Started: "gatehouse", Stdin: strings.NewReader(""), Stdout: &out, Stderr: ts.Stderr(),
		Columns: 80, Now: time.Now,
	}}, args)
	return code, out.Bytes()
}

// asScript is: as NAME. From now on the script is somebody else.
func asScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || ts.Getenv("KEY_"+args[0]) == "" {
		ts.Fatalf("usage: as NAME, of a principal that the script made")
	}
	ts.Setenv("GATEHOUSE_KEY", ts.Getenv("KEY_"+args[0]))
	ts.Setenv("GATEHOUSE_EDIT_TOKEN", ts.Getenv("TOKEN_"+args[0]))
}

// exitsScript is: exits CODE PROGRAM [ARG...]. The program must exit with
// exactly that code.
func exitsScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// usageScript is: usage [ARG...]. The command line must be refused as a mistake, with no data on stdout; see runHere.
func usageScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("unsupported: ! usage")
	}
	if code, out := runHere(ts, args); code != term.ExitUsage || len(out) > 0 {
		ts.Fatalf("exit code %d, want %d and nothing on stdout: %s", code, term.ExitUsage, out)
	}
}

// awaitScript is: await PATTERN PROGRAM [ARG...]. It runs the program until its stdout matches, for
// effects that follow a decision asynchronously, such as the numbering of audit entries.
func awaitScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN PROGRAM [ARG...]")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no match for %q", args[0])
		}
	}
}

// fieldScript is: field VAR PATH. It takes a member of the JSON on stdout, such
// as approval.id or items.0.id, into a variable.
func fieldScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field VAR PATH")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	var v any
	ts.Check(d.Decode(&v))
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		ts.Fatalf("stdout holds more than one document")
	}
	for _, name := range strings.Split(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				ts.Fatalf("%s: no element %s", args[1], name)
			}
			v = in[i]
		default:
			v = nil
		}
	}
	if v == nil {
		ts.Fatalf("stdout has no %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// sqliteScript is: sqlite FILE SQL. It runs statements, or a query whose rows
// it prints tab-separated.
func sqliteScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sqlite FILE SQL")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_pragma=busy_timeout(5000)")
	ts.Check(err)
	defer db.Close()
	rows, err := db.Query(args[1])
	ts.Check(err)
	defer rows.Close()
	columns, err := rows.Columns()
	ts.Check(err)
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		ts.Check(rows.Scan(into...))
		cells := make([]string, len(columns))
		for i, v := range values {
			cells[i] = v.String
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(cells, "\t"))
	}
	ts.Check(rows.Err())
}

// httpTarget is a target system outside of the server's process.
type httpTarget struct {
	sync.Mutex
	status int
	body   string
}

func (h *httpTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h.Lock()
	defer h.Unlock()
	w.WriteHeader(h.status)
	_, _ = io.WriteString(w, h.body)
}

// targets finds the target of a script by its address.
var targets sync.Map

// targetScript is: target STATUS [BODY]. It starts an HTTP target that answers so, and
// puts its address into TARGET.
func targetScript(ts *testscript.TestScript, neg bool, args []string) {
	h := &httpTarget{}
	s := httptest.NewServer(h)
	ts.Defer(s.Close)
	ts.Setenv("TARGET", s.URL)
	targets.Store(s.URL, h)
	ts.Defer(func() { targets.Delete(s.URL) })
	answerScript(ts, neg, args)
}

// answerScript is: answer STATUS [BODY]. It changes how the target answers.
func answerScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: target STATUS [BODY], or answer STATUS [BODY]")
	}
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	h, ok := targets.Load(ts.Getenv("TARGET"))
	if !ok {
		ts.Fatalf("there is no target yet")
	}
	target := h.(*httpTarget)
	target.Lock()
	defer target.Unlock()
	target.status, target.body = status, "{}"
	if len(args) == 2 {
		target.body = args[1]
	}
}

// metricScript is: metric SERIES VALUE. It looks for the line in the server's
// metrics.
func metricScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: metric SERIES VALUE")
	}
	resp, err := http.Get(ts.Getenv("GATEHOUSE_URL") + "/metrics")
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if !strings.Contains(string(body), "\n"+args[0]+" "+args[1]+"\n") {
		ts.Fatalf("%s is not %s in\n%s", args[0], args[1], body)
	}
}

// tamperScript is: tamper PATH FROM TO. It starts a proxy in front of the server. The proxy
// replaces a text in the answers of the paths that contain PATH, as a lying server would.
func tamperScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: tamper PATH FROM TO")
	}
	behind := ts.Getenv("GATEHOUSE_URL")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), r.Method, behind+r.URL.RequestURI(), r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		req.Header = r.Header.Clone()
		req.Header.Del("Accept-Encoding")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if strings.Contains(r.URL.Path, args[0]) {
			b = []byte(strings.ReplaceAll(string(b), args[1], args[2]))
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(b)
	}))
	ts.Defer(s.Close)
	ts.Setenv("GATEHOUSE_URL", s.URL)
}
