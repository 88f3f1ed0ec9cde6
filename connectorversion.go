package gatehouse

import (
	"context"
	"time"
)

// MaxConnectorSource bounds the text of the connectors in the store, in bytes.
const MaxConnectorSource = 128 << 10

// ConnectorVersion is a version of the connectors in the store: the section connectors of
// a configuration file, as YAML. The newest version is in force. The versions belong to
// the tenant default, whose administrators run the server; as in the file, each connector
// lists the tenants that it serves.
type ConnectorVersion struct {
	Tenant string `json:"tenant"`
	// Version counts from 1. Each version replaces the version with the preceding number.
	Version int `json:"version"`
	// Source is the text; lists leave it out.
	Source string `json:"source"`
	// SHA256 is the hash of Source.
	SHA256 string `json:"sha256"`
	// AppliedBy is the name of the principal that proposed the version, ActionID the
	// action by which it was approved.
	AppliedBy string    `json:"applied_by"`
	AppliedAt time.Time `json:"applied_at"`
	ActionID  string    `json:"action_id"`
}

// ConnectorState says which version of the connectors in the store a process uses. If Running and
// Stored differ for more than a few seconds, the process cannot use the stored version.
type ConnectorState struct {
	// Running is the version that the process uses, 0 for none.
	Running int `json:"running"`
	// Stored is the newest version in the store, 0 for none.
	Stored int `json:"stored"`
}

// ConnectorProposal is a request to replace the connectors in the store.
type ConnectorProposal struct {
	// Source is the whole new text, as in [ConnectorVersion].
	Source string `json:"source"`
	// Rationale tells the approvers why.
	Rationale string `json:"rationale,omitempty"`
	// Base is the version from which the source was edited, 0 for none. If it is not the newest
	// version, the proposal is refused with target_changed. Without a base, the source replaces
	// the newest version.
	Base *int `json:"base,omitempty"`
}

// Validate checks the length of the text.
func (p *ConnectorProposal) Validate() error {
	var v Violations
	if p.Source == "" || len(p.Source) > MaxConnectorSource {
		v.Add("/source", "must have 1 byte to 128 KiB")
	}
	return v.Err()
}

// ConnectorService manages the connectors in the store, for operators and administrators
// of the tenant default.
type ConnectorService interface {
	// ProposeConnectors proposes to replace the connectors in the store, as an L4 action that
	// another person approves. The push of the action stores the next version, which every replica
	// then uses within seconds.
	ProposeConnectors(ctx context.Context, p ConnectorProposal) (*Action, error)
	// FindConnectors returns a version; 0 is the newest.
	FindConnectors(ctx context.Context, version int) (*ConnectorVersion, error)
	// ListConnectorVersions returns all versions, newest first, without their source.
	ListConnectorVersions(ctx context.Context) ([]*ConnectorVersion, error)
}

// ConnectorVersionReader finds versions of the connectors in the store.
type ConnectorVersionReader interface {
	// ConnectorVersion returns the newest version's number, cheaply; 0 for none.
	ConnectorVersion() (int, error)
	FindConnectorVersion(version int) (*ConnectorVersion, error)
	// ListConnectorVersions returns all versions, newest first, without their source.
	ListConnectorVersions() ([]*ConnectorVersion, error)
}

// ConnectorVersionWriter stores versions of the connectors.
type ConnectorVersionWriter interface {
	// InsertConnectorVersion stores a version. It returns ErrConflict if the version does not have
	// the next number, or if the action has already stored a version.
	InsertConnectorVersion(v *ConnectorVersion) error
}
