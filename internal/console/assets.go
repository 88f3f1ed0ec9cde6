package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets serves the embedded files under URLs that name their content, so that
// browsers may keep them for ever. All share one hash: a script that imports
// its neighbour gets the one of its own version.
type assets struct {
	prefix string
	files  map[string][]byte
}

var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func loadAssets() (*assets, error) {
	a := &assets{files: make(map[string][]byte)}
	sum := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || assetTypes[path.Ext(name)] == "" {
			return err
		}
		body, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		a.files[strings.TrimPrefix(name, "assets/")] = body
		sum.Write([]byte(name))
		sum.Write(body)
		return nil
	})
	a.prefix = "/assets/" + hex.EncodeToString(sum.Sum(nil))[:16] + "/"
	return a, err
}

// url returns where a file stands.
func (a *assets) url(name string) string { return a.prefix + name }

// ServeHTTP serves a file of this version, and knows no other.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, a.prefix)
	body, known := a.files[name]
	if !ok || !known {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(body) //nolint:gosec // the embedded files, under their own types
}
