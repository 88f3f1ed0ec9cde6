package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// exitCode maps an error to its exit code.
func exitCode(err error) int {
	var silent term.Exit
	var usage *term.UsageError
	var e *gatehouse.Error
	switch {
	case err == nil:
		return term.ExitDone
	case errors.As(err, &silent):
		return int(silent)
	case errors.As(err, &usage):
		return term.ExitUsage
	case errors.As(err, &e):
		return exitOfCode(e.Code)
	case errors.Is(err, context.Canceled):
		return term.ExitCanceled
	}
	return term.ExitError
}

func exitOfCode(c gatehouse.Code) int {
	switch c {
	case gatehouse.CodeExpired:
		return term.ExitExpired
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval, gatehouse.CodeTooLate:
		return term.ExitDecided
	}
	switch gatehouse.StatusOf(c) {
	case 401, 403:
		return term.ExitNotAllowed
	}
	return term.ExitError
}

// exitOfStatus returns the exit code for an action's state after waiting, as an error; nil for 0.
func exitOfStatus(s gatehouse.Status, until gatehouse.Until) error {
	switch s {
	case gatehouse.StatusApplied, gatehouse.StatusReversed:
		return nil
	case gatehouse.StatusApproved, gatehouse.StatusPushing:
		if until == gatehouse.UntilDecided {
			return nil
		}
		return term.Exit(term.ExitPending)
	case gatehouse.StatusPending:
		return term.Exit(term.ExitPending)
	case gatehouse.StatusRejected, gatehouse.StatusDenied:
		return term.Exit(term.ExitRejected)
	case gatehouse.StatusExpired:
		return term.Exit(term.ExitExpired)
	case gatehouse.StatusCanceled, gatehouse.StatusSuperseded:
		return term.Exit(term.ExitDecided)
	case gatehouse.StatusUnknown:
		return term.Exit(term.ExitUnknown)
	}
	return term.Exit(term.ExitError)
}

// report prints an error to stderr: as text, or with --json as a problem.
func (g *globals) report(err error) {
	var silent term.Exit
	if errors.As(err, &silent) {
		return
	}
	if exitCode(err) == term.ExitCanceled {
		g.Say("Interrupted.")
		return
	}
	var e *gatehouse.Error
	known := errors.As(err, &e)
	if g.JSON {
		_ = term.WriteJSON(g.Stderr, problem(err, e))
		return
	}
	word := term.Paint(g.ColorErr, term.Red, "error:")
	if !known {
		for i, line := range strings.Split(term.ErrorText(err), "\n") {
			if i > 0 {
				word = " "
			}
			g.Say("%s %s", word, term.Safe(strings.TrimSpace(line)))
		}
	} else {
		g.Say("%s %s (%s)", word, term.Safe(e.Detail), e.Code)
		for _, v := range e.Violations {
			if strings.HasSuffix(e.Detail, v.Detail) && strings.Contains(e.Detail, v.Pointer) {
				continue // already in the message
			}
			g.Say("  %s %s", term.Safe(v.Pointer), term.Safe(v.Detail))
		}
		for _, name := range slices.Sorted(maps.Keys(e.Context)) {
			if value, ok := term.ContextText(e.Context[name]); ok {
				g.Say("  %s: %s", term.Safe(name), term.Safe(value))
			}
		}
		if e.RetryAfter > 0 {
			g.Say("  retry after: %ds", e.RetryAfter)
		}
	}
	if hint := g.hint(err, e); hint != "" {
		g.Say("%s %s", term.Paint(g.ColorErr, term.Dim, "hint:"), hint)
	}
}

// problem returns the members of a problem (RFC 9457) for an error. An error that is not a
// [gatehouse.Error], so that e is nil, has the code usage or client.
func problem(err error, e *gatehouse.Error) map[string]any {
	p := map[string]any{}
	if e == nil {
		p["code"], p["detail"], p["retryable"] = "client", term.ErrorText(err), false
		var usage *term.UsageError
		if errors.As(err, &usage) {
			p["code"] = "usage"
		}
		return p
	}
	maps.Copy(p, e.Context)
	p["code"], p["status"], p["detail"] = e.Code, gatehouse.StatusOf(e.Code), e.Detail
	p["retryable"] = e.Code.Retryable()
	if len(e.Violations) > 0 {
		p["errors"] = e.Violations
	}
	return p
}

