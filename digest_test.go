package gatehouse_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

const proposalText = `{"action_type": "price_change", "connector": "shop", "operation": "update",
 "target": {"entity_type": "item", "entity_ref": "SKU-1042", "version": "7"},
 "current_state": {"price": "10.00", "id": 1234567890123456789},
 "proposed_change": {"price": "12.50", "list": [3, 1.00, 2e0], "a": {"z": null, "b": true}},
 "rationale": "supplier raised cost by 25 %",
 "risk_level": 3, "magnitude": {"amount": "2.50", "currency": "USD"}, "on_behalf_of": "ana",
 "evaluations": [{"name": "schema_validation", "kind": "deterministic", "result": "pass", "confidence": 0.90,
   "details": "ok"}],
 "artifact_diff": {"type": "unified_diff", "text": "-a\n+b", "summary": "one line", "lines_added": 1,
   "lines_removed": 0},
 "context": {"project_id": "p", "iteration": 3}, "expires_in": "4h",
 "callback": {"type": "webhook", "url": "https://example.com/done"}, "metadata": {"m": 1}, "idempotency_key": "k-1"}`

func proposal(t testing.TB, text string) *gatehouse.Proposal {
	t.Helper()
	var p gatehouse.Proposal
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return &p
}

func TestDigestVectors(t *testing.T) {
	t.Parallel()
	var v struct {
		About   string `json:"about"`
		Vectors []struct {
			Name        string           `json:"name"`
			Tenant      string           `json:"tenant"`
			Revision    int              `json:"revision"`
			Fingerprint string           `json:"fingerprint"`
			Proposal    string           `json:"proposal"`
			Text        string           `json:"canonical"`
			Digest      gatehouse.Digest `json:"digest"`
			SameAs      string           `json:"same_as"`
		} `json:"vectors"`
	}
	readVectors(t, "digest.json", &v)
	if len(v.Vectors) < 20 {
		t.Fatalf("only %d vectors", len(v.Vectors))
	}
	names := map[gatehouse.Digest]string{}
	for _, c := range v.Vectors {
		p := proposal(t, c.Proposal)
		a := &gatehouse.Action{Tenant: c.Tenant, Revision: c.Revision, Fingerprint: c.Fingerprint, Proposal: *p}
		if diff := cmp.Diff(c.Text, string(a.Canonical())); diff != "" {
			t.Errorf("%s: canonical (-want +got):\n%s", c.Name, diff)
		}
		if got := gatehouse.ComputeDigest(c.Tenant, c.Revision, p.Connector, c.Fingerprint, p); got != c.Digest {
			t.Errorf("%s: ComputeDigest = %s; want %s", c.Name, got, c.Digest)
		}
		if got := a.ComputeDigest(); got != c.Digest {
			t.Errorf("%s: the action's digest = %s; want %s", c.Name, got, c.Digest)
		}
		if again, err := gatehouse.Canonicalize([]byte(a.Canonical())); err != nil || again != a.Canonical() {
			t.Errorf("%s: the canonical action is not canonical: %q, %v", c.Name, again, err)
		}
		if other := names[c.Digest]; other != c.SameAs {
			t.Errorf("%s: has the digest of %q; want that of %q", c.Name, other, c.SameAs)
		}
		if c.SameAs == "" {
			names[c.Digest] = c.Name
		}
	}
}

// TestDigestSurvivesStorage encodes and decodes an action, as every path through
// the system does: the digest computed from it must not change.
func TestDigestSurvivesStorage(t *testing.T) {
	t.Parallel()
	p := proposal(t, proposalText)
	a := gatehouse.Action{ID: "act_1", Tenant: "default", Revision: 1, Fingerprint: "f", Proposal: *p,
		ProposedAt: time.Unix(0, 0).UTC()}
	a.Digest = a.ComputeDigest()
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var back gatehouse.Action
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.ComputeDigest() != a.Digest || back.Digest != a.Digest {
		t.Errorf("digest %s became %s", a.Digest, back.ComputeDigest())
	}
	if diff := cmp.Diff(a, back); diff != "" {
		t.Errorf("action (-before +after):\n%s", diff)
	}
}

