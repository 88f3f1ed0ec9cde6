package shared

import (
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
)

func scanPreference(r Row) (*gatehouse.Preference, error) {
	p := &gatehouse.Preference{Tenant: r.Text(), PrincipalID: r.Text(), Channel: r.Text()}
	muted := r.Text()
	quiet := gatehouse.QuietHours{From: r.Text(), To: r.Text(), Zone: r.Text()}
	if quiet.From != "" {
		p.Quiet = &quiet
	}
	p.ChangedAt = r.TimePtr()
	return p, json.Unmarshal([]byte(muted), &p.Muted)
}

// ListPreferences lists the preferences of a principal, or of all if principal is "", sorted by principal and channel.
func (t Reads) ListPreferences(principal string) ([]*gatehouse.Preference, error) {
	return list(t, scanPreference, `
SELECT tenant, principal_id, channel, muted, quiet_from, quiet_to, quiet_zone, changed_at
FROM notification_preference WHERE tenant = $1 AND ($2 = '' OR principal_id = $2)
ORDER BY principal_id, channel`, t.Tenant(), principal)
}

// PutPreference stores a preference, or replaces the one of its principal and channel.
func (t Writes) PutPreference(p *gatehouse.Preference) error {
	if err := t.Owns(p.Tenant); err != nil {
		return err
	}
	muted := p.Muted
	if muted == nil {
		muted = []gatehouse.MessageTopic{}
	}
	var quiet gatehouse.QuietHours
	if p.Quiet != nil {
		quiet = *p.Quiet
	}
	return t.Write(`
INSERT INTO notification_preference (tenant, principal_id, channel, muted, quiet_from, quiet_to, quiet_zone,
  changed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, principal_id, channel) DO UPDATE SET muted = excluded.muted,
  quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to, quiet_zone = excluded.quiet_zone,
  changed_at = excluded.changed_at`,
		p.Tenant, p.PrincipalID, p.Channel, string(gatehouse.MustJSON(muted)), quiet.From, quiet.To, quiet.Zone,
		p.ChangedAt)
}
