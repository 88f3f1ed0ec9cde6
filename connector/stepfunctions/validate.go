package stepfunctions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// The limits of the API: for input and output in bytes, for a cause in characters.
const (
	maxPayload = 256 << 10
	maxCause   = 32 << 10
)

// taskSchemas are the schemas for the answers to a task.
var taskSchemas = map[string]gatehouse.JSON{
	opSuccess: `{"additionalProperties":false,"properties":{"output":{"type":"object"},` +
		`"task_token":{"maxLength":2048,"minLength":1,"type":"string"}},` +
		`"required":["output","task_token"],"type":"object"}`,
	opFailure: `{"additionalProperties":false,"properties":{"cause":{"maxLength":32000,"type":"string"},` +
		`"error":{"maxLength":256,"minLength":1,"type":"string"},` +
		`"task_token":{"maxLength":2048,"minLength":1,"type":"string"}},` +
		`"required":["error","task_token"],"type":"object"}`,
}

// compile compiles the schemas.
func (c *Connector) compile() error {
	for op, schema := range taskSchemas {
		c.schemas[op] = schema
	}
	for _, name := range slices.Sorted(maps.Keys(c.cfg.StateMachines)) {
		input := gatehouse.JSON(`{"type":"object"}`)
		if own := c.cfg.StateMachines[name].Input; own != nil {
			input = gatehouse.MustJSON(own)
		}
		c.schemas[opStart+" "+name] = gatehouse.ObjectJSON(
			gatehouse.Member{Name: "additionalProperties", Value: "false"},
			gatehouse.Member{Name: "properties", Value: gatehouse.ObjectJSON(gatehouse.Member{Name: "input",
				Value: input})},
			gatehouse.Member{Name: "required", Value: `["input"]`}, gatehouse.Member{Name: "type", Value: `"object"`},
		)
	}
	for name, schema := range c.schemas {
		var err error
		if c.shapes[name], err = jsonshape.Compile(schema); err != nil {
			return fmt.Errorf("the schema of %s: %w", name, err)
		}
	}
	return nil
}

// Schema implements [connector.Typed]. For start_execution, it is the schema of the only state
// machine; with several, it permits any input.
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if operation == opStart && entityType == stateMachine {
		if len(c.cfg.StateMachines) == 1 {
			for name := range c.cfg.StateMachines {
				return c.schemas[opStart+" "+name], true
			}
		}
		return `{"additionalProperties":false,"properties":{"input":{"type":"object"}},` +
			`"required":["input"],"type":"object"}`, true
	}
	schema, ok := taskSchemas[operation]
	return schema, ok && entityType == execution
}

// Validate implements [connector.Validator]. It makes no call.
func (c *Connector) Validate(call connector.Call) error { return c.validate(call).Err() }

// validate checks a call.
func (c *Connector) validate(call connector.Call) (v gatehouse.Violations) {
	if len(call.Target.EntityRefs) > 0 {
		v.Add("/target/entity_refs", "must be empty: one action has one target")
		return v
	}
	ref, shape := call.Target.EntityRef, call.Operation
	switch call.Operation {
	case opStart:
		shape = opStart + " " + ref
		if _, ok := c.cfg.StateMachines[ref]; !ok || call.Target.EntityType != stateMachine {
			v.Add("/target", "must be a state_machine: %s",
				strings.Join(slices.Sorted(maps.Keys(c.cfg.StateMachines)), ", "))
			return v
		}
		if pre, _ := call.CurrentState.Fields(); len(pre) > 0 {
			v.Add("/current_state", "must be empty: a state machine is compared by its version, the revision id")
		}
	case opSuccess, opFailure:
		if _, ok := c.machineOf(ref); !ok || call.Target.EntityType != execution {
			v.Add("/target", "must be an execution: the ARN of an execution of a configured state machine")
			return v
		}
		pre, _ := call.CurrentState.Fields()
		switch {
		case len(pre) > 1 || len(pre) == 1 && pre[0].Name != "status":
			v.Add("/current_state", "can have status only")
		case len(pre) == 1 && pre[0].Value != `"RUNNING"`:
			v.Add("/current_state/status", "must be RUNNING: a task waits only while its execution is running")
		}
		if call.Target.Version != "" {
			v.Add("/target/version", "must be empty: an execution has no version")
		}
	default:
		v.Add("/operation", "must be %s, %s or %s", opStart, opSuccess, opFailure)
		return v
	}
	if problems := c.shapes[shape].Check("/proposed_change", call.ProposedChange); len(problems) > 0 {
		return append(v, problems...)
	}
	for _, name := range []string{"input", "output"} {
		if payload, ok := call.ProposedChange.Get(name); ok && len(c.marked(call, payload)) > maxPayload {
			v.Add("/proposed_change/"+name, "is larger than %d bytes", maxPayload)
		}
	}
	if output, ok := call.ProposedChange.Get("output"); ok {
		if _, taken := output.Get(markerName); taken {
			v.Add("/proposed_change/output", "cannot have the member %s, which the connector adds", markerName)
		}
	}
	return v
}

// machineOf returns the name of the state machine in an execution's ARN.
func (c *Connector) machineOf(arn string) (string, bool) {
	rest, ok := strings.CutPrefix(arn, c.arn(execution, ""))
	machine, name, two := strings.Cut(rest, ":")
	_, known := c.cfg.StateMachines[machine]
	return machine, ok && two && known && machineForm.MatchString(name)
}

// arn is the ARN of a resource in the account.
func (c *Connector) arn(kind, name string) string {
	return "arn:" + c.cfg.Partition + ":states:" + c.cfg.Region + ":" + c.cfg.Account + ":" + kind + ":" + name
}

// cut shortens a text to at most that many characters.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most])
}
