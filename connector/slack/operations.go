package slack

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// The operations and the entity types.
const (
	opPost   = "post"
	opUpdate = "update"
	opDelete = "delete"

	entityChannel = "channel"
	entityMessage = "message"
)

var operationNames = []string{opPost, opUpdate, opDelete}

// A text of more than 4,000 characters could be posted, but not edited afterwards.
const (
	posts = `{"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
		"text": {"type": "string", "minLength": 1, "maxLength": 4000},
		"thread_ts": {"type": "string", "pattern": "^[0-9]{10}\\.[0-9]{6}$"}}}`
	edits = `{"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
		"text": {"type": "string", "minLength": 1, "maxLength": 4000}}}`
	deletes = `{"type": "object", "additionalProperties": false, "properties": {"deleted": {"const": true}}}`
)

func newOperations() (*typed.Operations, error) {
	return typed.NewOperations(
		typed.Of(opPost, connector.ClassC, gatehouse.L3, true, posts,
			connector.UndoExcept("people who have read the message know its text")),
		typed.Of(opUpdate, connector.ClassC, gatehouse.L3, true, edits, nil),
		typed.Of(opDelete, connector.ClassC, gatehouse.L4, false, deletes,
			connector.NoUndo("a deleted message cannot be restored")),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if entityType != entityOf(operation) {
		return "", false
	}
	return c.Operations.Schema(operation)
}

func entityOf(operation string) string {
	if operation == opPost {
		return entityChannel
	}
	return entityMessage
}

// messageForm is the reference of a message: channel and timestamp.
var messageForm = regexp.MustCompile(`^([CGD][A-Z0-9]{2,20})/([0-9]{10}\.[0-9]{6})$`)

// channelAndTimestamp returns the channel of a call, and the timestamp of its message; "" for post.
func channelAndTimestamp(call connector.Call) (channel, ts string) {
	if m := messageForm.FindStringSubmatch(call.Target.EntityRef); m != nil && call.Operation != opPost {
		return m[1], m[2]
	}
	return call.Target.EntityRef, ""
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	channel, _ := channelAndTimestamp(call)
	return c.Operations.Floor(call, c.levels(channel, call.Operation))
}

func (c *Connector) levels(channel, operation string) connector.Levels {
	return connector.Levels{Floor: c.channels[channel].Operations[operation].Floor}
}

// Declarations implements [connector.Declarer]. A channel is a part of the reference, not an entity
// type.
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, channel := range slices.Sorted(maps.Keys(c.channels)) {
		for _, op := range operationNames {
			for _, d := range c.levels(channel, op).Declarations(op, entityOf(op)) {
				if !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	}
	return out
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Operations.Check(&v, call)
	if want := entityOf(call.Operation); call.Target.EntityType != want {
		v.Add("/target/entity_type", "must be %s", want)
	}
	channel, ts := channelAndTimestamp(call)
	if call.Operation != opPost && ts == "" {
		v.Add("/target/entity_ref", "must be channel/timestamp, such as C0123ABC/1712345678.000100")
	} else if _, ok := c.channels[channel]; !ok {
		v.Add("/target/entity_ref", "%s", connector.UnknownEntity(channel, maps.Keys(c.channels)))
	}
	if call.Target.Version != "" {
		v.Add("/target/version", "does not apply: messages have no version")
	}
	_, hasText := rest.TextOf(call.CurrentState, "text")
	switch {
	case call.Operation == opPost && call.CurrentState != "" && call.CurrentState != "{}":
		v.Add("/current_state", "does not apply to a message that does not exist yet")
	case call.Operation != opPost && !hasText:
		v.Add("/current_state/text", "is required: the message's present text, to detect changes by others")
	}
	if text, _ := rest.TextOf(call.ProposedChange, "text"); !c.broadcast && strings.Contains(text, "<!") {
		v.Add(
			"/proposed_change/text",
			"has <!, which notifies whole groups, such as <!channel>; allow_broadcast permits it",
		)
	}
	call.CheckKey(&v, "slack", channel)
	return v.Err()
}
