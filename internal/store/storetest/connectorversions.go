package storetest

import (
	"errors"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// connectorVersions: version numbers have no gap, an action stores at most one version, and another tenant sees no
// version.
func (s *suite) connectorVersions() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	version := func(n int, action string) *gatehouse.ConnectorVersion {
		return &gatehouse.ConnectorVersion{
			Tenant: tenant, Version: n, Source: "connectors: {" + action + ": {}}", SHA256: strings.Repeat("0", 64),
			AppliedBy: "ana", AppliedAt: s.now(), ActionID: action,
		}
	}
	insert := func(v *gatehouse.ConnectorVersion) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error { return tx.InsertConnectorVersion(v) }
	}
	newest := func(s *suite, want int) {
		s.Helper()
		s.view(func(tx gatehouse.ReadTx) error {
			n, err := tx.ConnectorVersion()
			s.same("the newest version", n, want)
			return err
		})
	}

	newest(s, 0)
	s.updateReturns(gatehouse.ErrConflict, "a first version with a number above 1", insert(version(2, "act_1")))
	first, second := version(1, "act_1"), version(2, "act_2")
	s.update(insert(first))
	s.updateReturns(gatehouse.ErrConflict, "the same number", insert(version(1, "act_2")))
	s.updateReturns(gatehouse.ErrConflict, "the same action", insert(version(2, "act_1")))
	s.updateReturns(gatehouse.ErrConflict, "a gap", insert(version(3, "act_2")))
	s.update(insert(second))
	newest(s, 2)
	s.view(func(tx gatehouse.ReadTx) error {
		found, err := tx.FindConnectorVersion(1)
		s.same("the first version", found, first)
		if err != nil {
			return err
		}
		list, err := tx.ListConnectorVersions()
		first.Source, second.Source = "", ""
		s.same("all versions", list, []*gatehouse.ConnectorVersion{second, first})
		return err
	})
	newest(s.as("acme"), 0)
	s.as("acme").view(func(tx gatehouse.ReadTx) error {
		if _, err := tx.FindConnectorVersion(1); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("another tenant: error %v", err)
		}
		return nil
	})
}
