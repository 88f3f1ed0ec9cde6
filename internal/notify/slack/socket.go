package slack

import (
	"context"
	"io"
	"log"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

const (
	handshakeTime = 20 * time.Second
	// frame is the size of the write buffer, in bytes: each answer fits in it, and so in one frame.
	frame = 32 << 10
	// longestPause limits the pause between two connection attempts.
	longestPause = time.Minute
)

// socket keeps a Socket Mode connection of an app open, with the token and the address of one of its channels. Its
// messages are not signed: the token and TLS prove their origin.
func (d *Handler) socket(ctx context.Context, a *app, p NamedChannel) {
	c := p.config
	client := notify.HTTPClient(c.AllowPrivate)
	client.Timeout = handshakeTime
	pause := time.Second
	for ctx.Err() == nil {
		api := slackgo.New("", slackgo.OptionAppLevelToken(c.AppToken), slackgo.OptionAPIURL(c.BaseURL+"/"),
			slackgo.OptionHTTPClient(client))
		conn := socketmode.New(api,
			socketmode.OptionDialer(&websocket.Dialer{
				NetDialContext: notify.DialContext(c.AllowPrivate), HandshakeTimeout: handshakeTime, WriteBufferSize: frame,
			}),
			socketmode.OptionReadLimit(maxRequest), socketmode.OptionLog(log.New(io.Discard, "", 0)))
		began := time.Now()
		err := d.serveSocket(ctx, a, conn)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestPause {
			pause = time.Second
		}
		d.Log.WarnContext(ctx, "slack: Socket Mode ended; connecting again", "channel", p.Name, "error", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		pause = min(2*pause, longestPause)
	}
}

// serveSocket answers the messages of one client until it fails.
func (d *Handler) serveSocket(ctx context.Context, a *app, conn *socketmode.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- conn.RunContext(ctx) }()
	for {
		select {
		case err := <-ended:
			return err
		case e := <-conn.Events:
			if e.Request == nil {
				continue
			}
			go d.envelope(ctx, a, conn, e)
		}
	}
}

// envelope processes one delivery and acknowledges it by its id. A delivery that could not be
// stored is not acknowledged, unless it is invalid.
func (d *Handler) envelope(ctx context.Context, a *app, conn *socketmode.Client, e socketmode.Event) {
	var (
		reply any
		err   error
	)
	switch e.Type {
	case socketmode.EventTypeInteractive:
		reply, err = d.interact(ctx, a, e.Request.Payload)
	case socketmode.EventTypeSlashCommand:
		command, ok := e.Data.(slackgo.SlashCommand)
		if !ok {
			return
		}
		reply, err = d.command(ctx, a, url.Values{
			"command": {command.Command}, "text": {command.Text}, "user_id": {command.UserID},
			"team_id": {command.TeamID}, "enterprise_id": {command.EnterpriseID},
		})
	case socketmode.EventTypeEventsAPI:
	default:
		return // of the connection itself
	}
	if err != nil {
		d.Log.WarnContext(ctx, "slack: a delivery was not accepted", "error", err)
		if !invalidRequest(err) {
			return
		}
	}
	if err := conn.AckCtx(ctx, e.Request.EnvelopeID, reply); err != nil {
		d.Log.WarnContext(ctx, "slack: a delivery was not acknowledged", "error", err)
	}
}
