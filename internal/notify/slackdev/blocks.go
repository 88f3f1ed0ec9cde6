package slackdev

import (
	"encoding/json"
	"regexp"
	"strings"
)

// block is a Block Kit block, as far as the cards use it.
type block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id"`
	Text     text      `json:"text"`
	Label    text      `json:"label"`
	Fields   []text    `json:"fields"`
	Elements []element `json:"elements"`
	Element  element   `json:"element"`
}

// element is a button, a field, or a part of a text.
type element struct {
	Type      string    `json:"type"`
	ActionID  string    `json:"action_id"`
	Value     string    `json:"value"`
	URL       string    `json:"url"`
	Style     string    `json:"style"`
	MaxLength int       `json:"max_length"`
	Text      text      `json:"text"`
	Elements  []element `json:"elements"`
}

// text is an object or, in rich text and context, a plain string.
type text struct {
	Markup bool
	Text   string
}

// UnmarshalJSON accepts both forms.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Text)
	}
	var o struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	err := json.Unmarshal(b, &o)
	*t = text{Markup: o.Type == "mrkdwn", Text: o.Text}
	return err
}

// part is a piece of a text; with URL, it is a link.
type part struct{ Text, URL string }

// linkForm is a link in Slack's markup. Other texts contain no "<", because it is escaped.
var linkForm = regexp.MustCompile(`<(https?://[^<>|\s]+)\|([^<>|]*)>`)

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// Parts are the pieces of a text. Links are the only markup that cards contain.
func (t text) Parts() []part {
	if !t.Markup {
		return []part{{Text: t.Text}}
	}
	var list []part
	from := 0
	for _, at := range linkForm.FindAllStringSubmatchIndex(t.Text, -1) {
		list = append(list,
			part{Text: unescape.Replace(t.Text[from:at[0]])},
			part{Text: unescape.Replace(t.Text[at[4]:at[5]]), URL: unescape.Replace(t.Text[at[2]:at[3]])})
		from = at[1]
	}
	return append(list, part{Text: unescape.Replace(t.Text[from:])})
}

// Shown are the blocks of a message; a message without blocks shows its text.
func (m *message) Shown() []block {
	if len(m.Blocks) > 0 {
		return m.Blocks
	}
	return []block{{Type: "section", Text: text{Markup: true, Text: m.Text}}}
}

// button finds a button by its action id, nil for none.
func (m *message) button(id string) *element {
	for _, b := range m.Blocks {
		for i := range b.Elements {
			if e := &b.Elements[i]; e.Type == "button" && e.ActionID == id {
				return e
			}
		}
	}
	return nil
}
