package gate

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.PreferenceService = (*Gate)(nil)

// ListPreferences returns the caller's preference for each channel that sends to
// persons.
func (g *Gate) ListPreferences(ctx context.Context) (list []*gatehouse.Preference, err error) {
	err = g.View(ctx, "preference", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = g.preferences(tx, c.Principal)
		return err
	})
	return list, err
}

// preferences returns a principal's preference for each channel of the tenant that sends to persons. For a channel
// without a stored preference, it returns a preference that mutes nothing.
func (g *Gate) preferences(tx gatehouse.ReadTx, p *gatehouse.Principal) ([]*gatehouse.Preference, error) {
	stored, err := tx.ListPreferences(p.ID)
	if err != nil {
		return nil, err
	}
	devices, err := tx.ListDevices(p.ID)
	if err != nil {
		return nil, err
	}
	list := []*gatehouse.Preference{}
	for _, info := range g.config.Channels {
		if !info.Personal || !slices.Contains(info.Tenants, p.Tenant) {
			continue
		}
		one := &gatehouse.Preference{
			Tenant: p.Tenant, PrincipalID: p.ID, Channel: info.Name, Muted: []gatehouse.MessageTopic{},
		}
		if i := slices.IndexFunc(stored,
			func(s *gatehouse.Preference) bool { return s.Channel == info.Name }); i >= 0 {
			one = stored[i]
		}
		one.Kind = info.Kind
		if info.Endpoint != nil {
			one.Reaches = len(devices) > 0
		} else {
			one.Reaches = info.Reaches(p)
		}
		list = append(list, one)
	}
	return list, nil
}

// SetPreference replaces the caller's preference for a channel. A preference that leaves no
// channel for questions or alerts is refused here; the notifier checks this again for each
// message.
func (g *Gate) SetPreference(
	ctx context.Context, change gatehouse.PreferenceChange,
) (*gatehouse.Preference, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := change.Validate(); err != nil {
		return nil, err
	}
	return usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Preference, error) {
		list, err := g.preferences(tx, c.Principal)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(list, func(p *gatehouse.Preference) bool { return p.Channel == change.Channel })
		if at < 0 {
			return nil, gatehouse.Violations{{
				Pointer: "/channel", Detail: "names no channel that sends to persons in this tenant",
			}}.Err()
		}
		out := list[at]
		var v gatehouse.Violations
		for _, topic := range change.Muted {
			if topic.Vital() && !slices.ContainsFunc(list, func(p *gatehouse.Preference) bool {
				return p != out && p.Reaches && !p.Mutes(topic)
			}) {
				v.Add("/muted", "can contain %s only while another channel still sends them to you", topic)
			}
		}
		if err := v.Err(); err != nil {
			return nil, err
		}
		now := tx.Now()
		out.Muted, out.Quiet, out.ChangedAt = change.Muted, change.Quiet, &now
		return out, putPreference(tx, out, c.Principal.ID, string(c.Via))
	})
}

// putPreference stores a preference and records the change.
func putPreference(tx gatehouse.Tx, p *gatehouse.Preference, actor, via string) error {
	if err := tx.PutPreference(p); err != nil {
		return err
	}
	data := map[string]any{"channel": p.Channel, "muted": p.Muted}
	if p.Quiet != nil {
		data["quiet"] = p.Quiet
	}
	if via != "" {
		data["via"] = via
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: p.Tenant, Type: "preference.changed", Subject: p.PrincipalID, Actor: actor, Data: usecase.Object(data),
	})
}
