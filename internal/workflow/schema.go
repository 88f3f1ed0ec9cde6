package workflow

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of the YAML form, for editors. It
// checks less than [Parse], which also knows expressions and the graph.
func Schema() []byte { return append([]byte(nil), schema...) }
