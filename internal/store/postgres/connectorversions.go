package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ConnectorVersion returns the number of the newest version; 0 for none.
func (t *readTx) ConnectorVersion() (int, error) {
	n, err := t.number(`SELECT coalesce(max(version), 0) FROM connector_version WHERE tenant = $1`, t.tenant)
	return int(n), err
}

// FindConnectorVersion finds a version by number.
func (t *readTx) FindConnectorVersion(version int) (v *gatehouse.ConnectorVersion, err error) {
	err = t.one(`SELECT `+shared.ConnectorVersionColumns+`, source FROM connector_version
WHERE tenant = $1 AND version = $2`,
		func(r *row) error { v = shared.ScanConnectorVersion(r); v.Source = r.Text(); return nil }, t.tenant, version)
	return v, err
}

// ListConnectorVersions lists all versions, newest first, without their source.
func (t *readTx) ListConnectorVersions() (list []*gatehouse.ConnectorVersion, err error) {
	err = t.each(`SELECT `+shared.ConnectorVersionColumns+` FROM connector_version
WHERE tenant = $1 ORDER BY version DESC`,
		func(r *row) error { list = append(list, shared.ScanConnectorVersion(r)); return nil }, t.tenant)
	return list, err
}

// InsertConnectorVersion stores the next version.
func (t *tx) InsertConnectorVersion(v *gatehouse.ConnectorVersion) error {
	if err := t.checkTenant(v.Tenant); err != nil {
		return err
	}
	return t.write(`
WITH w AS (
  INSERT INTO connector_version (tenant, version, source, sha256, applied_by, applied_at, action_id)
  SELECT $1, $2::int, $3, $4, $5, $6::bigint, $7
  WHERE $2::int - 1 = coalesce((SELECT max(version) FROM connector_version WHERE tenant = $1), 0)
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		v.Tenant, v.Version, v.Source, v.SHA256, v.AppliedBy, v.AppliedAt, v.ActionID)
}
