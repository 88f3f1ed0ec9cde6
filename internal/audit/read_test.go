package audit_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

func TestReadEntries(t *testing.T) {
	t.Parallel()
	entries, head := logOf(23)
	var text bytes.Buffer
	for _, e := range entries[:10] { // lines
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range [][]*gatehouse.Entry{entries[10:20], {}, entries[20:]} {
		b, err := json.MarshalIndent(gatehouse.Page[*gatehouse.Entry]{Items: page, NextCursor: "x"}, "\t", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	r, err := audit.VerifyEntries(audit.ReadEntries(&text), head)
	if err != nil || r.Err() != nil || r.Found != 23 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestReadEntriesErrors(t *testing.T) {
	t.Parallel()
	entries, head := logOf(1)
	b, err := json.Marshal(entries[0])
	if err != nil {
		t.Fatal(err)
	}
	good := string(b)
	for _, tt := range []struct{ after, says string }{
		{`{"index":1`, "unexpected EOF"},
		{`[]`, "cannot unmarshal"},
		{`{}`, "neither an entry nor a page"},
		{`{"index":1,"leaf":{}}`, "neither an entry nor a page"},
		{`{"leaf":{},"leaf_hash":"` + strings.Repeat("A", 43) + `="}`, "neither an entry nor a page"},
		{`{"items":[null]}`, "without a leaf"},
		{`{"items":[{"index":1,"leaf_hash":"` + strings.Repeat("A", 43) + `="}]}`, "without a leaf"},
		{`{"index":1,"leaf":{"a":1,"a":2},"leaf_hash":"` + strings.Repeat("A", 43) + `="}`, "same name"},
		{`{"index":1,"leaf":{},"leaf_hash":"AAAA"}`, "not a base64 SHA-256"},
	} {
		r, err := audit.VerifyEntries(audit.ReadEntries(strings.NewReader(good+tt.after)), head)
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "audit: after 1 entries: ") || r.Found != 1 {
			t.Errorf("%s: %v after %d entries, want %s", tt.after, err, r.Found, tt.says)
		}
	}
}

// BenchmarkReadEntries verifies a log from its text.
func BenchmarkReadEntries(b *testing.B) {
	const n = 10_000
	entries, head := logOf(n)
	var text bytes.Buffer
	for _, e := range entries {
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := audit.VerifyEntries(audit.ReadEntries(bytes.NewReader(text.Bytes())), head)
		if err != nil || r.Err() != nil {
			b.Fatal(err, r.Err())
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
