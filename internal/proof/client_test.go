package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// web is the clients' side of HTTP. Only the transport retries: it repeats a
// request when a kept connection turns out to be dead.
var web = &http.Client{
	Timeout: 70 * time.Second,
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 512, IdleConnTimeout: 30 * time.Second,
	},
}

// person is a principal with its secrets; agents have no edit token.
type person struct {
	gate                *gate
	name, id, key, edit string
}

// answer is a response. err is set when there was none.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
	err    error
}

// str returns a string member of the body, else "".
func (a answer) str(name string) string {
	s, _ := a.body[name].(string)
	return s
}

// word is the result of an answer: its code, or the status of the short form.
func (a answer) word() string {
	if code := a.str("code"); code != "" {
		return code
	}
	return a.str("status")
}

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("%d %s", a.status, a.raw)
}

// decode reads the body into out.
func (a answer) decode(t testing.TB, out any) {
	t.Helper()
	if a.err != nil || a.status >= 300 {
		t.Fatalf("the call failed: %s", a)
	}
	if err := json.Unmarshal(a.raw, out); err != nil {
		t.Fatalf("decode %s: %v", a.raw, err)
	}
}

// call sends a request. body is nil, a string to send unchanged, or a value to
// encode as JSON. headers are pairs of name and value; an empty value omits the
// header.
func (p *person) call(method, path string, body any, headers ...string) answer {
	return p.callFor(context.Background(), method, path, body, headers...)
}

// listen reads a stream for half a second; the answer contains what came.
func (p *person) listen(path string, headers ...string) answer {
	ctx, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer stop()
	res := p.callFor(ctx, "GET", path, nil, headers...)
	if errors.Is(res.err, context.DeadlineExceeded) {
		res.err = nil
	}
	return res
}

// callFor is call until ctx ends.
func (p *person) callFor(ctx context.Context, method, path string, body any, headers ...string) answer {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		j, err := json.Marshal(b)
		if err != nil {
			return answer{err: err}
		}
		r = bytes.NewReader(j)
	}
	if !strings.HasPrefix(path, "/healthz") && !strings.HasPrefix(path, "/readyz") &&
		!strings.HasPrefix(path, "/metrics") {
		path = "/api/v1" + path
	}
	req, err := http.NewRequestWithContext(ctx, method, p.gate.base()+path, r)
	if err != nil {
		return answer{err: err}
	}
	set := map[string]string{"Authorization": "Bearer " + p.key, "X-Edit-Token": p.edit,
		"Content-Type": "application/json"}
	for i := 0; i+1 < len(headers); i += 2 {
		set[headers[i]] = headers[i+1]
	}
	for name, value := range set {
		if value != "" && value != "Bearer " {
			req.Header.Set(name, value)
		}
	}
	res, err := web.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.raw, a.err = io.ReadAll(res.Body); a.err != nil {
		return a
	}
	if strings.Contains(res.Header.Get("Content-Type"), "json") {
		d := json.NewDecoder(bytes.NewReader(a.raw))
		d.UseNumber()
		a.err = d.Decode(&a.body)
	}
	return a
}

func (p *person) get(path string) answer { return p.call("GET", path, nil) }

func (p *person) post(path string, body any, headers ...string) answer {
	return p.call("POST", path, body, headers...)
}

// object is a JSON object to encode.
type object = map[string]any

// decide answers one action, and short does so in the short form: verb is approve
// or reject.
func (p *person) decide(a *gatehouse.Action, decision string, more ...object) answer {
	body := object{"decision": decision, "digest": a.Digest}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return p.post("/proposed-actions/"+a.ID+"/decide", body)
}

func (p *person) short(a *gatehouse.Action, verb string, more ...object) answer {
	body := object{"digest": a.Digest}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return p.post("/approvals/"+a.ID+"/"+verb, body)
}

// propose proposes, and fails the test unless the answer is 201.
func (p *person) propose(t testing.TB, proposal object) *gatehouse.Action {
	t.Helper()
	res := p.post("/proposed-actions", proposal)
	if res.status != http.StatusCreated {
		t.Fatalf("propose: %s", res)
	}
	a := new(gatehouse.Action)
	res.decode(t, a)
	return a
}

// action reads an action.
func (p *person) action(t testing.TB, id string) *gatehouse.Action {
	t.Helper()
	a := new(gatehouse.Action)
	p.get("/proposed-actions/"+id).decode(t, a)
	return a
}

// finished waits until an action no longer changes by itself.
func (p *person) finished(t testing.TB, id string) *gatehouse.Action {
	t.Helper()
	a := new(gatehouse.Action)
	p.get("/proposed-actions/"+id+"?wait=40s&until=finished").decode(t, a)
	if !a.Status.Finished() {
		t.Fatalf("the action %s does not finish: it is %s", id, a.Status)
	}
	return a
}

// create creates a principal as the administrator of its tenant.
func (p *person) create(t testing.TB, name, kind, role string, more ...object) *person {
	t.Helper()
	body := object{"name": name, "kind": kind, "roles": strings.Split(role, ",")}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	res := p.post("/principals", body)
	if res.status != http.StatusCreated {
		t.Fatalf("create %s: %s", name, res)
	}
	return &person{gate: p.gate, name: name, id: res.str("id"), key: res.str("key"), edit: res.str("edit_token")}
}

// crowd creates n approvers.
func (p *person) crowd(t testing.TB, prefix string, n int) []*person {
	t.Helper()
	all := make([]*person, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			name := fmt.Sprintf("%s%03d", prefix, i)
			res := p.post("/principals", object{"name": name, "kind": "person", "roles": []string{"approver"}})
			all[i] = &person{gate: p.gate, name: name, id: res.str("id"), key: res.str("key"), edit: res.str("edit_token")}
		})
	}
	wg.Wait()
	for _, one := range all {
		if one.key == "" || one.edit == "" {
			t.Fatalf("%s was not made", one.name)
		}
	}
	return all
}

// storm calls fn n times concurrently, released together, and returns the
// answers.
func storm(n int, fn func(i int) answer) []answer {
	answers := make([]answer, n)
	barrier := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-barrier
			answers[i] = fn(i)
		})
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	return answers
}

// headStart balances races that the shortest path would always win on a slow
// machine: a repeated winner starts later the next time.
type headStart struct {
	winner string
	by     time.Duration
}

func (h *headStart) wait(side string) {
	if side == h.winner {
		time.Sleep(h.by)
	}
}

func (h *headStart) won(side string) {
	if side == h.winner {
		h.by = min(max(2*h.by, time.Millisecond), time.Second)
	} else {
		h.winner, h.by = side, 0
	}
}

// tally counts answers as "status word".
func tally(answers []answer) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		key := "lost"
		if a.err == nil {
			key = fmt.Sprintf("%d %s", a.status, a.word())
		}
		counts[key]++
	}
	return counts
}

// eventually waits until fn returns nil.
func eventually(t testing.TB, within time.Duration, fn func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := fn()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
