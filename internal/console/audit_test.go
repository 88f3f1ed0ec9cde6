package console_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

var rowTypes = regexp.MustCompile(`data-type="([^"]*)"`)

// types are the event types of the entries that a page shows, newest first.
func (p *page) types() (list []string) {
	for _, m := range rowTypes.FindAllStringSubmatch(p.body, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestAuditFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bo := w.signIn("bo", gatehouse.RoleApprover)
	one := w.propose(w.agent("bot"), nil)
	two := w.propose(w.agent("robot"), func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-2" })
	for _, x := range []struct {
		b *browser
		a *gatehouse.Action
	}{{ana, one}, {bo, two}} {
		d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: x.a.Digest}
		if _, err := w.gate.Decide(w.as(x.b.creds), x.a.ID, d); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(2 * 24 * time.Hour)
	w.propose(w.agent("late"), func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-3" })
	w.number()
	w.advance(-2 * 24 * time.Hour)
	eve := w.signIn("eve", gatehouse.RoleAuditor) // now, because a session does not last two days
	w.number()
	today, later := w.now().UTC().Format(time.DateOnly), w.now().Add(36*time.Hour).UTC().Format("2006-01-02T15:04")

	for query, want := range map[string][]string{
		"by=ana&kind=decisions":          {"hitl.approved"},
		"by=bot":                         {"hitl.proposed"},
		"by=nobody":                      nil,
		"kind=decisions":                 {"hitl.approved", "hitl.approved"},
		"kind=decisions&since=" + later:  nil,
		"kind=proposals&since=" + later:  {"hitl.proposed"},
		"kind=proposals&until=" + today:  {"hitl.proposed", "hitl.proposed"},
		"q=sku-2":                        {"hitl.approved", "hitl.proposed"},
		"q=" + two.ID + "&by=bo":         {"hitl.approved"},
		"q=late":                         {"principal.created"},
		"q=SKU-2&by=ana":                 nil,
		"kind=runs":                      nil,
		"q=-2":                           nil,
		"kind=proposals&by=bot&q=SKU-17": nil,
	} {
		p := eve.get("/audit?" + query).want(http.StatusOK)
		got := p.types()
		if !slices.Equal(got, want) {
			t.Errorf("%s shows %q, want %q", query, got, want)
		}
		if len(want) == 0 {
			p.has("No matching entries")
		}
	}
	full, err := w.gate.FindAction(w.as(bo.creds), two.ID)
	must(t, err)
	for _, id := range []string{full.Approval.ID, full.Push.ID} {
		if got := eve.get("/audit?q=" + id).types(); !slices.Equal(got, []string{"hitl.approved", "hitl.proposed"}) {
			t.Errorf("a search about %s finds %q", id, got)
		}
	}
	newest := eve.get("/audit").types()
	if got := eve.get("/audit?q=9223372036854775807").types(); !slices.Equal(got, newest) {
		t.Errorf("a search for a number that is too large finds %q", got)
	}
	eve.get("/audit?since=yesterday").want(http.StatusUnprocessableEntity).has("2026-11-27T04:00")
	eve.get("/audit?kind=x").want(http.StatusUnprocessableEntity)
	eve.get("/audit?by=ana&kind=decisions").has(`value="ana"`, `<option value="decisions" selected`,
		">ana</b> approved <a ")
	eve.get("/audit?kind=deliveries&by=gatehouse").want(http.StatusOK)

	// The export has the same entries and what proves them.
	exported := eve.get("/audit/export?kind=decisions").want(http.StatusOK)
	if got := exported.header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Errorf("the export is %q", got)
	}
	rows, err := csv.NewReader(strings.NewReader(exported.body)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if got := rows[1][4]; got != "bo approved "+two.ID {
		t.Errorf("the sentence is %q", got)
	}
	if !strings.Contains(rows[1][12], `"type":"hitl.approved"`) {
		t.Errorf("the leaf is %q", rows[1][12])
	}
	w.signIn("cy", gatehouse.RoleApprover).get("/audit/export").want(http.StatusForbidden)
}

// TestAuditFindsEveryActionOnATarget: a search for a target, or for an approval, finds archived actions, bulk
// actions, and more actions than a list has on a page.
func TestAuditFindsEveryActionOnATarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	old := w.propose(w.agent("old"), nil)
	d := gatehouse.Decision{Decision: gatehouse.Reject, Digest: old.Digest, Notes: "not then"}
	if _, err := w.gate.Decide(w.as(ana.creds), old.ID, d); err != nil {
		t.Fatal(err)
	}
	w.archive(old)
	w.propose(w.agent("first"), nil)
	w.propose(w.agent("all"), func(p *gatehouse.Proposal) {
		p.Operation, p.CurrentState = "bulk_update", ""
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-1", "SKU-1042"}}
	})
	bot := w.agent("bot")
	for range gatehouse.MaxLimit {
		w.propose(bot, nil)
	}
	w.propose(w.agent("other"), func(p *gatehouse.Proposal) { p.Target.EntityRef = "SKU-10421" })
	w.number()
	eve := w.signIn("eve", gatehouse.RoleAuditor)
	for query, want := range map[string][]string{
		"q=sku-1042&by=first":                      {"hitl.proposed"},
		"q=sku-1042&by=all":                        {"hitl.proposed"},
		"q=SKU-1042&by=old":                        {"hitl.proposed"},
		"q=SKU-1042&by=other":                      nil,
		"q=" + old.Approval.ID + "&kind=proposals": {"hitl.proposed"},
	} {
		if got := eve.get("/audit?" + query).want(http.StatusOK).types(); !slices.Equal(got, want) {
			t.Errorf("%s shows %q, want %q", query, got, want)
		}
	}
	exported := eve.get("/audit/export?kind=proposals&q=SKU-1042").want(http.StatusOK)
	if n := strings.Count(exported.body, "hitl.proposed,"); n != gatehouse.MaxLimit+3 {
		t.Errorf("the export has %d entries, want %d", n, gatehouse.MaxLimit+3)
	}
}

// TestAuditSearchesInSteps: a page looks at a bounded number of entries and says how far it got.
func TestAuditSearchesInSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	eve := w.signIn("eve", gatehouse.RoleAuditor)
	w.propose(w.agent("bot"), nil)
	// More entries than a page searches, and than fit on a page.
	err := w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		for i := range console.SearchedRows + 100 {
			l := &gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "channel.failing", Subject: "=mail",
				Actor: "system"}
			if i < console.ExportedRows {
				l.Actor = "clock"
			}
			if err := tx.AppendLeaf(l); err != nil {
				return err
			}
		}
		return tx.AppendLeaf(&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "channel.off", Subject: "mail",
			Actor: "=cmd"})
	})
	must(t, err)
	for range 1 + console.SearchedRows/1000 { // the sequencer numbers so many at once
		w.number()
	}
	p := eve.get("/audit?kind=proposals").want(http.StatusOK).has("Searched back to entry").lacks("No matching entries")
	link := regexp.MustCompile(`href="([^"]*before=[^"]*)"`).FindStringSubmatch(p.body)
	if link == nil {
		t.Fatal("no link to older entries")
	}
	next := eve.get(strings.ReplaceAll(link[1], "&amp;", "&")).want(http.StatusOK)
	if got := next.types(); !slices.Equal(got, []string{"hitl.proposed"}) {
		t.Errorf("the next step finds %q", got)
	}
	if got := eve.get("/audit?kind=system").types(); len(got) != 50 {
		t.Errorf("%d entries on a page", len(got))
	}
	eve.get("/audit/export?kind=system").want(http.StatusUnprocessableEntity).has("choose a shorter time")
	// An export of exactly ExportedRows entries is complete, although the log has older entries.
	full := eve.get("/audit/export?by=clock").want(http.StatusOK)
	if n := strings.Count(full.body, "channel.failing,"); n != console.ExportedRows {
		t.Errorf("%d entries are exported", n)
	}
	// A spreadsheet must not read a text as a formula.
	if p := eve.get("/audit/export?by=%3Dcmd").want(http.StatusOK); strings.Count(p.body, "'=cmd") != 2 {
		t.Errorf("the export is %s", p.body)
	}
}