// ownName is the name of the key's principal, or NAME if the server does not return one.
func (g *globals) ownName() string {
	ctx, cancel := context.WithTimeout(g.Ctx, 3*time.Second)
	defer cancel()
	if api, err := g.connect(); err == nil {
		if me, err := api.WhoAmI(ctx); err == nil {
			return term.ShellWord(term.Safe(me.Name))
		}
	}
	return "NAME"
}

// personHint says which kind of principal has the name, or how to find or create the person.
func (g *globals) personHint(pointer, name string) string {
	ctx, cancel := context.WithTimeout(g.Ctx, 3*time.Second)
	defer cancel()
	if api, err := g.connect(); err == nil {
		if p, err := api.FindPrincipal(ctx, name); err == nil && p.Kind != gatehouse.KindPerson {
			return fmt.Sprintf("the principal of this name is of the kind %s", p.Kind)
		}
	}
	if strings.HasPrefix(pointer, "/remove/") {
		return "`gatehouse group list` shows the members"
	}
	return "an administrator creates people: gatehouse principal create --kind person --role approver --name " +
		term.ShellWord(term.Safe(name))
}

// hint says what to do next, if the error itself does not.
func (g *globals) hint(err error, e *gatehouse.Error) string {
	if e == nil {
		var usage *term.UsageError
		if errors.As(err, &usage) || !term.IsUnreachable(err) {
			return ""
		}
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return "if your own certificate authority (CA) signed the server's certificate, name the CA's certificate in " +
				"SSL_CERT_FILE"
		}
		return "is the server running? See --url or GATEHOUSE_URL; `gatehouse serve` starts one"
	}
	switch e.Code {
	case gatehouse.CodeUnauthenticated:
		if g.Key == "" {
			return "set GATEHOUSE_KEY, or give --key"
		}
		return "the key is unknown or revoked, or its principal is disabled; `gatehouse doctor` explains more"
	case gatehouse.CodeEditTokenRequired:
		if g.EditToken == "" {
			return "set GATEHOUSE_EDIT_TOKEN, or give --edit-token"
		}
		name := g.ownName()
		return "an administrator makes a new token: gatehouse principal rotate-edit-token " + name +
			"; the only administrator: gatehouse admin reset " + name
	case gatehouse.CodeNotFound:
		if e.Context["request_id"] != nil { // the error is the server's
			return cmp.Or(g.missing, missingHint(e.Detail),
				"a key sees its own tenant only; `gatehouse doctor` prints its name")
		}
	case gatehouse.CodeInvalid:
		for _, v := range e.Violations {
			if name, ok := strings.CutPrefix(v.Detail, gatehouse.UnknownPerson); ok {
				return g.personHint(v.Pointer, strings.Trim(name, `"`))
			}
		}
	case gatehouse.CodeConfirmation:
		return "give the value with --confirm"
	case gatehouse.CodeTargetChanged:
		if term.MayAcknowledge(e) {
			return acknowledgeHint(term.Safe(cmp.Or(g.named, "ID")), e)
		}
		if term.MayRebase(e) {
			return "propose it on the present state: gatehouse rebase " + term.Safe(cmp.Or(g.named, "ID"))
		}
		return "it cannot be carried out unchanged: reject it, or ask the proposer to revise it for the present state"
	case gatehouse.CodeDigestMismatch:
		return "look at it again: gatehouse show " + term.Safe(cmp.Or(g.named, "ID"))
	case gatehouse.CodeNotUnknown:
		return "only a push whose outcome is unknown can be resolved: gatehouse push list --status unknown"
	}
	return ""
}

func acknowledgeHint(id string, err error) string {
	hint := "look at it again: gatehouse show " + id + "; if it is right nonetheless, add --acknowledge-stale"
	if term.MayRebase(err) {
		hint += "; or propose it on the present state: gatehouse rebase " + id
	}
	return hint
}

// missingHint says how to name a thing that the server did not find: "no action
// act_01a2", "no group finanse".
func missingHint(detail string) string {
	words := strings.Fields(detail)
	if len(words) != 3 || words[0] != "no" {
		return ""
	}
	kind, id := words[1], words[2]
	switch kind {
	case "group", "workflow", "secret", "policy", "principal":
		return "`gatehouse " + kind + " list` lists them"
	}
	_, digits, _ := strings.Cut(id, "_")
	if _, short := gatehouse.ShortID(kind, id+strings.Repeat("0", gatehouse.MinIDDigits)); short &&
		len(digits) < gatehouse.MinIDDigits {
		return fmt.Sprintf("a short id has %d digits or more", gatehouse.MinIDDigits)
	}
	return ""
}
