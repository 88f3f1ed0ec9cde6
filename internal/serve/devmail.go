package serve

import (
	"bytes"
	"html/template"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/email"
)

const (
	// devMailPath is the path of the page that shows caught mails in development mode.
	devMailPath = "/dev/mail"
	// devMailKept bounds the number of kept mails.
	devMailKept = 200
	// devMailDomain is the domain of everybody's address; it receives no mail.
	devMailDomain = "gatehouse.localhost"
)

// caughtMail is one mail.
type caughtMail struct {
	At                time.Time
	To, Subject, Text string
}

// Parts splits the text at its URLs, so that the page can show them as links.
func (m *caughtMail) Parts() []mailPart {
	var parts []mailPart
	from := 0
	for _, at := range mailLink.FindAllStringIndex(m.Text, -1) {
		parts = append(parts, mailPart{Text: m.Text[from:at[0]]}, mailPart{Text: m.Text[at[0]:at[1]], Link: true})
		from = at[1]
	}
	return append(parts, mailPart{Text: m.Text[from:]})
}

type mailPart struct {
	Text string
	Link bool
}

// mailLink matches a link to this server at the end of a line.
var mailLink = regexp.MustCompile(
	`(?m)http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?/(review|actions|inbox)[A-Za-z0-9/_?=&.-]*$`)

// mailCatcher takes the place of a mail server in development mode and in the demo. It shows the
// mails to everybody on this machine.
type mailCatcher struct {
	mu    sync.Mutex
	mails []*caughtMail
}

// channel is a channel of kind email whose mails are caught.
func (c *mailCatcher) channel() (*notify.Configured, error) {
	ch, err := email.New(email.Config{From: "gatehouse@" + devMailDomain, Domain: devMailDomain, Catch: c.take})
	if err != nil {
		return nil, err
	}
	return &notify.Configured{Name: "dev-mail", Tenants: []string{gatehouse.DefaultTenant}, Channel: ch}, nil
}

// take keeps a mail, the newest first.
func (c *mailCatcher) take(raw []byte) error {
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		return err
	}
	text, err := mailText(msg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mails = slices.Insert(c.mails, 0,
		&caughtMail{At: time.Now(), To: msg.Header.Get("To"), Subject: subject, Text: text})
	c.mails = c.mails[:min(len(c.mails), devMailKept)]
	return nil
}

// mailText is the plain part of a mail of package email.
func mailText(msg *mail.Message) (string, error) {
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return "", err
	}
	part, err := multipart.NewReader(msg.Body, params["boundary"]).NextRawPart()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(part))
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}

var devMailPage = template.Must(template.New("dev mail").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<title>Caught mail · Gatehouse</title><style>
body{font-family:system-ui,sans-serif;line-height:1.5;max-width:46rem;margin:1.5rem auto;padding:0 1rem}
article{border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:8px;padding:.75rem 1rem;margin:1rem 0}
h1{font-size:1.35rem}h2{font-size:1rem;margin:0;overflow-wrap:anywhere}p{margin:.25rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.75rem 0 0;font-size:.85rem}
.meta{opacity:.75;font-size:.85rem}a{overflow-wrap:anywhere}
</style></head><body>
<h1>Caught mail</h1>
<p class="meta">Development mode sends no mail. This page shows the last 200 mails, newest first, until the server
stops. <a href="">Look again</a> · <a href="/inbox">Inbox</a></p>
{{range .}}<article data-testid="mail"><h2>{{.Subject}}</h2>
<p class="meta">to {{.To}} at {{.At.Format "15:04:05"}}</p>
<pre>{{range .Parts}}{{if .Link}}<a href="{{.Text}}" rel="noreferrer">{{.Text}}</a>{{else}}{{.Text}}{{end}}{{end}}</pre></article>
{{else}}<p>No mail yet. Propose something that people decide, for example with <code>gatehouse propose</code>.</p>{{end}}
</body></html>
`))

// ServeHTTP shows the mails.
func (c *mailCatcher) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	c.mu.Lock()
	mails := slices.Clone(c.mails)
	c.mu.Unlock()
	_ = devMailPage.Execute(w, mails)
}
