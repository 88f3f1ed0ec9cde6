package api

import (
	"bytes"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/gatehouse-dev/gatehouse"
)

// The parts of the page at /docs, in display order. Each operation, error code
// and schema has an anchor: its id, its code, and "schema-" plus its name. The
// type of a problem links to its code.
type (
	docsView struct {
		Version, Description string
		Groups               []docsGroup
		Codes                []docsCode
		Schemas              []docsSchema
	}
	docsGroup struct {
		Name       string
		Operations []docsOperation
	}
	docsOperation struct {
		ID, Method, Path, Summary, Description string
		Parameters                             []docsField
		Bodies                                 []docsBody
		BodyOptional                           bool
		Answers                                []docsAnswer
	}
	docsField struct {
		Name, In, Description string
		Schema                docsType
		Always                bool
	}
	docsBody struct {
		Media   string
		Schema  docsType
		Example any
	}
	docsAnswer struct {
		Status, Description string
		Codes               []string
		Bodies              []docsBody
	}
	docsCode struct {
		Code      gatehouse.Code
		Title     string
		Status    int
		Retryable bool
		From      []string // operations
	}
	docsSchema struct {
		Name, Description string
		Members           []docsField
	}
	// docsType describes a schema in one line: a reference, a choice, a list,
	// or words.
	docsType struct {
		Ref, Words string
		AnyOf      []docsType
		Items      *docsType
	}
)

// docsPage renders the OpenAPI document as an HTML page without scripts.
func (s *Server) docsPage() ([]byte, error) {
	page, err := template.ParseFS(assets, "assets/docs.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, viewOf(document(s.routes, s.hookRoutes(), s.cfg.Reviews != nil, s.cfg.Build.Version)))
	return out.Bytes(), err
}

func viewOf(doc *huma.OpenAPI) *docsView {
	v := &docsView{Version: doc.Info.Version, Description: doc.Info.Description}
	from := make(map[string][]string) // operations by error code
	for _, tag := range doc.Tags {
		group := docsGroup{Name: tag.Name}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			for _, op := range operationsOf(doc.Paths[path]) {
				if !slices.Contains(op.Tags, tag.Name) {
					continue
				}
				shown := operationView(op)
				group.Operations = append(group.Operations, shown)
				for _, answer := range shown.Answers {
					for _, code := range answer.Codes {
						from[code] = append(from[code], op.OperationID)
					}
				}
			}
		}
		if len(group.Operations) > 0 { // a server without channels has no notifications
			v.Groups = append(v.Groups, group)
		}
	}
	for _, code := range sortedCodes() {
		v.Codes = append(v.Codes, docsCode{
			Code: code, Title: titles[code], Status: gatehouse.StatusOf(code), Retryable: code.Retryable(),
			From: from[string(code)],
		})
	}
	schemas := doc.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		v.Schemas = append(v.Schemas, schemaView(name, schemas[name]))
	}
	return v
}

func operationsOf(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func operationView(op *huma.Operation) docsOperation {
	v := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
	}
	for _, p := range op.Parameters {
		v.Parameters = append(v.Parameters,
			docsField{Name: p.Name, In: p.In, Description: p.Description, Schema: typeView(p.Schema)})
	}
	if op.RequestBody != nil {
		v.Bodies, v.BodyOptional = bodyViews(op.RequestBody.Content), !op.RequestBody.Required
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		codes, _ := r.Extensions["x-codes"].([]string)
		v.Answers = append(v.Answers,
			docsAnswer{Status: status, Description: r.Description, Codes: codes, Bodies: bodyViews(r.Content)})
	}
	return v
}

func bodyViews(content map[string]*huma.MediaType) []docsBody {
	var list []docsBody
	for _, media := range slices.Sorted(maps.Keys(content)) {
		list = append(list, docsBody{Media: media, Schema: typeView(content[media].Schema), Example: content[media].Example})
	}
	return list
}

func schemaView(name string, s *huma.Schema) docsSchema {
	v := docsSchema{Name: name, Description: s.Description}
	for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[member]
		v.Members = append(v.Members, docsField{
			Name: member, Description: p.Description, Schema: typeView(p), Always: slices.Contains(s.Required, member),
		})
	}
	return v
}

func typeView(s *huma.Schema) docsType {
	switch {
	case s == nil:
		return docsType{Words: "any"}
	case s.Ref != "":
		return docsType{Ref: strings.TrimPrefix(s.Ref, schemaPrefix)}
	case len(s.AnyOf) > 0:
		var v docsType
		for _, one := range s.AnyOf {
			v.AnyOf = append(v.AnyOf, typeView(one))
		}
		return v
	case s.Items != nil:
		items := typeView(s.Items)
		return docsType{Items: &items}
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			words[i] = fmt.Sprint(value)
		}
		return docsType{Words: strings.Join(words, " | ")}
	case s.Type == "":
		return docsType{Words: "any"}
	case s.Format != "":
		return docsType{Words: s.Type + " (" + s.Format + ")"}
	}
	return docsType{Words: s.Type}
}
