package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// bomSchema is CycloneDX's own schema, which comes with its library.
func bomSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir := strings.TrimSpace(run(t, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go"))
	compiler := jsonschema.NewCompiler()
	for _, name := range []string{"bom-1.6.schema.json", "spdx.schema.json", "jsf-0.82.schemax.json"} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, dir, "schema", name)))
		must(t, err)
		address := "http://cyclonedx.org/schema/" + strings.Replace(name, "schemax", "schema", 1)
		must(t, compiler.AddResource(address, doc))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	must(t, err)
	return schema
}

// TestSBOM: the bill matches CycloneDX's schema, describes the binary in the archive, and lists
// every module that the Go command says is linked.
func TestSBOM(t *testing.T) {
	out, src := made(t)
	name := "gatehouse_" + src.version + "_linux_amd64"
	content := read(t, out, name+".cdx.json")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	must(t, err)
	schema := bomSchema(t)
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	if schema.Validate(map[string]any{"bomFormat": "other"}) == nil {
		t.Error("the schema accepts anything")
	}
	var bom cdx.BOM
	must(t, cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(&bom))
	to := t.TempDir()
	untarGzip(t, filepath.Join(out, name+".tar.gz"), to)
	sum := sha256.Sum256(read(t, to, name, "gatehouse"))
	if got := (*bom.Metadata.Component.Hashes)[0].Value; got != hex.EncodeToString(sum[:]) {
		t.Errorf("it is of a program with the checksum %s", got)
	}
	commit := wantThisBuild(t, src, filepath.Join(to, name, "gatehouse"))
	if !slices.Contains(*bom.Metadata.Component.Properties, cdx.Property{Name: "commit", Value: commit}) {
		t.Errorf("the bill of materials has %v, but the program's commit is %s",
			*bom.Metadata.Component.Properties, commit)
	}
	listed := make(map[string]bool)
	for _, c := range *bom.Components {
		listed[c.PackageURL] = true
		if c.Hashes == nil && c.Name != "std" {
			t.Errorf("%s has no checksum", c.Name)
		}
	}
	linked := 0
	for _, module := range modules(t) {
		linked++
		if want := "pkg:golang/" + module.Path + "@" + url.PathEscape(module.Version); !listed[want] {
			t.Errorf("%s is missing", want)
		}
	}
	if linked < 30 || linked+1 != len(listed) {
		t.Errorf("%d modules, %d listed", linked, len(listed))
	}
}

type module struct{ Path, Version string }

// modules asks the Go command for the program's dependencies.
func modules(t *testing.T) map[string]module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/gatehouse")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	out, err := cmd.Output()
	must(t, err)
	found := make(map[string]module)
	for _, m := range regexp.MustCompile(`(?m)^(\S+) (\S+)$`).FindAllStringSubmatch(string(out), -1) {
		found[m[1]] = module{Path: m[1], Version: m[2]}
	}
	return found
}

// TestSerial: equal bills have equal serial numbers, other bills have others.
func TestSerial(t *testing.T) {
	one := serial("a", "b")
	if one != serial("a", "b") || one == serial("a", "c") ||
		!regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(
			one) {
		t.Error(one)
	}
}
