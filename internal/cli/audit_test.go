package cli

import (
	"bytes"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestAuditNames: on a terminal people read names; a program gets the subject's id, which stays the
// same when somebody else gets the name.
func TestAuditNames(t *testing.T) {
	t.Parallel()
	entry := &gatehouse.Entry{
		Body: `{"at":"2026-11-23T15:19:38Z","type":"principal.created","subject":"prn_1","actor":"prn_2"}`}
	for tty, want := range map[bool]string{
		true:  "     0  2026-11-23T15:19:38Z  principal.created  ana  by ben\n",
		false: "0\t2026-11-23T15:19:38Z\tprincipal.created\tprn_1\tben\t\t\n",
	} {
		var out bytes.Buffer
		g := &globals{IO: term.IO{Ctx: t.Context(), Stdout: &out, TTY: tty}}
		who := &actors{names: map[string]string{"prn_1": "ana", "prn_2": "ben"}}
		if err := g.printEntries(who, []*gatehouse.Entry{entry}); err != nil || out.String() != want {
			t.Errorf("terminal %v: %v\n%q, want\n%q", tty, err, out.String(), want)
		}
	}
}
