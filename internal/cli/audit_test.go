package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// unlisted is a service that cannot list principals.
type unlisted struct {
	service
	asked int
}

func (u *unlisted) ListPrincipals(context.Context, string, int) (gatehouse.Page[*gatehouse.Principal], error) {
	u.asked++
	return gatehouse.Page[*gatehouse.Principal]{}, gatehouse.E(gatehouse.CodeInternal, "")
}

// TestAuditNamesAreAskedOnce: a list of principals that fails is not asked for again for each entry.
func TestAuditNamesAreAskedOnce(t *testing.T) {
	t.Parallel()
	g, out, _ := testGlobals(t)
	api := &unlisted{}
	var entries []*gatehouse.Entry
	for i := range 3 {
		entries = append(entries, &gatehouse.Entry{Body: gatehouse.JSON(fmt.Sprintf(
			`{"at":"2026-11-23T15:19:38Z","type":"principal.created","subject":"prn_1","actor":"prn_%d"}`, i))})
	}
	if err := g.printEntries(&actors{api: api}, entries); err != nil || api.asked != 1 {
		t.Errorf("asked %d times, %v\n%s", api.asked, err, out)
	}
}

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
