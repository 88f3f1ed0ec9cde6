package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const imageName = "ghcr.io/gatehouse-dev/gatehouse"

// imageConfig is the image's configuration. A test compares it with the Dockerfile.
var imageConfig = v1.Config{
	User:    "65532:65532",
	Volumes: map[string]struct{}{"/data": {}},
	Env: []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
		"GATEHOUSE_DATA=/data", "GATEHOUSE_LISTEN=0.0.0.0:8080"},
	ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	StopSignal:   "SIGTERM",
	Entrypoint:   []string{"/usr/local/bin/gatehouse"},
	Cmd:          []string{"serve"},
}

// image makes an OCI image for all Linux architectures, as an archive of an image layout: it needs
// no registry and no container engine.
func (d *dist) image() error {
	base, err := d.baseLayer()
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range d.binaries {
		if b.os != "linux" {
			continue
		}
		image, err := d.imageFor(b, base)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1,
				Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	folder := filepath.Join(d.work, "image")
	at, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	name := imageName + ":" + d.version
	// The first is the specification's name, the second the name that container engines use.
	annotations := map[string]string{"org.opencontainers.image.ref.name": d.version, "io.containerd.image.name": name}
	if err := at.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return err
	}
	entries, err := filesOf(folder)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := writeTar(&out, d.date, entries); err != nil {
		return err
	}
	return d.write("gatehouse_"+d.version+"_image.oci.tar", out.Bytes())
}

// filesOf lists a folder's files, sorted by name.
func filesOf(folder string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(folder, func(name string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		entries = append(entries, entry{name: filepath.ToSlash(inside), mode: 0o644, content: content})
		return err
	})
	return entries, err
}

func (d *dist) imageFor(b binary, base v1.Layer) (v1.Image, error) {
	program, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	layer, err := d.layer([]entry{
		{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: "usr/local/bin/", mode: 0o755},
		{name: "usr/local/bin/gatehouse", mode: 0o755, content: program},
	})
	if err != nil {
		return nil, err
	}
	config := imageConfig
	config.Labels = map[string]string{
		"org.opencontainers.image.title": "Gatehouse", "org.opencontainers.image.version": d.version,
		"org.opencontainers.image.revision": d.revision(),
		"org.opencontainers.image.created":  d.date.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.source":   "https://github.com/gatehouse-dev/gatehouse",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	at := v1.Time{Time: d.date}
	if image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: b.os, Architecture: b.arch, Created: at, Config: config,
		RootFS: v1.RootFS{Type: "layers"}}); err != nil {
		return nil, err
	}
	return mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: at, CreatedBy: "users, root certificates, /data"}},
		mutate.Addendum{Layer: layer, History: v1.History{Created: at, CreatedBy: "gatehouse " + d.version}},
	)
}

// baseLayer has what an empty image lacks: the names of the users, Mozilla's root certificates,
// writable folders, and the licence.
func (d *dist) baseLayer() (v1.Layer, error) {
	licence, err := d.read("LICENSE")
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		// Some roots are trusted only for certificates issued before a date, which a PEM file
		// cannot express.
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	folders := []entry{{name: "tmp/", mode: 0o1777}, {name: "data/", mode: 0o755, uid: 65532}}
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/share/", "usr/share/doc/",
		"usr/share/doc/gatehouse/"} {
		folders = append(folders, entry{name: name, mode: 0o755})
	}
	return d.layer(slices.Concat(folders, []entry{
		{name: "etc/passwd", mode: 0o644,
			content: []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots.Bytes()},
		{name: "usr/share/doc/gatehouse/LICENSE", mode: 0o644, content: licence},
	}))
}

func (d *dist) layer(entries []entry) (v1.Layer, error) {
	var out bytes.Buffer
	if err := writeTar(&out, d.date, entries); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
