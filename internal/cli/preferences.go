package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// notifyPreferencesCmd groups the commands about one's own messages.
type notifyPreferencesCmd struct {
	Show preferencesShowCmd `cmd:"" help:"Show which messages you get on each channel."`
	Set  preferencesSetCmd  `cmd:"" help:"Choose which messages you get on a channel."`
}

// preferencesShowCmd shows preferences.
type preferencesShowCmd struct{}

func (*preferencesShowCmd) Help() string {
	return `
Prints one line for each channel that sends to persons. Piped output has these columns:
channel, kind, whether it reaches you (yes or no), muted topics, quiet hours.

Examples:

    gatehouse notify preferences show
`
}

func (*preferencesShowCmd) Run(g *globals, api service) error {
	list, err := api.ListPreferences(g.Ctx)
	return showPage(g, pageOf(list), err, "No channel sends to persons in this tenant.", func() *term.Table {
		return preferenceTable(list...)
	})
}

// preferencesSetCmd sets the preference for a channel.
type preferencesSetCmd struct {
	Channel string   `arg:"" help:"The channel's name."`
	Mute    []string `placeholder:"TOPIC" help:"Topics not to send: questions, reminders, outcomes, digests or alerts."`
	Quiet   string   `placeholder:"FROM-TO" help:"Hours in which messages wait, such as 20:00-07:00."`
	Zone    string   `placeholder:"ZONE" help:"The time zone of the quiet hours, such as Europe/Berlin; UTC by default."`
}

func (*preferencesSetCmd) Help() string {
	return `
Replaces your preference for the channel: topics that you leave out are sent again.
The topic outcomes is about how your requests ended; digests replace many messages.
questions and alerts can be muted only while another channel that reaches you keeps
them.

Examples:

    gatehouse notify preferences set mail --mute digests,outcomes
    gatehouse notify preferences set mail --quiet 20:00-07:00 --zone Europe/Berlin
    gatehouse notify preferences set mail
`
}

func (c *preferencesSetCmd) Run(g *globals, api service) error {
	change := gatehouse.PreferenceChange{Channel: c.Channel}
	for _, topic := range c.Mute {
		change.Muted = append(change.Muted, gatehouse.MessageTopic(topic))
	}
	if c.Quiet != "" {
		from, to, ok := strings.Cut(c.Quiet, "-")
		if !ok {
			return term.Usagef("--quiet is not FROM-TO, such as 20:00-07:00")
		}
		change.Quiet = &gatehouse.QuietHours{From: from, To: to, Zone: c.Zone}
	} else if c.Zone != "" {
		return term.Usagef("--zone needs --quiet")
	}
	p, err := api.SetPreference(g.Ctx, change)
	return show(g, p, err, func() *term.Table { return preferenceTable(p) })
}

// preferenceTable has a row for each preference.
func preferenceTable(list ...*gatehouse.Preference) *term.Table {
	t := &term.Table{Header: []string{"CHANNEL", "KIND", "REACHES YOU", "MUTED", "QUIET HOURS"}, Wide: 3}
	for _, p := range list {
		reaches := "no"
		if p.Reaches {
			reaches = "yes"
		}
		muted := make([]string, len(p.Muted))
		for i, topic := range p.Muted {
			muted[i] = string(topic)
		}
		quiet := ""
		if q := p.Quiet; q != nil {
			quiet = strings.TrimSpace(q.From + "-" + q.To + " " + q.Zone)
		}
		t.Add(p.Channel, p.Kind, reaches, strings.Join(muted, ","), quiet)
	}
	return t
}
