package api

import (
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/gatehouse-dev/gatehouse"
)

const schemaPrefix = "#/components/schemas/"

// scalars has the schemas of the domain's scalar types, which the generator cannot derive.
var scalars = map[reflect.Type]func() *huma.Schema{
	typeOf[gatehouse.JSON](): func() *huma.Schema {
		return &huma.Schema{Description: "Any JSON value. Numbers come back digit for digit."}
	},
	typeOf[gatehouse.Decimal](): func() *huma.Schema {
		return &huma.Schema{Type: "string", Pattern: `^[-+]?\d+(\.\d+)?([eE][-+]?\d+)?$`, Description: "An exact decimal " +
			"number. A request may also have a JSON number.", Examples: []any{"12.50"}}
	},
	typeOf[gatehouse.Duration](): func() *huma.Schema {
		return &huma.Schema{Type: "string", Description: "A duration.", Examples: []any{"30s", "4h", "7d"}}
	},
	typeOf[gatehouse.Span](): func() *huma.Schema {
		return &huma.Schema{Type: "string", Description: "A duration of more than zero.", Examples: []any{"30s", "4h", "7d"}}
	},
	typeOf[gatehouse.Hash](): func() *huma.Schema {
		return &huma.Schema{Type: "string", ContentEncoding: "base64", Description: "A SHA-256 value."}
	},
	typeOf[gatehouse.Digest](): func() *huma.Schema {
		return &huma.Schema{Type: "string", Description: "sha256: and 64 hexadecimal digits."}
	},
	typeOf[gatehouse.RiskLevel](): func() *huma.Schema {
		low, high := 1.0, 5.0
		return &huma.Schema{Type: "integer", Minimum: &low, Maximum: &high}
	},
	typeOf[gatehouse.Status]():     enumeration(gatehouse.Statuses()),
	typeOf[gatehouse.PushStatus](): enumeration(gatehouse.PushStatuses()),
	typeOf[gatehouse.RunStatus]():  enumeration(gatehouse.RunStatuses()),
	typeOf[gatehouse.StepStatus](): enumeration(gatehouse.StepStatuses()),
	typeOf[gatehouse.TriggerType](): enumeration([]gatehouse.TriggerType{
		gatehouse.TriggerAPI, gatehouse.TriggerWebhook, gatehouse.TriggerSchedule, gatehouse.TriggerRun,
		gatehouse.TriggerRetry,
	}),
	typeOf[gatehouse.Role](): enumeration(gatehouse.Roles()),
	typeOf[gatehouse.Code](): enumeration(sortedCodes()),
	typeOf[gatehouse.Kind](): enumeration([]gatehouse.Kind{gatehouse.KindPerson, gatehouse.KindAgent,
		gatehouse.KindService}),
	typeOf[gatehouse.MessageTopic](): enumeration(gatehouse.MessageTopics()),
	typeOf[gatehouse.Outcome](): enumeration([]gatehouse.Outcome{gatehouse.OutcomeAllow, gatehouse.OutcomeDeny,
		gatehouse.OutcomeNeedsApproval}),
	typeOf[gatehouse.DecisionKind](): enumeration([]gatehouse.DecisionKind{
		gatehouse.Approve, gatehouse.Reject,
	}),
	typeOf[gatehouse.TimeoutRule](): enumeration(
		[]gatehouse.TimeoutRule{gatehouse.TimeoutReject, gatehouse.TimeoutExtend}),
	typeOf[gatehouse.ApprovalStatus](): enumeration([]gatehouse.ApprovalStatus{
		gatehouse.ApprovalRequested, gatehouse.ApprovalApproved, gatehouse.ApprovalRejected,
		gatehouse.ApprovalExpired, gatehouse.ApprovalCanceled,
	}),
}

func enumeration[T ~string](list []T) func() *huma.Schema {
	return func() *huma.Schema {
		s := &huma.Schema{Type: "string"}
		for _, w := range list {
			s.Enum = append(s.Enum, string(w))
		}
		return s
	}
}

func sortedCodes() []gatehouse.Code {
	codes := gatehouse.Codes()
	slices.Sort(codes)
	return codes
}

// scalar replaces T in the generator, with the schema of the table above.
type scalar[T any] struct{}

// Schema implements huma.SchemaProvider.
func (scalar[T]) Schema(huma.Registry) *huma.Schema { return scalars[typeOf[T]()]() }

func alias[T any](r huma.Registry) { r.RegisterTypeAlias(typeOf[T](), typeOf[scalar[T]]()) }

func newRegistry() huma.Registry {
	r := huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
	alias[gatehouse.JSON](r)
	alias[gatehouse.Decimal](r)
	alias[gatehouse.Duration](r)
	alias[gatehouse.Span](r)
	alias[gatehouse.Hash](r)
	alias[gatehouse.Digest](r)
	alias[gatehouse.RiskLevel](r)
	alias[gatehouse.Status](r)
	alias[gatehouse.PushStatus](r)
	alias[gatehouse.RunStatus](r)
	alias[gatehouse.StepStatus](r)
	alias[gatehouse.TriggerType](r)
	alias[gatehouse.Role](r)
	alias[gatehouse.Code](r)
	alias[gatehouse.Kind](r)
	alias[gatehouse.MessageTopic](r)
	alias[gatehouse.Outcome](r)
	alias[gatehouse.DecisionKind](r)
	alias[gatehouse.ApprovalStatus](r)
	alias[gatehouse.TimeoutRule](r)
	return r
}

// finish adapts the generated schemas to the encoder and the decoder: lists are
// never null, pointers to objects can be null unless they have omitempty, and only
// objects that no request contains may have additional members.
func finish(r huma.Registry, requests []reflect.Type) {
	closed := make(map[string]bool)
	for _, t := range requests {
		reach(r, r.Schema(t, true, ""), closed)
	}
	for name, s := range r.Map() {
		if !closed[schemaPrefix+name] {
			s.AdditionalProperties = nil
		}
		t := r.TypeFromRef(schemaPrefix + name)
		for _, f := range reflect.VisibleFields(t) {
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[tag]
			if p == nil {
				continue
			}
			switch {
			case f.Type.Kind() == reflect.Slice:
				p.Nullable = false
			case f.Type.Kind() == reflect.Pointer && p.Ref != "" && !strings.Contains(options, "omitempty"):
				s.Properties[tag] = &huma.Schema{AnyOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
			}
		}
	}
}

// reach collects the references in a schema, transitively.
func reach(r huma.Registry, s *huma.Schema, seen map[string]bool) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		if seen[s.Ref] {
			return
		}
		seen[s.Ref] = true
		s = r.SchemaFromRef(s.Ref)
	}
	reach(r, s.Items, seen)
	for _, p := range s.Properties {
		reach(r, p, seen)
	}
}

// completeProblem completes the schema of a problem (RFC 9457). It allows additional
// members, because the schema does not list the members of a code's context.
func completeProblem(r huma.Registry) {
	r.Schema(typeOf[problem](), true, "")
	s := r.Map()["Problem"]
	delete(s.Properties, "Context")
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == "Context" })
	s.AdditionalProperties = true
	s.Description = "RFC 9457, with the machine-readable code and the members that belong to it, such as " +
		"current_status, decided_by, decided_at, superseded_by, expected, actual, prompt, ceiling, limit, used, pointer."
}
