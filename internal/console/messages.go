package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const messagesPath = "/settings/messages"

func (c *Console) messageRoutes() []route {
	watchers := []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleAuditor}
	return []route{
		{pattern: "GET " + messagesPath, roles: watchers, handle: c.messages},
		{
			pattern: "POST " + messagesPath + "/retry",
			roles:   []gatehouse.Role{gatehouse.RoleOperator},
			handle:  c.retryMessage,
		},
		{
			pattern: "POST " + messagesPath + "/retry-failed",
			roles:   []gatehouse.Role{gatehouse.RoleOperator},
			handle:  c.retryFailed,
		},
		{
			pattern: "POST " + messagesPath + "/test",
			roles:   []gatehouse.Role{gatehouse.RoleAdmin},
			handle:  c.testChannel,
		},
	}
}

// messagesView is a page of messages and callbacks, with the state of the channels.
type messagesView struct {
	channels []*gatehouse.ChannelState
	list     []*gatehouse.Notification
	failed   bool
	first    string
	more     string
	// tested is the test message that was just sent, nil for none.
	tested *gatehouse.Notification
}

// channelsOf lists the channels of the page's messages.
func (p *messagesView) channelsOf() (names []string) {
	for _, n := range p.list {
		if !slices.Contains(names, n.Channel) {
			names = append(names, n.Channel)
		}
	}
	slices.Sort(names)
	return names
}

func (c *Console) messages(v *view) error { return c.showMessages(v, &messagesView{}) }

func (c *Console) showMessages(v *view, p *messagesView) error {
	var err error
	if p.channels, err = c.cfg.Notifications.ListChannels(v.ctx); err != nil {
		return err
	}
	p.failed = v.query("show") == "failed"
	f := gatehouse.NotificationFilter{Cursor: v.query("cursor"), Limit: groupRows}
	if p.failed {
		f.Status = gatehouse.NotificationFailed
	}
	page, err := c.cfg.Notifications.ListNotifications(v.ctx, f)
	if err != nil {
		return err
	}
	p.list = page.Items
	if f.Cursor != "" {
		p.first = v.messagesURL("", "")
	}
	if page.NextCursor != "" {
		p.more = v.messagesURL("", page.NextCursor)
	}
	return v.render(http.StatusOK, "Messages", settingsPath, messagesBody(v, p))
}

// messagesURL is the URL of the messages, or of an act on them, with the filter of this request.
func (v *view) messagesURL(act, cursor string) string {
	q := url.Values{}
	for name, value := range map[string]string{"show": v.query("show"), "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return strings.TrimSuffix(messagesPath+act+"?"+q.Encode(), "?")
}

func (c *Console) retryMessage(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	if _, err := c.cfg.Notifications.RetryNotification(v.ctx, v.r.PostForm.Get("id")); err != nil {
		return err
	}
	return v.redirect(v.messagesURL("", v.query("cursor")))
}

// retryFailed resends the messages that failed on a channel in the last day.
func (c *Console) retryFailed(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	dry := false
	r := gatehouse.RetryRequest{
		Channel: v.r.PostForm.Get("channel"), Since: v.now.Add(-24 * time.Hour), DryRun: &dry,
		Limit: gatehouse.MaxLimit,
	}
	for {
		answer, err := c.cfg.Notifications.RetryNotifications(v.ctx, r)
		if err != nil {
			return err
		}
		if r.Cursor = answer.NextCursor; r.Cursor == "" {
			return v.redirect(v.messagesURL("", ""))
		}
	}
}

func (c *Console) testChannel(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	n, err := c.cfg.Notifications.TestChannel(v.ctx, v.r.PostForm.Get("channel"))
	if err != nil {
		return err
	}
	return c.showMessages(v, &messagesView{tested: n})
}

// messageWords describes a kind of message.
func messageWords(kind gatehouse.NotificationKind) string {
	if words := map[gatehouse.NotificationKind]string{
		gatehouse.NotifyDelegated: "Delegation",
		gatehouse.NotifyAsked:     "Approval requested", gatehouse.NotifyDecided: "Decided",
		gatehouse.NotifyExpired:   "Expired",
		gatehouse.NotifyEscalated: "Next stage began", gatehouse.NotifyReminded: "Reminder",
		gatehouse.NotifyDeadLetter: "Dead letter", gatehouse.NotifyUnknown: "Unknown outcome",
		gatehouse.NotifyDigest:           "Digest",
		gatehouse.NotifyCallbackDecided:  "Callback: decided",
		gatehouse.NotifyCallbackFinished: "Callback: finished", gatehouse.NotifyHeartbeat: "Heartbeat",
		gatehouse.NotifyChannelFailing: "A channel fails", gatehouse.NotifyTest: "Test",
	}[kind]; words != "" {
		return words
	}
	return string(kind)
}
