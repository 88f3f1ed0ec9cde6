package httpconn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// Imported is the file that gatehouse connector import writes from an OpenAPI document.
type Imported struct {
	// OpenAPI describes the document.
	OpenAPI Document `yaml:"openapi"`
	// Operations are the operations that a person has accepted.
	Operations map[string]ImportedOperation `yaml:"operations"`
	// SetAside are the operations that are new, or that have changed since they were accepted. They
	// cannot be proposed.
	SetAside map[string]ImportedOperation `yaml:"set_aside"`
	// LeftOut maps the operations that were not imported to the reasons.
	LeftOut map[string]string `yaml:"left_out"`
}

// Document describes an OpenAPI document.
type Document struct {
	// Title and Version are copied from the document.
	Title   string `yaml:"title"`
	Version string `yaml:"version"`
	// SHA256 is the document's hash, as 64 hexadecimal digits.
	SHA256 string `yaml:"sha256"`
	// Only are the patterns that selected the operations; empty for all.
	Only []string `yaml:"only"`
}

// ImportedOperation is an operation and its origin.
type ImportedOperation struct {
	Operation `yaml:",inline"`
	// Imported describes the origin. It is not sent.
	Imported Origin `yaml:"imported"`
}

// Origin describes how an operation was derived.
type Origin struct {
	// Digest is the digest of the operation as derived, before any edit.
	Digest string `yaml:"digest"`
	// Why lists the reasons for its class and its level.
	Why []string `yaml:"why"`
	// Money are the JSON pointers of amounts within a proposed change, for ceilings.
	Money []string `yaml:"money"`
	// Currency is the JSON pointer of the currency of the amounts.
	Currency string `yaml:"currency"`
	// Differs lists the differences from the accepted operation.
	Differs []string `yaml:"differs"`
}

// ParseImported parses a file written by gatehouse connector import.
func ParseImported(text string) (*Imported, error) {
	var root yaml.Node
	if err := yaml.Load([]byte(text), &root); err != nil {
		return nil, err
	}
	var out Imported
	if err := root.Load(&out, yaml.WithKnownFields()); err != nil {
		return nil, err
	}
	if len(out.OpenAPI.SHA256) != 64 {
		return nil, errors.New("was not written by gatehouse connector import: openapi.sha256 is missing")
	}
	return &out, nil
}

// withImported adds the imported operations to a configuration, and returns the document's hash.
func (c *Config) withImported() (string, error) {
	if c.Import == "" {
		return "", nil
	}
	i, err := ParseImported(c.Import)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	all := make(map[string]Operation, len(c.Operations)+len(i.Operations))
	for name, op := range i.Operations {
		all[name] = op.withAmounts(op.Imported)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Operations)) {
		own := c.Operations[name]
		imported, ok := i.Operations[name]
		if _, aside := i.SetAside[name]; aside && !ok && own.Method == "" && own.Path == "" {
			continue // its declarations apply again once the operation is accepted
		}
		if ok {
			if own, err = imported.withAmounts(imported.Imported).with(own); err != nil {
				return "", fmt.Errorf("operations.%s: %w", name, err)
			}
		}
		all[name] = own
	}
	c.Operations = all
	return i.OpenAPI.SHA256, nil
}

// withAmounts declares the amounts that the import found, unless the file declares others.
func (o Operation) withAmounts(from Origin) Operation {
	if o.Amounts != nil {
		return o
	}
	for _, pointer := range from.Money[:min(len(from.Money), gatehouse.MaxAmountFields)] {
		o.Amounts = append(o.Amounts, gatehouse.AmountField{Field: pointer, Currency: from.Currency})
	}
	return o
}

// with merges an operator's declarations into an imported operation; the operator's declarations
// win.
func (o Operation) with(own Operation) (Operation, error) {
	if own.Method != "" || own.Path != "" || own.Body != "" || own.Schema != "" {
		return o, errors.New("is imported; leave out method, path, body and schema, or give it another name")
	}
	headers := maps.Clone(o.Headers)
	for name, v := range own.Headers {
		if headers == nil {
			headers = make(map[string]Value)
		}
		headers[name] = v
	}
	o.Headers = headers
	o.EncodeSlashes = o.EncodeSlashes || own.EncodeSlashes
	o.Class = cmp.Or(own.Class, o.Class)
	o.IdempotencyHeader = cmp.Or(own.IdempotencyHeader, o.IdempotencyHeader)
	o.Conditional = cmp.Or(own.Conditional, o.Conditional)
	o.ResponseSchema = cmp.Or(own.ResponseSchema, o.ResponseSchema)
	o.ExternalID = cmp.Or(own.ExternalID, o.ExternalID)
	o.Check = cmp.Or(own.Check, o.Check)
	o.ReadBack = cmp.Or(own.ReadBack, o.ReadBack)
	o.Reverse = cmp.Or(own.Reverse, o.Reverse)
	o.Preview = cmp.Or(own.Preview, o.Preview)
	o.Timeout = cmp.Or(own.Timeout, o.Timeout)
	o.Floor = cmp.Or(own.Floor, o.Floor)
	o.KeyRetention = cmp.Or(own.KeyRetention, o.KeyRetention)
	if own.Success != nil {
		o.Success = own.Success
	}
	if own.Outcomes != nil {
		o.Outcomes = own.Outcomes
	}
	if own.Fields != nil {
		o.Fields = own.Fields
	}
	if own.Amounts != nil {
		o.Amounts = own.Amounts
	}
	return o, nil
}
