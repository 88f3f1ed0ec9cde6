package slack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// Gate is the part of the use cases that the handler needs.
type Gate interface {
	// StoreSlackClick stores a click, once.
	StoreSlackClick(ctx context.Context, c *gatehouse.SlackClick) error
	// CarryOutSlackClick decides. Repeating it for the same click gives the same answer. An error
	// means that it must be repeated.
	CarryOutSlackClick(ctx context.Context, c *gatehouse.SlackClick) (result, said string, err error)
	SlackLinked(ctx context.Context, tenant, issuer, user string) (bool, error)
	LinkSlack(ctx context.Context, tenants []string, issuer, user, code string) (said string, err error)
}

// NamedChannel is a configured channel with its name.
type NamedChannel struct {
	Name    string
	Tenants []string
	*Channel
}

// HandlerConfig configures a handler.
type HandlerConfig struct {
	Gate     Gate
	Store    gatehouse.Store
	Hints    notify.Hints
	Channels []NamedChannel
	// PublicURL is the console's address for browsers, "" if it is not known.
	PublicURL string
	// Owner is the name of this process in leases.
	Owner string
	Log   *slog.Logger
	// Now is the clock of signatures; time.Now by default.
	Now func() time.Time
}

// Handler processes clicks, forms and commands in Slack. Any number of handlers may work on one store.
type Handler struct {
	HandlerConfig
	apps []*app
	// Failpoint, when set, is called between the parts of processing a click; for tests.
	Failpoint func(point string)
}

// app is one Slack app: all channels that share a signing secret or an app token. While a secret or a token is being
// replaced, an app has two of them.
type app struct {
	channels []NamedChannel
	// secrets are the different signing secrets of the channels.
	secrets []string
	// sockets has one of the channels for each different app token.
	sockets []NamedChannel
}

// handleTime limits the work before a request is acknowledged: Slack waits 3 s.
const handleTime = 2500 * time.Millisecond

// NewHandler makes a handler for the channels that accept clicks, nil if there are none.
func NewHandler(c HandlerConfig) *Handler {
	d := &Handler{HandlerConfig: c}
	if d.Now == nil {
		d.Now = time.Now
	}
	for _, p := range c.Channels {
		if !p.Decides() {
			continue
		}
		a := &app{}
		d.apps = slices.DeleteFunc(d.apps, func(o *app) bool {
			same := slices.Contains(o.secrets, p.config.SigningSecret) || o.opens(p.config.AppToken)
			if same {
				a.channels = append(a.channels, o.channels...)
				a.secrets = append(a.secrets, o.secrets...)
				a.sockets = append(a.sockets, o.sockets...)
			}
			return same
		})
		a.channels = append(a.channels, p)
		if secret := p.config.SigningSecret; secret != "" && !slices.Contains(a.secrets, secret) {
			a.secrets = append(a.secrets, secret)
		}
		if token := p.config.AppToken; token != "" && !a.opens(token) {
			a.sockets = append(a.sockets, p)
		}
		d.apps = append(d.apps, a)
	}
	if len(d.apps) == 0 {
		return nil
	}
	return d
}

// opens reports whether one of an app's connections in Socket Mode has this token.
func (a *app) opens(token string) bool {
	return slices.ContainsFunc(a.sockets, func(p NamedChannel) bool { return p.config.AppToken == token })
}

