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
	// Kind is "" for a string, or number, true or false, duration, secret, or another word
	// for a value that is written as YAML.
	Kind string
	// Text says what the key is for, as docs/configuration.md does.
	Text string
	// Choices are the values that the text begins with, such as "a, b or c"; nil for none.
	Choices []string
}

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

// common are the keys of connectors of every type, or of those that call a system.
var common = []ConnectorKey{
	{Name: "timeout", Kind: "duration", Text: "The longest time of one call with its reads."},
	{Name: "allow_private", Kind: "true or false", Text: "Permits an address inside the network."},
}

// limit is the key of connectors whose calls this program makes.
var limit = ConnectorKey{Name: concurrencyKey, Kind: "number", Text: "The most calls under way, in each replica."}

// choices begins the text of a key with a few values.
var choices = regexp.MustCompile(`^([a-zA-Z_]+)(?: \(the default\))?(?:, ([a-zA-Z_]+))*,? or ([a-zA-Z_]+)\b`)

// ConnectorKeys are the keys of a type at the top of an entry, besides type and tenants.
func ConnectorKeys(kind string) []ConnectorKey {
	var keys []ConnectorKey
	for line := range strings.Lines(connectorKeys) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 4 || cells[0] != kind {
			continue
		}
		k := ConnectorKey{Name: cells[1], Kind: cells[2], Text: strings.ReplaceAll(cells[3], "`", "")}
		if found := choices.FindStringSubmatch(k.Text); k.Kind == "" && found != nil {
			for _, word := range strings.FieldsFunc(found[0], func(r rune) bool { return r == ' ' || r == ',' }) {
				if word != "or" && word != "(the" && word != "default)" {
					k.Choices = append(k.Choices, word)
				}
			}
		}
		keys = append(keys, k)
	}
	if keys != nil && kind != "worker" && kind != "mcp" {
		keys = append(keys, limit)
		if kind != "sql" {
			keys = append(keys, common...)
		}
	}
	return keys
}
