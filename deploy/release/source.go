package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// source is the commit that is built.
type source struct {
	root, version, commit string
	date                  time.Time // the commit's
	modified              bool
}

// versionFile has the version on its own line.
const versionFile = "internal/version/version.go"

var versionLine = regexp.MustCompile(`(?m)^const Number = "(\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?)"$`)

// versioned maps each file that names the version to a regular expression whose group is the version: those that
// install a release, and the packages of the SDKs. The version must be the release's.
var versioned = map[string]string{
	"deploy/helm/gatehouse/Chart.yaml":  `(?m)^(?:version|appVersion): "?([^"\n]+)"?$`,
	"deploy/kubernetes/deployment.yaml": `gatehouse-dev/gatehouse:(\S+)`,
	"deploy/kubernetes/initjob.yaml":    `gatehouse-dev/gatehouse:(\S+)`,
	"deploy/compose/compose.yaml":       `gatehouse-dev/gatehouse:(\S+)`,
	"examples/agents/github-action.yml": `/releases/download/v([^/]+)/`,
	"sdk/python/pyproject.toml":         `(?m)^version = "([^"]+)"$`,
	"sdk/typescript/package.json":       `(?m)^  "version": "([^"]+)",$`,
}

// readSource reads the version from the files and the rest from Git.
func readSource(ctx context.Context, root string) (*source, error) {
	src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(versionFile)))
	if err != nil {
		return nil, err
	}
	m := versionLine.FindSubmatch(src)
	if m == nil {
		return nil, fmt.Errorf("%s has no line like %s", versionFile, versionLine)
	}
	s := &source{root: root, version: string(m[1])}
	for name, pattern := range versioned {
		text, err := s.read(name)
		if err != nil {
			return nil, err
		}
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		if found == nil {
			return nil, fmt.Errorf("%s names no version", name)
		}
		for _, f := range found {
			if string(f[1]) != s.version {
				return nil, fmt.Errorf("%s names version %s, and %s %s", name, f[1], versionFile, s.version)
			}
		}
	}
	if s.commit, err = s.git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	at, err := s.git(ctx, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return nil, err
	}
	if s.date, err = time.Parse(time.RFC3339, at); err != nil {
		return nil, err
	}
	s.date = s.date.UTC()
	changed, err := s.git(ctx, "status", "--porcelain")
	s.modified = changed != ""
	return s, err
}

// revision is the commit, with a suffix if files differ from it.
func (s *source) revision() string {
	if s.modified {
		return s.commit + "+modified"
	}
	return s.commit
}

// read reads a file of the repository.
func (s *source) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
}

func (s *source) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = s.root
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, complaint.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
