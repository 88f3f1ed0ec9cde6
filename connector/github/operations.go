package github

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// The operations.
const (
	opComment       = "comment"
	opDeleteComment = "delete_comment"
	opAddLabel      = "add_label"
	opRemoveLabel   = "remove_label"
	opMerge         = "merge"
	opDispatch      = "dispatch"
	opCancelRun     = "cancel_run"
	opRelease       = "release"
	opDeleteRelease = "delete_release"
)

// entities maps the operations to their entity types.
var entities = map[string]string{
	opComment: "issue", opAddLabel: "issue", opRemoveLabel: "issue", opDeleteComment: "comment",
	opMerge: "pull_request", opDispatch: "workflow", opCancelRun: "run", opRelease: "tag", opDeleteRelease: "release",
}

func operationNames() []string { return slices.Sorted(maps.Keys(entities)) }

// references are the syntax of the references: a repository, and the entity within it.
var references = map[string]*regexp.Regexp{
	"issue":        regexp.MustCompile(`^(` + repositoryName + `)#([1-9][0-9]{0,17})$`),
	"pull_request": regexp.MustCompile(`^(` + repositoryName + `)#([1-9][0-9]{0,17})$`),
	"comment":      regexp.MustCompile(`^(` + repositoryName + `)/([1-9][0-9]{0,17})$`),
	"run":          regexp.MustCompile(`^(` + repositoryName + `)/([1-9][0-9]{0,17})$`),
	"release":      regexp.MustCompile(`^(` + repositoryName + `)/([1-9][0-9]{0,17})$`),
	"workflow":     regexp.MustCompile(`^(` + repositoryName + `)/([A-Za-z0-9_][A-Za-z0-9._-]*\.ya?ml)$`),
	"tag":          regexp.MustCompile(`^(` + repositoryName + `)@([A-Za-z0-9_][A-Za-z0-9._+-]{0,199})$`),
}

// examples are example references for error messages.
var examples = map[string]string{
	"issue":        "acme/shop#12",
	"pull_request": "acme/shop#12",
	"comment":      "acme/shop/1234567",
	"run":          "acme/shop/1234567",
	"release":      "acme/shop/1234567",
	"workflow":     "acme/shop/deploy.yml",
	"tag":          "acme/shop@v1.2.0",
}

const (
	deletes = `{"type": "object", "additionalProperties": false, "properties": {"deleted": {"const": true}}}`
	label   = `{"type": "object", "required": ["label"], "additionalProperties": false, "properties": {"label": ` +
		`{"type": "string", "minLength": 1, "maxLength": 50, "pattern": "^[^\\s,].*[^\\s,]$|^[^\\s,]$"}}}`
	comments = `{"type": "object", "required": ["body"], "additionalProperties": false, "properties": {
		"body": {"type": "string", "minLength": 1, "maxLength": 65000}}}`
	merges = `{"type": "object", "required": ["merge_method"], "additionalProperties": false, "properties": {
		"merge_method": {"enum": ["merge", "squash", "rebase"]},
		"commit_title": {"type": "string", "minLength": 1, "maxLength": 256},
		"commit_message": {"type": "string", "maxLength": 65000}}}`
	dispatches = `{"type": "object", "required": ["ref"], "additionalProperties": false, "properties": {
		"ref": {"type": "string", "minLength": 1, "maxLength": 255},
		"inputs": {"type": "object", "maxProperties": 24,
			"additionalProperties": {"type": "string", "maxLength": 65000}}}}`
	cancels  = `{"type": "object", "additionalProperties": false, "properties": {"canceled": {"const": true}}}`
	releases = `{"type": "object", "required": ["target_commitish"], "additionalProperties": false, "properties": {
		"target_commitish": {"type": "string", "pattern": "^[0-9a-f]{40}$"},
		"name": {"type": "string", "minLength": 1, "maxLength": 255},
		"body": {"type": "string", "maxLength": 120000},
		"prerelease": {"type": "boolean"}}}`
)

