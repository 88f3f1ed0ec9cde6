package main

import (
	"bytes"
	_ "embed"
	"path/filepath"
	"text/template"
)

//go:embed formula.rb.tmpl
var formulaText string

var formulaTemplate = template.Must(template.New("formula").Option("missingkey=error").Parse(formulaText))

// formula makes the Homebrew formula for the archives, with their checksums. It lists the platforms
// that were built, except Windows.
func (d *dist) formula() error {
	type archive struct{ URL, Sum string }
	systems := make(map[string]map[string]archive)
	for _, b := range d.binaries {
		if b.os == "windows" {
			continue
		}
		name := b.name(d.version) + ".tar.gz"
		sum, err := fileSum(filepath.Join(d.out, name))
		if err != nil {
			return err
		}
		if systems[b.os] == nil {
			systems[b.os] = make(map[string]archive)
		}
		systems[b.os][b.arch] = archive{d.base + "/" + name, sum}
	}
	var out bytes.Buffer
	data := map[string]any{"Version": d.version, "Systems": systems}
	if err := formulaTemplate.Execute(&out, data); err != nil {
		return err
	}
	return d.write("gatehouse.rb", out.Bytes())
}