func TestProposalDecodesCanonically(t *testing.T) {
	t.Parallel()
	p := proposal(t, `{"proposed_change": {"b": 1.00, "a": "\u0041"}, "current_state": null, "context": [ ],
		"evaluations": [{"confidence": 0.90}], "magnitude": {"amount": 12.50}}`)
	if p.ProposedChange != `{"a":"A","b":1.00}` || p.CurrentState != "" || p.Context != "[]" ||
		p.Evaluations[0].Confidence != "0.90" || p.Magnitude.Amount != "12.50" {
		t.Errorf("decoded %+v", p)
	}
	for _, text := range []string{
		`{"proposed_change": {"a": 1, "\u0061": 2}}`,
		`{"metadata": {"a": "\ud800"}}`,
		"{\"context\": {\"a\": \"\xff\"}}",
		`{"current_state": ` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `}`,
		`{"magnitude": {"amount": "1,5"}}`,
		`{"magnitude": {"amount": 1e9999}}`,
		`{"magnitude": {"amount": true}}`,
		`{"expires_in": "soon"}`,
	} {
		var p gatehouse.Proposal
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("decoded %s as %+v", text, p)
		}
	}
}

// TestContentHash changes each member of a proposal separately. Each change must
// change the hash; only changes of bound members may change the digest.
func TestContentHash(t *testing.T) {
	t.Parallel()
	hash := func(text string) [32]byte { return proposal(t, text).ContentHash() }
	digest := func(p *gatehouse.Proposal) gatehouse.Digest {
		return gatehouse.ComputeDigest("default", 1, p.Connector, "f", p)
	}
	base := proposal(t, proposalText)
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(proposalText), &members); err != nil {
		t.Fatal(err)
	}
	shuffled, err := json.Marshal(members) // sorts the members, drops the white space
	if err != nil {
		t.Fatal(err)
	}
	if string(shuffled) == proposalText || hash(string(shuffled)) != base.ContentHash() {
		t.Error("order or white space changes the hash")
	}
	if hash(strings.Replace(proposalText, `"4h"`, `"240m"`, 1)) != base.ContentHash() {
		t.Error("another writing of the same duration changes the hash")
	}

	bound := map[string]bool{
		"connector": true, "operation": true, "target": true, "current_state": true,
		"proposed_change": true, "magnitude": true, "idempotency_key": true,
	}
	if n := reflect.TypeFor[gatehouse.Proposal]().NumField(); n != len(members) {
		t.Fatalf("a Proposal has %d members, the text %d", n, len(members))
	}
	seen := map[[32]byte]string{base.ContentHash(): "nothing"}
	for name, other := range map[string]string{
		"action_type": `"note"`, "connector": `"crm"`, "operation": `"delete"`,
		"target":        `{"entity_type":"x","entity_ref":"y"}`,
		"current_state": `{"price":"10.0"}`, "proposed_change": `{"price":"12.5"}`, "rationale": `"r"`, "risk_level": `4`,
		"magnitude": `{"amount":"2.5"}`, "on_behalf_of": `"bob"`, "evaluations": `[]`, "artifact_diff": `null`,
		"context": `{}`, "expires_in": `"3h"`, "callback": `null`, "metadata": `{"m":1.0}`, "idempotency_key": `"k-2"`,
	} {
		before := members[name]
		members[name] = json.RawMessage(other)
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		members[name] = before
		p := proposal(t, string(text))
		if was, ok := seen[p.ContentHash()]; ok {
			t.Errorf("changing %s gives the hash of changing %s", name, was)
		}
		seen[p.ContentHash()] = name
		if changed := digest(p) != digest(base); changed != bound[name] {
			t.Errorf("changing %s: digest changed: %v; want %v", name, changed, bound[name])
		}
	}
	if len(seen) != len(members)+1 {
		t.Errorf("%d hashes for %d members", len(seen), len(members))
	}
}

func TestContentHashOfDeepestMember(t *testing.T) {
	t.Parallel()
	deepest, err := gatehouse.Canonicalize([]byte(strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32)))
	if err != nil {
		t.Fatal(err)
	}
	p := gatehouse.Proposal{ProposedChange: deepest}
	if p.ContentHash() == (&gatehouse.Proposal{ProposedChange: "{}"}).ContentHash() {
		t.Error("the change is not part of the hash")
	}
}
