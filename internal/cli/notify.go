package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// notifyCmd groups the commands about messages to people.
type notifyCmd struct {
	List     notifyListCmd     `cmd:"" help:"List the messages and their recipients."`
	Channels notifyChannelsCmd `cmd:"" help:"List the channels and their state."`
	Retry    notifyRetryCmd    `cmd:"" help:"Send a message again now."`
	Test     notifyTestCmd     `cmd:"" help:"Send a test over a channel."`
	Bounce   notifyBounceCmd   `cmd:"" help:"Take a mail that a mail server returned, on stdin."`
	Device   notifyDeviceCmd   `cmd:"" help:"List, test and remove the browsers that get your notifications."`

	Preferences notifyPreferencesCmd `cmd:"" help:"Show and choose which messages you get on each channel."`

	SlackManifest notifySlackManifestCmd `cmd:"" help:"Print the manifest of the Slack app."`
}

// notifyListCmd lists messages.
type notifyListCmd struct {
	paging  `embed:""`
	Status  string `enum:"${notified}" default:"" placeholder:"STATUS" help:"Only those in this state."`
	Channel string `placeholder:"NAME" help:"Only those of this channel."`
	Action  string `placeholder:"ID" help:"Only those about this action, by its whole id."`
}

func (*notifyListCmd) Help() string {
	return `
One line for each recipient and channel, the newest first. accepted: the next hop has
accepted the message. delivered: the message has arrived. muted: the message was no
longer needed, or the recipient does not want it. Piped output has these
columns: id, time, kind, action, channel, recipient, status, attempts, error.

Examples:

    gatehouse notify list
    gatehouse notify list --status failed --channel mail
`
}

func (c *notifyListCmd) Run(g *globals, api service) error {
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Notification], error) {
			return api.ListNotifications(ctx, gatehouse.NotificationFilter{
				Status: gatehouse.NotificationStatus(c.Status), Channel: c.Channel, ActionID: c.Action,
				Cursor: cursor, Limit: limit,
			})
		})
	return showPage(g, page, err, "There are no such messages.", func() *term.Table {
		t := &term.Table{
			Header: []string{"ID", "WHEN", "WHAT", "ACTION", "CHANNEL", "TO", "STATUS", "ATTEMPTS", "ERROR"},
			Wide:   8, Drop: []int{7, 3, 0},
		}
		for _, n := range page.Items {
			t.Add(
				n.ID,
				g.At(n.CreatedAt),
				string(n.Kind),
				n.ActionID,
				n.Channel,
				cmp.Or(n.RecipientName, n.Recipient),
				string(n.Status),
				strconv.Itoa(n.Attempts),
				n.LastError,
			)
		}
		return t
	})
}

// notifyChannelsCmd lists channels.
type notifyChannelsCmd struct{}

func (*notifyChannelsCmd) Help() string {
	return `
Piped output has these columns: channel, kind, state (works, failing or off),
failures in a row, last success, last error.

Examples:

    gatehouse notify channels
`
}

func (*notifyChannelsCmd) Run(g *globals, api service) error {
	list, err := api.ListChannels(g.Ctx)
	return showPage(g, pageOf(list), err, "No channel is configured for this tenant.", func() *term.Table {
		t := &term.Table{
			Header: []string{"CHANNEL", "KIND", "STATE", "FAILURES", "LAST SUCCESS", "ERROR"},
			Wide:   5,
			Drop:   []int{3, 4},
		}
		for _, s := range list {
			last := ""
			if s.LastOKAt != nil {
				last = g.At(*s.LastOKAt)
			}
			t.Add(s.Channel, s.Kind, s.Word(), strconv.Itoa(s.Failures), last, s.LastError)
		}
		return t
	})
}

// notifyRetryCmd sends messages again.
type notifyRetryCmd struct {
	ID       string `arg:"" optional:"" help:"The message's id."`
	AllSince string `placeholder:"WHEN" help:"All that failed since then, instead of one: a time such as 2026-01-02T15:04:05Z, or 2h for the last two hours."`
	Channel  string `placeholder:"NAME" help:"Only those of this channel, with --all-since."`
	paging   `embed:""`
	Yes      bool `help:"Send what --all-since selects. Without it nothing changes."`
}