func newOperations() (*typed.Operations, error) {
	return typed.NewOperations(
		typed.Of(opComment, connector.ClassC, gatehouse.L3, true, comments,
			connector.UndoExcept("its subscribers were mailed")),
		typed.Of(opDeleteComment, connector.ClassC, gatehouse.L4, false, deletes,
			connector.NoUndo("a deleted comment cannot be restored")),
		typed.Of(opAddLabel, connector.ClassA, gatehouse.L3, true, label, nil),
		typed.Of(opRemoveLabel, connector.ClassA, gatehouse.L3, true, label, nil),
		typed.Of(opMerge, connector.ClassB, gatehouse.L4, false, merges,
			connector.NoUndo("only another pull request takes a merge back")),
		typed.Of(opDispatch, connector.ClassC, gatehouse.L4, true, dispatches,
			connector.UndoExcept("what the jobs did stays")),
		typed.Of(opCancelRun, connector.ClassC, gatehouse.L3, false, cancels,
			connector.NoUndo("a canceled run does not continue")),
		typed.Of(opRelease, connector.ClassB, gatehouse.L4, true, releases,
			connector.UndoExcept("the tag stays, and followers were told")),
		typed.Of(opDeleteRelease, connector.ClassC, gatehouse.L4, false, deletes,
			connector.NoUndo("a deleted release cannot be restored")),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if entities[operation] != entityType {
		return "", false
	}
	return c.Operations.Schema(operation)
}

// splitReference splits the reference of a call's target; both parts are "" if the reference does not have the
// syntax for the call's operation.
func splitReference(call connector.Call) (repository, entity string) {
	form := references[entities[call.Operation]]
	if form == nil {
		return "", ""
	}
	m := form.FindStringSubmatch(call.Target.EntityRef)
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}

// path is the API path of the call's repository, with further segments.
func path(call connector.Call, segments ...string) string {
	repository, _ := splitReference(call)
	out := "/repos/" + repository
	for _, s := range segments {
		out += "/" + url.PathEscape(s)
	}
	return out
}

func (c *Connector) levels(repository, operation string) connector.Levels {
	return connector.Levels{Floor: c.repositories[repository].Operations[operation].Floor}
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	repository, _ := splitReference(call)
	return c.Operations.Floor(call, c.levels(repository, call.Operation))
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, op := range operationNames() {
		for _, repository := range slices.Sorted(maps.Keys(c.repositories)) {
			for _, d := range c.levels(repository, op).Declarations(op, entities[op]) {
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
	entity := entities[call.Operation]
	if call.Target.EntityType != entity {
		v.Add("/target/entity_type", "must be %s for %s", entity, gatehouse.Quote(call.Operation))
	}
	if repository, _ := splitReference(call); repository == "" {
		v.Add("/target/entity_ref", "must look like %s", examples[entity])
	} else if _, ok := c.repositories[repository]; !ok {
		v.Add("/target/entity_ref", "%s", connector.UnknownEntity(repository, maps.Keys(c.repositories)))
	}
	merge := call.Operation == opMerge
	switch {
	case merge && !commitForm.MatchString(call.Target.Version):
		v.Add("/target/version", "must be the head's commit, which is what is merged: 40 hexadecimal digits")
	case !merge && call.Target.Version != "":
		v.Add("/target/version", "applies to merge only")
	}
	if _, ok := rest.TextOf(call.CurrentState, "base"); merge && !ok {
		v.Add("/current_state/base", "is required: the branch to merge into")
	}
	if call.Operation == opDeleteComment || call.Operation == opDeleteRelease {
		if _, ok := rest.TextOf(call.CurrentState, "body"); !ok {
			v.Add("/current_state/body", "is required: the text that is deleted")
		}
	}
	known := states[entity]
	for _, name := range connector.Fields(call.CurrentState) {
		if !slices.Contains(known, name) {
			why := "cannot be compared"
			if known != nil {
				why += "; these can: " + strings.Join(known, ", ")
			}
			v.Add("/current_state/"+name, "%s", why)
		}
	}
	if inputs, ok := call.ProposedChange.Get("inputs"); ok && c.input != "" {
		if _, taken := inputs.Get(c.input); taken {
			v.Add("/proposed_change/inputs/"+c.input, "is set by the connector, to the action's id")
		}
	}
	if body, _ := rest.TextOf(call.ProposedChange, "body"); strings.Contains(body, "<!-- gatehouse:") {
		v.Add("/proposed_change/body", "cannot contain \"<!-- gatehouse:\", which the connector adds")
	}
	return v.Err()
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// mark is an invisible text by which a comment or release is found again.
func mark(call connector.Call) string { return "<!-- gatehouse:" + call.ActionID + " -->" }

// marked is an approved text with its mark.
func marked(call connector.Call, text string) gatehouse.JSON {
	if text != "" {
		text += "\n\n"
	}
	return gatehouse.StringJSON(text + mark(call))
}
