// Command fakes replaces the two other systems of the incident example: a fake ServiceNow, which
// sends signed webhooks, and a fake provider of models. Neither is the real thing, and their
// answers say so.
//
// Besides the Table API, the fake ServiceNow has requests for people who try the example:
//
//	POST /fake/incidents                creates an incident from {"short_description": "…"}, and sends
//	                                    the webhook for it
//	POST /fake/incidents/{sys_id}/tell  sends the webhook again, with the same bytes if the incident
//	                                    is unchanged
//	GET  /fake/incidents/{sys_id}       the incident, with its notes
//	GET  /fake/ledger                   every write that was carried out, in order
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err) //nolint:gocritic // the signals end with the process
	}
}

func run(ctx context.Context) error {
	snowAddress := flag.String("snow", "127.0.0.1:9101", "where the fake ServiceNow listens")
	modelAddress := flag.String("models", "127.0.0.1:9102", "where the fake provider of models listens")
	hook := flag.String("hook", "http://127.0.0.1:8080/api/v1/hooks/incident-triage", "the `URL` that gets the webhooks")
	secret := flag.String("secret", "an example, use a long random text", "the key that signs the webhooks")
	flag.Parse()

	w := newWorld(snowtest.Hook{URL: *hook, Secret: []byte(*secret)})
	snow, err := listen(ctx, *snowAddress, w)
	if err != nil {
		return err
	}
	defer snow.Close()
	models, err := listen(ctx, *modelAddress, llmtest.New("fake", classify))
	if err != nil {
		return err
	}
	defer models.Close()
	fmt.Printf("A fake ServiceNow at http://%s, fake models at http://%s/v1\n", snow.Addr(), models.Addr())
	<-ctx.Done()
	return nil
}

// listen serves h in the background until the returned listener is closed.
func listen(ctx context.Context, address string, h http.Handler) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }()
	return l, nil
}

// world is the fake ServiceNow, with its groups and the requests for people who try the example.
type world struct {
	*http.ServeMux
	snow *snowtest.Server
	hook snowtest.Hook
	// desk is the group to which new incidents are assigned.
	desk string
}

// newWorld creates the groups that workflow.yaml names by sys_id; the ids are the same in every
// run.
func newWorld(hook snowtest.Hook) *world {
	w := &world{ServeMux: http.NewServeMux(), hook: hook}
	w.snow = snowtest.New(snowtest.Options{Users: map[string]snowtest.User{"gatehouse": {Password: "fake"}}})
	w.desk = w.snow.AddGroup("Service Desk")
	w.snow.AddGroup("Network")
	w.snow.AddGroup("Database")
	w.Handle("/", w.snow)
	w.HandleFunc("POST /fake/incidents", w.newIncident)
	w.HandleFunc("GET /fake/incidents/{sys_id}", w.incident)
	w.HandleFunc("POST /fake/incidents/{sys_id}/tell", w.tell)
	w.HandleFunc("GET /fake/ledger",
		func(rw http.ResponseWriter, _ *http.Request) { answer(rw, w.snow.Writes()) })
	return w
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) newIncident(rw http.ResponseWriter, r *http.Request) {
	var in struct {
		ShortDescription string `json:"short_description"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil || in.ShortDescription == "" {
		http.Error(rw, `send {"short_description": "…"}`, http.StatusBadRequest)
		return
	}
	id := w.snow.AddIncident(map[string]string{
		"short_description": in.ShortDescription, "assignment_group": w.desk, "impact": "2", "urgency": "2",
	})
	w.send(rw, r, id)
}

func (w *world) tell(rw http.ResponseWriter, r *http.Request) {
	id := r.PathValue("sys_id")
	if w.snow.Incident(id) == nil {
		http.NotFound(rw, r)
		return
	}
	w.send(rw, r, id)
}

// send sends the webhook for an incident, and answers with the receiver's status.
func (w *world) send(rw http.ResponseWriter, r *http.Request, id string) {
	status, said, err := w.snow.Tell(r.Context(), w.hook, id, "incident.inserted")
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)
		return
	}
	var taken any = string(said)
	if json.Valid(said) {
		taken = json.RawMessage(said)
	}
	answer(rw, map[string]any{
		"sys_id": id, "number": w.snow.Incident(id)["number"], "hook_status": status, "hook_answer": taken,
	})
}

func (w *world) incident(rw http.ResponseWriter, r *http.Request) {
	id := r.PathValue("sys_id")
	values := w.snow.Incident(id)
	if values == nil {
		http.NotFound(rw, r)
		return
	}
	answer(rw, map[string]any{"values": values, "work_notes": w.snow.Journal(id, "work_notes")})
}

// classify answers as a model might, depending on the words of the last message.
func classify(c llmtest.Call) llmtest.Reply {
	text := strings.ToLower(c.Last())
	for _, kind := range []struct{ category, words string }{
		{"network", "vpn wifi network router"}, {"database", "database sql query table"},
	} {
		for word := range strings.FieldsSeq(kind.words) {
			if strings.Contains(text, word) {
				return llmtest.Reply{
					Text: fmt.Sprintf(`{"category": %q, "confidence": 0.93, "reason": "It speaks of %s."}`, kind.category, word)}
			}
		}
	}
	return llmtest.Reply{Text: `{"category": "service_desk", "confidence": 0.41, "reason": "It could be anything."}`}
}
