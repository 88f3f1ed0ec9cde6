package feed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
)

// follow calls handle with each decision of each tenant, at least once and in
// order, until ctx ends. The consumer's position is kept by the server under
// the name ledger.
func follow(ctx context.Context, js jetstream.JetStream, handle func(id, kind string, data []byte) error) error {
	consumer, err := js.CreateOrUpdateConsumer(ctx, "GATEHOUSE_EVENTS", jetstream.ConsumerConfig{
		Durable:        "ledger",
		FilterSubjects: []string{"gatehouse.events.*.hitl.approved", "gatehouse.events.*.hitl.rejected"},
		AckPolicy:      jetstream.AckExplicitPolicy,
		MaxAckPending:  1, // one at a time keeps the order when one is delivered again
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		var event struct {
			ID   string          `json:"id"`
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(m.Data(), &event); err != nil {
			return err
		}
		if err := handle(event.ID, event.Type, event.Data); err != nil {
			return err // not acknowledged: it is delivered again
		}
		if err := m.Ack(); err != nil {
			return err
		}
	}
}

// This example prints every decision in the stream, and those to come.
func Example() {
	nc, err := nats.Connect("nats://127.0.0.1:4222")
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	err = follow(context.Background(), js, func(id, kind string, data []byte) error {
		fmt.Println(id, kind, string(data))
		return nil
	})
	fmt.Fprintln(os.Stderr, err)
}

// TestFollow runs the documented consumer: an event whose handler failed comes
// again, and none is left out.
func TestFollow(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.start(server.URL())
	w.write(tenants[0], 20)
	w.write(tenants[1], 20)
	w.exact(js)
	want := make(map[string]bool)
	for _, tenant := range tenants {
		for _, e := range w.entries(tenant) {
			var leaf gatehouse.Leaf
			must(t, json.Unmarshal([]byte(e.Body), &leaf))
			if leaf.Type == "hitl.approved" {
				want[leaf.ID] = true
			}
		}
	}
	got, calls := make(map[string]bool), 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	handle := func(id, _ string, _ []byte) error {
		if calls++; calls == 7 {
			return errors.New("the ledger is full")
		}
		if got[id] = true; len(got) == len(want) {
			cancel()
		}
		return nil
	}
	if err := follow(ctx, js, handle); err == nil || errors.Is(err, context.Canceled) {
		t.Fatalf("the handler's error was lost: %v", err)
	}
	consumer, err := js.Consumer(t.Context(), streamName, "ledger")
	must(t, err)
	if n := consumer.CachedInfo().NumAckPending; n != 1 {
		t.Fatalf("%d events are not acknowledged", n)
	}
	// Faster than waiting for the time-out of the failed event.
	must(t, js.DeleteConsumer(t.Context(), streamName, "ledger"))
	if err := follow(ctx, js, handle); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	must(t, err)
	return string(text)
}

// TestDocumentedTypes looks up each type that the program writes in the table of types.
func TestDocumentedTypes(t *testing.T) {
	t.Parallel()
	written := regexp.MustCompile(
		`"((?:hitl|push|action|workflow|policy|principal|group|delegation|key|edit_token|session|` +
			`step_up|setup_link|identity|passkey|review|link|channel|archive|tenant|admin|connectors|preference|grant|` +
			`mandate|secret|device|webpush)\.[a-z_]+)"`)
	events := document(t, "events.md")
	seen := map[string]bool{}
	for _, pattern := range []string{"../gate/*.go", "../runs/*.go", "../dispatch/*.go", "../notify/channelstate.go"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			must(t, err)
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range written.FindAllStringSubmatch(string(source), -1) {
				seen[m[1]] = true
			}
		}
	}
	if len(seen) < 40 {
		t.Fatalf("only %d types in the source", len(seen))
	}
	for kind := range seen {
		if !strings.Contains(events, "`"+kind+"`") {
			t.Errorf("docs/events.md lacks %s", kind)
		}
	}
}

// TestDocumentedConfiguration parses the documented example with its defaults.
func TestDocumentedConfiguration(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(document(t, "events.md"), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no example in docs/events.md")
	}
	var file struct {
		NATS feed.Config `yaml:"nats"`
	}
	must(t, yaml.Load([]byte(text), &file, yaml.WithKnownFields()))
	must(t, file.NATS.Validate())
	want := feed.Config{URL: file.NATS.URL}.WithDefaults()
	want.Credentials = file.NATS.Credentials
	if diff := cmp.Diff(want, file.NATS); diff != "" {
		t.Errorf("the documented defaults differ from the code's: %s", diff)
	}
}
