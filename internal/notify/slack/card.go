package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// Slack's limits, in characters. budget is our limit for all texts of a message together: Slack has an
// undocumented limit of about 11,000.
const (
	maxHeader   = 150
	maxSection  = 3000
	maxField    = 2000
	maxFields   = 10
	maxFallback = 4000
	maxButton   = 75
	budget      = 8000
)

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// fallback is the text in notifications. Slack interprets its markup, so it is escaped. It is cut to a fifth of
// the limit, because escape replaces a character by up to five.
func fallback(m *notify.Message) string {
	text := m.Heading
	if m.Sentence != "" {
		text += ": " + m.Sentence
	}
	return escape.Replace(cut(text, maxFallback/5))
}

// blocks is the card. Text from agents occurs only in plain text and preformatted elements, in
// which Slack interprets no markup.
func blocks(m *notify.Message) []any {
	left := budget
	take := func(s string, n int) string {
		s = cut(s, min(n, left))
		left -= len([]rune(s))
		return s
	}
	list := []any{map[string]any{"type": "header", "text": plain(take(m.Heading, maxHeader))}}
	if m.Sentence != "" {
		list = append(list, map[string]any{"type": "section", "text": plain(take(m.Sentence, maxSection))})
	}
	if len(m.Diff) > 0 {
		text := strings.Join(m.Diff, "\n")
		if m.DiffMore > 0 {
			text += fmt.Sprintf("\nand %d more", m.DiffMore)
		}
		list = append(list, map[string]any{"type": "rich_text", "elements": []any{map[string]any{
			"type": "rich_text_preformatted", "elements": []any{map[string]any{"type": "text", "text": take(text,
				maxSection)}},
		}}})
	}
	for facts := range slices.Chunk(m.Facts, maxFields) {
		var fields []any
		for _, f := range facts {
			fields = append(fields, plain(take(f.Label+"\n"+f.Value, maxField)))
		}
		list = append(list, map[string]any{"type": "section", "fields": fields})
	}
	if m.Deciding != nil {
		return append(list, buttons(m, take)...)
	}
	if m.Link != "" {
		list = append(list, map[string]any{"type": "section", "text": map[string]any{
			"type": "mrkdwn", "text": "<" + escape.Replace(m.Link) + "|Open in Gatehouse>", "verbatim": true,
		}})
	}
	return list
}

// The action ids of the buttons.
const (
	actionApprove = "gatehouse_approve"
	actionReject  = "gatehouse_reject"
	actionOpen    = "gatehouse_open"
)

// buttons are the possible decisions on the card, with the identity of the action.
func buttons(m *notify.Message, take func(string, int) string) (list []any) {
	d := m.Deciding
	if d.Note != "" {
		list = append(list, map[string]any{"type": "context", "elements": []any{plain(take(d.Note, maxSection))}})
	}
	var elements []any
	button := func(id, label, style string) {
		b := map[string]any{
			"type": "button", "action_id": id, "text": plain(take(label, maxButton)), "value": d.Value,
		}
		if style != "" {
			b["style"] = style
		}
		elements = append(elements, b)
	}
	if d.Approve {
		button(actionApprove, "Approve", "primary")
	}
	if d.Reject {
		button(actionReject, "Reject…", "danger")
	}
	if m.Link != "" {
		elements = append(elements, map[string]any{
			"type": "button", "action_id": actionOpen, "text": plain(take("Open in Gatehouse", maxButton)), "url": m.Link,
		})
	}
	if len(elements) > 0 {
		list = append(list, map[string]any{"type": "actions", "block_id": "gatehouse_decide", "elements": elements})
	}
	if a := m.Action; a != nil {
		list = append(list, map[string]any{"type": "context", "elements": []any{
			plain(take(a.ID+" · "+notify.DigestPrefix(a.Digest), maxField)),
		}})
	}
	return list
}

// Shown hashes the card without the remaining time, which changes by itself.
func (*Channel) Shown(m *notify.Message) string {
	still := *m
	still.Facts = slices.DeleteFunc(slices.Clone(m.Facts), func(f notify.Fact) bool { return f.Label == notify.TimeLeft })
	b, err := json.Marshal([]any{fallback(&still), blocks(&still)})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func plain(s string) map[string]any {
	if s == "" {
		s = "…" // an empty text is refused
	}
	return map[string]any{"type": "plain_text", "text": s, "emoji": false}
}

// cut keeps n characters; the last one is an ellipsis if there were more.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	return string(r[:n-1]) + "…"
}
