package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strings"

	"crypto/sha256"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const modulePath = "github.com/gatehouse-dev/gatehouse"

// sboms makes a bill of materials for each binary, from the list of linked modules in the binary.
func (d *dist) sboms() error {
	for _, b := range d.binaries {
		content, err := d.sbom(b)
		if err != nil {
			return fmt.Errorf("bill of materials for %s/%s: %w", b.os, b.arch, err)
		}
		if err := d.write(b.name(d.version)+".cdx.json", content); err != nil {
			return err
		}
	}
	return nil
}

func (d *dist) sbom(b binary) ([]byte, error) {
	info, err := buildinfo.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	main := component(modulePath, "v"+d.version, "")
	main.Type = cdx.ComponentTypeApplication
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	main.Properties = &[]cdx.Property{
		{Name: "commit", Value: d.revision()}, {Name: "platform", Value: b.os + "/" + b.arch},
	}

	components := []cdx.Component{component("std", info.GoVersion, "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, component(m.Path, m.Version, m.Sum))
	}
	needs := make([]string, len(components))
	for i := range components {
		needs[i] = components[i].BOMRef
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(main.PackageURL, hex.EncodeToString(sum[:]))
	bom.Metadata = &cdx.Metadata{Timestamp: d.date.Format("2006-01-02T15:04:05Z"), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	err = encoder.EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// component is a Go module. A sum in go.sum is the SHA-256 of a list of the names and hashes of the
// module's files (golang.org/x/mod/sumdb/dirhash).
func component(path, version, sum string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + url.PathEscape(version)
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl,
		Scope: cdx.ScopeRequired}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil &&
		len(raw) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	return c
}

// serial is a UUID of version 8 (RFC 9562), derived from the given texts, so that it is reproducible.
func serial(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, " ")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