func (*notifyRetryCmd) Help() string {
	return `
Sends again a message that failed or that waits for another try. With --all-since,
sends all failed messages since then; without --yes it only lists them. A second call
finds only messages that have failed again.

Examples:

    gatehouse notify retry ntf_0193a1
    gatehouse notify retry --all-since 2h --channel mail
    gatehouse notify retry --all-since 2h --all --yes
`
}

// Run queues one message, or lists the selected failed messages, and with --yes queues them.
func (c *notifyRetryCmd) Run(g *globals, api service) error {
	switch {
	case c.ID == "" && c.AllSince == "":
		return term.Usagef("name a message, or give --all-since")
	case c.ID != "" && c.AllSince != "":
		return term.Usagef("name a message, or give --all-since, not both")
	case c.ID != "" && (c.Channel != "" || c.All || c.Cursor != "" || c.Yes):
		return term.Usagef("--channel, --all, --cursor and --yes need --all-since")
	case c.ID != "":
		n, err := api.RetryNotification(g.Ctx, c.ID)
		return printNotification(g, n, err)
	}
	since, err := parseSince(c.AllSince, g.Now())
	if err != nil {
		return term.Usagef("--all-since must be a duration such as 2h, or a time such as 2026-01-02T15:04:05Z")
	}
	out := gatehouse.RetryAnswer{DryRun: !c.Yes}
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (page gatehouse.Page[*gatehouse.Notification], err error) {
			answer, err := api.RetryNotifications(ctx, gatehouse.RetryRequest{
				Channel: c.Channel, Since: since, DryRun: &out.DryRun, Limit: limit, Cursor: cursor,
			})
			if err == nil {
				page.Items, page.NextCursor = answer.Items, answer.NextCursor
			}
			return page, err
		})
	if err != nil && len(page.Items) == 0 {
		return err
	}
	out.Items, out.NextCursor = page.Items, page.NextCursor
	// What was queued before a failure is printed, too.
	return cmp.Or(printOutcome(g, out, nil, func() error {
		err := showPage(g, page, nil, "No message has failed since then.",
			func() *term.Table { return notificationTable(page.Items...) })
		if err == nil && out.DryRun && len(page.Items) > 0 {
			g.Say("Nothing was sent: this was a dry run. To send, add --yes.")
		}
		return err
	}), err)
}

// notifyTestCmd tries a channel.
type notifyTestCmd struct {
	Channel string `arg:"" help:"The channel's name."`
}

func (*notifyTestCmd) Help() string {
	return `
Sends a test message, and prints the channel's answer. A channel that has one receiver
for all messages, such as a chat channel or a URL, sends the test there; any other
sends the test to you. A channel that is off because its receiver is gone is on again
after a successful test.

Examples:

    gatehouse notify test mail
`
}

func (c *notifyTestCmd) Run(g *globals, api service) error {
	n, err := api.TestChannel(g.Ctx, c.Channel)
	return printTest(g, n, err)
}

// printTest prints the outcome of a test; an unsuccessful one is an error.
func printTest(g *globals, n *gatehouse.Notification, err error) error {
	if err != nil {
		return err
	}
	if err := printNotification(g, n, nil); err != nil {
		return err
	}
	switch n.Status {
	case gatehouse.NotificationAccepted, gatehouse.NotificationDelivered:
		return nil
	case gatehouse.NotificationQueued, gatehouse.NotificationSent:
		return fmt.Errorf("the test is still %s: is a server with the role notifier running?", n.Status)
	case gatehouse.NotificationMuted:
		return errors.New(strings.TrimSuffix("the test was muted: "+n.LastError, ": "))
	}
	return fmt.Errorf("the test %s: %s", n.Status, n.LastError)
}

// printNotification prints the state of one message.
func printNotification(g *globals, n *gatehouse.Notification, err error) error {
	return show(g, n, err, func() *term.Table { return notificationTable(n) })
}

func notificationTable(list ...*gatehouse.Notification) *term.Table {
	t := &term.Table{Header: []string{"ID", "CHANNEL", "TO", "STATUS", "ERROR"}, Wide: 4}
	for _, n := range list {
		t.Add(n.ID, n.Channel, cmp.Or(n.RecipientName, n.Recipient), string(n.Status), n.LastError)
	}
	return t
}
