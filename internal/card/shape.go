package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// effect is what an operation does to its target, according to its name.
type effect int

const (
	effectUnknown effect = iota // the name says something else, or nothing
	effectCreate
	effectUpdate
	effectDelete
)

// effects maps the first words of operation names to plain effects. The connector
// carries out the operation; the action type is only the proposer's name for it, so
// it never determines the effect.
var effects = map[string]effect{
	"insert": effectCreate, "create": effectCreate, "add": effectCreate, "new": effectCreate, "register": effectCreate,
	"update": effectUpdate, "change": effectUpdate, "edit": effectUpdate, "patch": effectUpdate, "modify": effectUpdate,
	"set":    effectUpdate,
	"delete": effectDelete, "remove": effectDelete, "destroy": effectDelete, "purge": effectDelete, "drop": effectDelete,
	"erase": effectDelete,
}

// effectOf reads the name of an operation: insert, bulk_delete, create_vendor, deleteCustomer.
func effectOf(operation string) effect {
	words := wordsOf(operation)
	if len(words) > 1 && strings.EqualFold(words[0], "bulk") {
		words = words[1:]
	}
	if len(words) == 0 {
		return effectUnknown
	}
	return effects[strings.ToLower(words[0])]
}

// wordsOf splits a name at ASCII characters other than letters, digits and the apostrophe, and before
// a capital that follows a lower-case letter.
func wordsOf(name string) []string {
	var words []string
	start, last := -1, rune(0)
	for i, r := range name {
		letter := r == '\'' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r >= 0x80
		switch {
		case !letter && start >= 0:
			words = append(words, name[start:i])
			start = -1
		case letter && start < 0:
			start = i
		case letter && 'A' <= r && r <= 'Z' && 'a' <= last && last <= 'z':
			words = append(words, name[start:i])
			start = i
		}
		last = r
	}
	if start >= 0 {
		words = append(words, name[start:])
	}
	return words
}

// shape is the layout of an action's payload.
type shape struct {
	effect effect
	// delete is true when the whole pre-image is deleted.
	delete bool
	// byKey is true when the change has a member per record; stateByKey when only
	// the pre-image does, and one change applies to all records.
	byKey, stateByKey bool
	keys              map[string]bool
}

func shapeOf(a *gatehouse.Action) shape {
	s := shape{effect: effectOf(a.Operation)}
	if isToolCall(a) {
		s.effect = effectUnknown
	}
	s.delete = s.effect == effectDelete &&
		(a.ProposedChange == "{}" || a.ProposedChange == "" || a.ProposedChange == `{"deleted":true}`)
	if len(a.Target.EntityRefs) == 0 {
		return s
	}
	s.keys = make(map[string]bool, len(a.Target.EntityRefs))
	for _, ref := range a.Target.EntityRefs {
		s.keys[ref] = true
	}
	s.byKey = !s.delete && s.recordsIn(a.ProposedChange)
	s.stateByKey = !s.byKey && s.recordsIn(a.CurrentState)
	return s
}

// isToolCall reports whether an action calls a tool of an MCP server. The tool's name
// says nothing about the target: calling a tool named delete_note does not delete
// the tool.
func isToolCall(a *gatehouse.Action) bool { return strings.HasPrefix(a.Connector, mcpPrefix) }

// mcpPrefix is the prefix of the names of connectors to MCP servers.
const mcpPrefix = "mcp:"

// recordsIn reports whether every member of an object is a record of the target,
// and there is at least one.
func (s shape) recordsIn(j gatehouse.JSON) bool {
	members, err := j.Fields()
	if err != nil || len(members) == 0 {
		return false
	}
	for _, m := range members {
		if !s.keys[m.Name] || !m.Value.IsObject() {
			return false
		}
	}
	return true
}
