package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// exitTryLater is EX_TEMPFAIL of sysexits.h: the mail server delivers the mail again later.
const exitTryLater = 75

// notifyBounceCmd takes a returned mail.
type notifyBounceCmd struct {
	Recipient string `placeholder:"ADDRESS" help:"The address that the mail was sent to; by default that of its header."`
}

func (*notifyBounceCmd) Help() string {
	return `
For a pipe from your mail server; needs no key. The server believes a mail only if
it was sent to the envelope sender of one of its own. Exits 75 if the mail server
should try again later.

Examples:

    gatehouse notify bounce --recipient "$ORIGINAL_RECIPIENT"
`
}

func (c *notifyBounceCmd) Run(g *globals) error {
	mail, err := io.ReadAll(io.LimitReader(g.Stdin, gatehouse.MaxBounce))
	if err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	// The mail server may require that the program reads all input.
	if _, err := io.Copy(io.Discard, g.Stdin); err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	api, err := g.connect()
	if err != nil {
		return err
	}
	out, err := api.ReceiveBounce(g.Ctx, c.Recipient, mail)
	var e *gatehouse.Error
	if known := errors.As(err, &e); known && e.Code.Retryable() || err != nil && !known {
		g.report(err)
		return term.Exit(exitTryLater)
	}
	return show(g, out, err, func() *term.Table {
		t := &term.Table{Header: []string{"RESULT"}}
		t.Add(string(out.Result))
		return t
	})
}
