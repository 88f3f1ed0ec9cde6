package slacktest

import (
	"fmt"
	"unicode/utf8"
)

// sumLimit is the limit for all texts of a message together. It is not documented; an app was
// refused at 11,341 characters.
const sumLimit = 11_000

// checkMessage returns the error code with which Slack refuses a message, "" if Slack accepts the message.
func (w *Workspace) checkMessage(m *Message, method string) string {
	if m.Text == "" && len(m.Blocks) == 0 {
		return "no_text"
	}
	if len(m.Blocks) == 0 {
		return ""
	}
	c := &checker{ids: map[string]bool{}}
	c.blocks(m.Blocks, 50)
	if c.sum > sumLimit {
		c.problem = "msg_blocks_too_long"
	}
	if c.problem == "" {
		return ""
	}
	w.t.Errorf("slacktest: %s: %s", method, c.problem)
	if c.problem == "msg_blocks_too_long" {
		return c.problem
	}
	return "invalid_blocks"
}

// checkView returns the first limit that a form exceeds, "" for none.
func checkView(v map[string]any) string {
	c := &checker{ids: map[string]bool{}}
	for _, key := range []string{"title", "submit", "close"} {
		c.text(v[key], 24, "plain_text", key)
	}
	c.size(v["private_metadata"], 3000, "private_metadata")
	c.size(v["callback_id"], 255, "callback_id")
	var blocks []map[string]any
	list, _ := v["blocks"].([]any)
	for _, b := range list {
		o, _ := b.(map[string]any)
		blocks = append(blocks, o)
	}
	if v["type"] != "modal" {
		c.fail("type")
	}
	c.blocks(blocks, 100)
	return c.problem
}

type checker struct {
	problem string
	sum     int
	ids     map[string]bool
}

func (c *checker) fail(format string, args ...any) {
	if c.problem == "" {
		c.problem = "invalid_blocks: " + fmt.Sprintf(format, args...)
	}
}

func (c *checker) size(v any, limit int, what string) {
	if s, _ := v.(string); utf8.RuneCountInString(s) > limit {
		c.fail("%s", what)
	}
}

func (c *checker) text(v any, limit int, kind, what string) {
	o, _ := v.(map[string]any)
	s, _ := o["text"].(string)
	n := utf8.RuneCountInString(s)
	c.sum += n
	if n < 1 || n > limit || kind != "" && o["type"] != kind ||
		o["type"] != "plain_text" && o["type"] != "mrkdwn" && o["type"] != "text" {
		c.fail("%s", what)
	}
}

// id checks that an id is not too long, and unique.
func (c *checker) id(scope string, v any) {
	s, _ := v.(string)
	if s == "" {
		return
	}
	c.size(v, 255, scope)
	if c.ids[scope+s] {
		c.fail("%s appears twice", scope)
	}
	c.ids[scope+s] = true
}

func (c *checker) blocks(blocks []map[string]any, limit int) {
	if len(blocks) == 0 || len(blocks) > limit {
		c.fail("their number")
	}
	for _, b := range blocks {
		c.id("block_id", b["block_id"])
		c.block(b)
	}
}

func (c *checker) block(b map[string]any) {
	elements, _ := b["elements"].([]any)
	switch b["type"] {
	case "header":
		c.text(b["text"], 150, "plain_text", "header")
	case "section":
		fields, _ := b["fields"].([]any)
		if b["text"] == nil && len(fields) == 0 || len(fields) > 10 {
			c.fail("section")
		}
		if b["text"] != nil {
			c.text(b["text"], 3000, "", "section")
		}
		for _, f := range fields {
			c.text(f, 2000, "", "field")
		}
	case "context":
		if len(elements) == 0 || len(elements) > 10 {
			c.fail("context")
		}
		for _, e := range elements {
			c.text(e, 3000, "", "context")
		}
	case "rich_text":
		for _, e := range elements {
			o, _ := e.(map[string]any)
			parts, _ := o["elements"].([]any)
			for _, part := range parts {
				c.text(part, 3000, "", "rich_text")
			}
		}
	case "actions":
		if len(elements) == 0 || len(elements) > 25 {
			c.fail("actions")
		}
		for _, e := range elements {
			o, _ := e.(map[string]any)
			if o["type"] != "button" {
				c.fail("element %v", o["type"])
			}
			c.text(o["text"], 75, "plain_text", "button")
			c.size(o["value"], 2000, "value")
			c.size(o["url"], 3000, "url")
			c.id("action_id", o["action_id"])
			if style := o["style"]; style != nil && style != "primary" && style != "danger" {
				c.fail("style")
			}
		}
	case "input":
		c.text(b["label"], 2000, "plain_text", "label")
	default:
		c.fail("%v", b["type"])
	}
}
