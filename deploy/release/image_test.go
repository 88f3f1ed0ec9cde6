package main

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// loadImage reads the archive as a registry's client does.
func loadImage(t *testing.T) (v1.Image, *source) {
	t.Helper()
	out, src := made(t)
	f, err := os.Open(filepath.Join(out, "gatehouse_"+src.version+"_image.oci.tar"))
	must(t, err)
	defer f.Close()
	folder := t.TempDir()
	untar(t, f, folder)
	outer, err := layout.ImageIndexFromPath(folder)
	must(t, err)
	must(t, validate.Index(outer))
	named, err := outer.IndexManifest()
	if err != nil || len(named.Manifests) != 1 {
		t.Fatalf("%+v, %v", named, err)
	}
	if got := named.Manifests[0].Annotations["io.containerd.image.name"]; got != imageName+":"+src.version {
		t.Errorf("the image is called %q", got)
	}
	index, err := outer.ImageIndex(named.Manifests[0].Digest)
	must(t, err)
	list, err := index.IndexManifest()
	must(t, err)
	for _, m := range list.Manifests {
		if m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == "amd64" {
			image, err := index.Image(m.Digest)
			must(t, err)
			return image, src
		}
	}
	t.Fatalf("no image for linux/amd64 in %+v", list.Manifests)
	return nil, nil
}

func TestImage(t *testing.T) {
	image, src := loadImage(t)
	files := mutate.Extract(image)
	defer files.Close()
	to := t.TempDir()
	headers := untar(t, files, to)
	commit := wantThisBuild(t, src, filepath.Join(to, "usr/local/bin/gatehouse"))
	if h := headers["data"]; h == nil || h.Uid != 65532 || h.Gid != 65532 {
		t.Errorf("the data folder is %+v", h)
	}
	pool := x509.NewCertPool()
	if roots := read(t, to, "etc/ssl/certs/ca-certificates.crt"); !pool.AppendCertsFromPEM(roots) ||
		bytes.Count(roots, []byte("BEGIN CERT")) < 100 {
		t.Error("the image knows few root certificates")
	}
	config, err := image.ConfigFile()
	must(t, err)
	if config.OS != "linux" || config.Architecture != "amd64" ||
		config.Config.Labels["org.opencontainers.image.revision"] != commit {
		t.Errorf("the configuration is %+v", config)
	}
	names := []string{"etc/passwd", "etc/group", "usr/share/doc/gatehouse/LICENSE"}
	for _, name := range names {
		if len(read(t, to, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

// TestImageIsTheDockerfile: the image has the same configuration as the one that `docker build`
// makes.
func TestImageIsTheDockerfile(t *testing.T) {
	image, _ := loadImage(t)
	config, err := image.ConfigFile()
	must(t, err)
	c := config.Config
	file := string(read(t, root, "Dockerfile"))
	_, file, _ = strings.Cut(file, "\nFROM gcr.io/distroless/")
	line := func(instruction string) string {
		m := regexp.MustCompile(`(?m)^` + instruction + ` (.*)$`).FindStringSubmatch(file)
		if m == nil {
			t.Fatalf("the Dockerfile has no %s", instruction)
		}
		return m[1]
	}
	list := func(words []string) string { return `["` + strings.Join(words, `", "`) + `"]` }
	for instruction, got := range map[string]string{
		"USER": c.User, "STOPSIGNAL": c.StopSignal, "ENTRYPOINT": list(c.Entrypoint), "CMD": list(c.Cmd),
	} {
		if want := line(instruction); got != want {
			t.Errorf("%s is %s, in the Dockerfile %s", instruction, got, want)
		}
	}
	for _, want := range strings.Fields(line("ENV")) {
		if !slices.Contains(c.Env, want) {
			t.Errorf("no %s in %q", want, c.Env)
		}
	}
	if _, ok := c.ExposedPorts[line("EXPOSE")+"/tcp"]; !ok || len(c.ExposedPorts) != 1 {
		t.Errorf("ports %v", c.ExposedPorts)
	}
	if _, ok := c.Volumes["/data"]; !ok || line("VOLUME") != `["/data"]` {
		t.Errorf("volumes %v", c.Volumes)
	}
}
