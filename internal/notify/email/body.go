package email

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

var page = template.Must(template.New("mail").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark"></head>
<body style="font-family:system-ui,sans-serif;line-height:1.5;max-width:40rem">
<h1 style="font-size:1.2rem">{{.Heading}}</h1>
{{with .Sentence}}<p>{{.}}</p>{{end}}
{{if .Diff}}<ul>{{range .Diff}}<li><code>{{.}}</code></li>{{end}}
{{if .DiffMore}}<li>and {{.DiffMore}} more</li>{{end}}</ul>{{end}}
{{if .Facts}}<table>{{range .Facts}}
<tr><th scope="row" style="text-align:left;padding-right:1rem">{{.Label}}</th><td>{{.Value}}</td></tr>
{{end}}</table>{{end}}
{{if .Link}}<p><a href="{{.Link}}">{{if .Signed}}Review{{else}}Review in Gatehouse{{end}}</a></p>{{end}}
{{with .Code}}<p>Code: <b>{{.}}</b>. The page asks for it, unless you are signed in.</p>{{end}}
{{if .Signed}}<p><small>The link is valid until {{.Until}}. It is yours alone: do not forward it. With
<code>/approve</code> or <code>/reject</code> before the question mark, it opens with that answer selected.</small></p>{{end}}
<p><small>Sent by Gatehouse. Replies to this mail are not read.</small></p>
</body></html>
`))

// bodies returns the text and the HTML of a mail.
func bodies(m *notify.Message) (text, html string, err error) {
	var b strings.Builder
	if err := page.Execute(&b, m); err != nil {
		return "", "", err
	}
	html = b.String()
	b.Reset()
	fmt.Fprintf(&b, "%s\n", m.Heading)
	if m.Sentence != "" {
		fmt.Fprintf(&b, "\n%s\n", m.Sentence)
	}
	if len(m.Diff) > 0 {
		b.WriteString("\n")
	}
	for _, line := range m.Diff {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if m.DiffMore > 0 {
		fmt.Fprintf(&b, "  and %d more\n", m.DiffMore)
	}
	if len(m.Facts) > 0 {
		b.WriteString("\n")
	}
	for _, f := range m.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Label, f.Value)
	}
	switch {
	case m.Signed:
		fmt.Fprintf(&b, "\nReview: %s\n", m.Link)
		if m.Code != "" {
			fmt.Fprintf(&b, "Code: %s. The page asks for it, unless you are signed in.\n", m.Code)
		}
		fmt.Fprintf(&b, "The link is valid until %s. It is yours alone: do not forward it.\n"+
			"With /approve or /reject before the question mark, it opens with that answer selected.\n", m.Until)
	case m.Link != "":
		fmt.Fprintf(&b, "\nReview in Gatehouse: %s\n", m.Link)
	}
	b.WriteString("\n-- \nSent by Gatehouse. Replies to this mail are not read.\n")
	return b.String(), html, nil
}