// TestEveryEventHasASentence: each documented type has a sentence, and belongs to exactly one kind of the form.
func TestEveryEventHasASentence(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/events.md")
	must(t, err)
	seen := 0
	for _, line := range strings.Split(string(doc), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.Contains(cells[1], "gatehouse") {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`").FindAllStringSubmatch(cells[1], -1) {
			seen++
			if kinds, sentence := console.OfEvent(m[1]); kinds != 1 || !sentence {
				t.Errorf("%s is of %d kinds; has a sentence: %t", m[1], kinds, sentence)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d types", seen)
	}
}

// lostPrincipals is an administration whose principals cannot be read.
type lostPrincipals struct{ *gate.Gate }

func (lostPrincipals) FindPrincipal(context.Context, string) (*gatehouse.Principal, error) {
	return nil, gatehouse.E(gatehouse.CodeBusy, "the store is away")
}

// TestAuditNamesAreReadOrRefused: if the names cannot be read, neither the page nor the export shows ids instead.
func TestAuditNamesAreReadOrRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("bot")
	w.number()
	w.config.Admin = lostPrincipals{w.gate}
	w.public("")
	eve := w.signIn("eve", gatehouse.RoleAuditor)
	for _, path := range []string{"/audit", "/audit/export"} {
		eve.get(path).want(http.StatusServiceUnavailable)
	}
}

// TestEscapeFormula: no spreadsheet reads a text of the export as a formula.
func TestEscapeFormula(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠SUM(1)"} {
		if got := console.EscapeFormula(text); got != "'"+text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"", "ana", "a=1", "é", "\xff"} {
		if got := console.EscapeFormula(text); got != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
}
