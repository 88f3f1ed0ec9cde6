package config

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

// connectorKeys has the rows of the connectors in docs/configuration.md; see TestReference.
//
//go:embed connectorkeys.tsv
var connectorKeys string

// ConnectorKey is a key of an entry of connectors.
type ConnectorKey struct {
	Name string
	// Kind is what the value is; see the constants.
	Kind string
	// Text says what the key is for, as docs/configuration.md does.
	Text string
	// Choices are the values that the text begins with, such as "a, b or c", or true and false for a
	// key that is true by default; nil for none.
	Choices []string
	// First says that a form shows the key at once. Keys without First are folded.
	First bool
	// Keys are those of an object, or of each object of a list or map.
	Keys []ConnectorKey
}

// Kinds of values.
const (
	KindText     = ""
	KindNumber   = "number"
	KindDuration = "duration"
	KindBool     = "true or false"
	KindSecret   = "secret"      // {secret: NAME}
	KindName     = "secret name" // the NAME alone
	KindList     = "list"        // of scalars
	KindYAML     = "yaml"        // a JSON Schema, or another value without keys of its own
	KindObject   = "object"
	KindObjects  = "list of objects"
	KindMap      = "map of objects"

	KindStrings = "map of strings"
	KindNumbers = "map of numbers"
	KindMixed   = "map of strings or secrets"
)

// ConnectorTypes are the types of connectors with keys, sorted.
func ConnectorTypes() []string {
	var types []string
	for line := range strings.Lines(connectorKeys) {
		kind, _, _ := strings.Cut(line, "\t")
		types = append(types, kind)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// outboundKeys are the keys of all connector types that call a system under the rules for outbound
// addresses.
var outboundKeys = []ConnectorKey{
	{Name: "timeout", Kind: KindDuration, Text: "The longest time of one call with its reads."},
	{Name: allowPrivate, Kind: KindBool, Text: "Permits an address inside the network."},
}

const allowPrivate = "allow_private"

// amountKeys are the keys of an amount of money.
var amountKeys = []ConnectorKey{
	{Name: "field", Text: "Where the amount is, such as /lines/*/total."},
	{Name: "currency", Text: "Where its currency is, or a code such as EUR; the field currency beside it by default."},
	{Name: "minor", Kind: KindBool, Text: "The amount counts the currency's minor unit, such as cents."},
}

// concurrencyLimit is the key of connectors whose calls this program makes.
var concurrencyLimit = ConnectorKey{
	Name: concurrencyKey, Kind: KindNumber, Text: "The most calls under way, in each replica.",
}

// choices matches the values with which the text of a key begins, such as "a, b or c".
var choices = regexp.MustCompile(`^([a-zA-Z_]+)(?: \(the default\))?(?:, ([a-zA-Z_]+))*,? or ([a-zA-Z_]+)\b`)

// ConnectorKeys are the keys of a type at the top of an entry, besides type and tenants.
func ConnectorKeys(kind string) []ConnectorKey {
	var rows [][]string
	for line := range strings.Lines(connectorKeys) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) == 5 && cells[0] == kind {
			rows = append(rows, cells[1:])
		}
	}
	keys := keysBelow(rows, "", nil)
	if keys != nil && kind != "worker" && kind != "mcp" {
		keys = append(keys, concurrencyLimit)
		if kind != "sql" {
			keys = append(keys, outboundKeys...)
		}
	}
	return keys
}

// keysBelow returns the keys whose rows lie directly below a prefix. within are the paths from the top to the
// prefix. Rows of these paths are skipped, so that a key that contains objects of its own kind does not recur.
func keysBelow(rows [][]string, prefix string, within []string) []ConnectorKey {
	var keys []ConnectorKey
	for _, row := range rows {
		path, kind := row[0], row[1]
		name, below := strings.CutPrefix(path, prefix)
		if !below || slices.Contains(within, path) {
			continue
		}
		k := ConnectorKey{Kind: kind, First: row[2] == "first", Text: strings.ReplaceAll(row[3], "`", "")}
		like, same := strings.CutPrefix(kind, "as ")
		if same {
			k.Kind = KindObject
		} else {
			like = path
		}
		if one, ok := strings.CutSuffix(name, ".NAME"); ok {
			k.Kind, name = KindMap, one
		} else if one, ok := strings.CutSuffix(name, "[]"); ok {
			k.Kind, name = KindObjects, one
		}
		if strings.ContainsAny(name, ".[") {
			continue // a key of a key
		}
		k.Name = name
		switch {
		case kind == "list of amounts":
			k.Kind, k.Keys = KindObjects, amountKeys
		case k.holdsKeys():
			k.Keys = keysBelow(rows, like+".", append(slices.Clone(within), path))
		case kind == KindText && (name == "secret" || strings.HasSuffix(name, "_secret")):
			k.Kind = KindName
		case kind == KindBool && strings.Contains(k.Text, "true by default"):
			k.Choices = []string{"true", "false"}
		case kind == KindText:
			k.Choices = choicesOf(k.Text)
		}
		keys = append(keys, k)
	}
	return keys
}

func choicesOf(text string) []string {
	var list []string
	found := choices.FindString(text)
	for _, word := range strings.FieldsFunc(found, func(r rune) bool { return r == ' ' || r == ',' }) {
		if word != "or" && word != "(the" && word != "default)" {
			list = append(list, word)
		}
	}
	return list
}

func (k ConnectorKey) holdsKeys() bool {
	return k.Kind == KindObject || k.Kind == KindObjects || k.Kind == KindMap
}

// MayBeEmpty reports whether an object is valid without keys: the text of each of its keys mentions a
// default.
func (k ConnectorKey) MayBeEmpty() bool {
	return k.Kind == KindObject && !slices.ContainsFunc(k.Keys, func(k ConnectorKey) bool {
		return !strings.Contains(k.Text, "default")
	})
}
