package cli

import (
	"bytes"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/openapi"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// storedImport is the connector of --propose, in the store of a server.
type storedImport struct {
	*connectorImportCmd
	api      service
	newest   *gatehouse.ConnectorVersion
	former   []byte
	proposed *gatehouse.Action
}

func (s *storedImport) before(g *globals) (_ []byte, err error) {
	if s.api, err = g.connect(); err != nil {
		return nil, err
	}
	s.newest, err = s.api.FindConnectors(g.Ctx, 0)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		s.newest, err = &gatehouse.ConnectorVersion{}, nil
	}
	if err != nil {
		return nil, err
	}
	known, former, err := config.ImportOf(s.newest.Source, s.Propose)
	switch {
	case err != nil:
		return nil, err
	case !known && s.BaseURL == "":
		return nil, term.Usagef("the store has no connector %s: give its address as --base-url", s.Propose)
	case known && s.BaseURL != "":
		return nil, term.Usagef("the store has a connector %s, with an address: leave out --base-url", s.Propose)
	}
	s.former = []byte(former)
	return s.former, nil
}

func (s *storedImport) write(g *globals, file *openapi.File) error {
	text, err := file.StoredText()
	if err != nil || bytes.Equal(text, s.former) {
		return err
	}
	source, err := config.EditImport(s.newest.Source, s.Propose, s.BaseURL, string(text))
	if err != nil {
		return err
	}
	if len(source) > gatehouse.MaxConnectorSource {
		return term.Usagef("with these operations, the connectors in the store have %d KiB, and at most %d KiB are "+
			"kept: take fewer operations with --only, or a file with --to", len(source)>>10+1,
			gatehouse.MaxConnectorSource>>10)
	}
	s.proposed, err = s.api.ProposeConnectors(g.Ctx, gatehouse.ConnectorProposal{
		Source: source, Rationale: s.Rationale, Base: &s.newest.Version,
	})
	return err
}

func (s *storedImport) action() *gatehouse.Action { return s.proposed }

func (s *storedImport) report(g *globals, waiting int) error {
	if waiting > 0 {
		g.Say("Operations that wait to be accepted: %d. Import again with --accept NAME or --accept-all.", waiting)
	}
	if s.proposed == nil {
		g.Say("The connector %s in the store has these operations already.", s.Propose)
		return nil
	}
	g.Say("Connectors are changed through the gate: somebody else has to approve %s.", term.Safe(s.proposed.ID))
	return exitOfStatus(s.proposed.Status, gatehouse.UntilDecided)
}