// tenants are the tenants that an app serves.
func (a *app) tenants() (list []string) {
	for _, p := range a.channels {
		list = append(list, p.Tenants...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// channel is the channel that contains a tenant's card, nil for none.
func (a *app) channel(id, tenant string) *NamedChannel {
	for i := range a.channels {
		if a.channels[i].config.Channel == id && slices.Contains(a.channels[i].Tenants, tenant) {
			return &a.channels[i]
		}
	}
	return nil
}

// interact processes an interaction whose origin was verified. reply is the body of the
// acknowledgement, nil for none. After an error, nothing was stored.
func (d *Handler) interact(ctx context.Context, a *app, payload []byte) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime)
	defer cancel()
	i := new(interaction)
	if err := json.Unmarshal(payload, i); err != nil {
		return nil, errValue
	}
	by, err := i.person()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(payload)
	if i.TriggerID != "" {
		sum = sha256.Sum256([]byte(i.Type + "\x00" + by.issuer + "\x00" + by.user + "\x00" + i.TriggerID))
	}
	switch i.Type {
	case "block_actions":
		return nil, d.press(ctx, a, i, by, sum)
	case "view_submission":
		return d.submit(ctx, a, i, by, sum)
	}
	return nil, nil // nothing that asks for an answer
}

// press processes a pressed button.
func (d *Handler) press(ctx context.Context, a *app, i *interaction, by person, key gatehouse.Hash) error {
	if len(i.Actions) != 1 {
		return errValue
	}
	pressed := i.Actions[0]
	if pressed.ActionID != actionApprove && pressed.ActionID != actionReject {
		return nil // a link, which the browser follows
	}
	s, err := parseValue(pressed.Value)
	if err != nil {
		return err
	}
	s.SlackChannel, s.TS = i.Container.ChannelID, i.Container.MessageTS
	p := a.channel(s.SlackChannel, s.Tenant)
	if p == nil || !tsForm.MatchString(s.TS) {
		d.refuse(ctx, a, s.SlackChannel, by)
		return nil
	}
	click := click(p, s, by, key)
	if pressed.ActionID == actionApprove {
		click.Choice = gatehouse.Approve
		return d.Gate.StoreSlackClick(ctx, click)
	}
	if d.stranger(ctx, s.Tenant, by) {
		// An unlinked person is told at once, before they write a reason in vain.
		click.Result, click.Said = "not_linked", notLinkedText
		return d.Gate.StoreSlackClick(ctx, click)
	}
	if err := p.openForm(ctx, i.TriggerID, s); err != nil {
		d.Log.WarnContext(ctx, "slack: a form was not opened", "channel", p.Name, "error", err)
		click.Result, click.Said = "form_failed",
			"The form for the reason did not open in time, and nothing was recorded. Press Reject again, or open it in "+
				"Gatehouse."
		return d.Gate.StoreSlackClick(ctx, click)
	}
	return nil
}

const notLinkedText = "Your Slack account is not linked to a Gatehouse account. To link it, sign in to Gatehouse, " +
	"make a code under Settings, and enter it here with the app's command."

// strangerTime limits the check whether somebody is linked, before a form is opened.
const strangerTime = 300 * time.Millisecond

func (d *Handler) stranger(ctx context.Context, tenant string, by person) bool {
	ctx, cancel := context.WithTimeout(ctx, strangerTime)
	defer cancel()
	linked, err := d.Gate.SlackLinked(ctx, tenant, by.issuer, by.user)
	return err == nil && !linked
}

// submit processes a form with a reason.
func (d *Handler) submit(ctx context.Context, a *app, i *interaction, by person, key gatehouse.Hash) (any, error) {
	if i.View.CallbackID != formRejected {
		return nil, nil
	}
	s, err := parseMetadata(i.View.Metadata)
	if err != nil {
		return nil, err
	}
	p := a.channel(s.SlackChannel, s.Tenant)
	if p == nil {
		return wrongReason("This card is not served here any more."), nil
	}
	reason := strings.TrimSpace(i.View.State.Values[blockReason][blockReason].Value)
	switch {
	case reason == "":
		return wrongReason("Say why: the proposer reads it."), nil
	case utf8.RuneCountInString(reason) > maxReason || !utf8.ValidString(reason):
		return wrongReason("The reason is too long."), nil
	}
	click := click(p, s, by, key)
	click.Choice, click.Reason = gatehouse.Reject, reason
	return nil, d.Gate.StoreSlackClick(ctx, click)
}

func click(p *NamedChannel, s subject, by person, key gatehouse.Hash) *gatehouse.SlackClick {
	return &gatehouse.SlackClick{
		Tenant: s.Tenant, Key: key, Channel: p.Name, SlackChannel: s.SlackChannel, TS: s.TS, Issuer: by.issuer, User: by.user,
		ActionID: s.ActionID, Digest: s.Digest,
	}
}

// refuse answers a click on a card that does not belong to a served channel.
func (d *Handler) refuse(ctx context.Context, a *app, slackChannel string, by person) {
	if !channelForm.MatchString(slackChannel) {
		return
	}
	err := a.channels[0].say(ctx, slackChannel, by.user, "This card is not served here. Nothing was recorded.", "")
	if err != nil {
		d.Log.WarnContext(ctx, "slack: a click was not answered", "error", err)
	}
}

// command processes a slash command whose origin was verified. Only the sender sees the answer.
func (d *Handler) command(ctx context.Context, a *app, form url.Values) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime)
	defer cancel()
	by, err := identify(form.Get("enterprise_id"), form.Get("team_id"), "", form.Get("user_id"))
	if err != nil {
		return nil, err
	}
	words := strings.Fields(form.Get("text"))
	if len(words) < 2 || !strings.EqualFold(words[0], "link") {
		help := "To link your Slack account, sign in to Gatehouse, make a code under Settings, and enter: " +
			form.Get("command") + " link CODE"
		return private(help, d.page("/settings")), nil
	}
	said, err := d.Gate.LinkSlack(ctx, a.tenants(), by.issuer, by.user, strings.Join(words[1:], ""))
	if err != nil {
		return nil, err
	}
	return private(said, ""), nil
}

func private(text, link string) any {
	text = escape.Replace(text)
	if link != "" {
		text += "\n<" + escape.Replace(link) + "|Open in Gatehouse>"
	}
	return map[string]any{"response_type": "ephemeral", "text": text}
}

// page is the URL of a page of the console, "" if the address is not known.
func (d *Handler) page(path string) string {
	if d.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(d.PublicURL, "/") + path
}

func (d *Handler) reach(point string) {
	if d.Failpoint != nil {
		d.Failpoint(point)
	}
}

// invalidRequest reports whether a request is invalid, so that repeating it is of no use.
func invalidRequest(err error) bool { return errors.Is(err, errValue) || errors.Is(err, errIdentity) }
