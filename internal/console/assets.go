package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets
var assetFiles embed.FS

// assets serves the embedded files under URLs that contain a hash of all files, so browsers may
// cache them for ever. All files share one hash: a script that imports another one gets the same version.
type assets struct {
	prefix string
	files  map[string]asset
}

// asset is an embedded file. packed compresses the file at the first call.
type asset struct {
	body   []byte
	packed func() []byte
}

var assetTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

func loadAssets() (*assets, error) {
	a := &assets{files: make(map[string]asset)}
	sum := sha256.New()
	err := fs.WalkDir(assetFiles, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || assetTypes[path.Ext(name)] == "" {
			return err
		}
		body, err := assetFiles.ReadFile(name)
		if err != nil {
			return err
		}
		packed := sync.OnceValue(func() []byte { return pack(body) })
		a.files[strings.TrimPrefix(name, "assets/")] = asset{body: body, packed: packed}
		sum.Write([]byte(name))
		sum.Write(body)
		return nil
	})
	a.prefix = "/assets/" + hex.EncodeToString(sum.Sum(nil))[:16] + "/"
	return a, err
}

// pack compresses a file at gzip's highest level.
func pack(body []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return body // cannot happen: the level is valid
	}
	_, _ = z.Write(body) // a bytes.Buffer never fails
	_ = z.Close()
	return b.Bytes()
}

// url is the URL of a file.
func (a *assets) url(name string) string { return a.prefix + name }

// ServeHTTP serves the files of this version only; other hashes are not found.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, a.prefix)
	file, known := a.files[name]
	if !ok || !known {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	body := file.body
	if acceptsGzip(r) && len(file.packed()) < len(body) {
		w.Header().Set("Content-Encoding", "gzip")
		body = file.packed()
	}
	_, _ = w.Write(body)
}

// acceptsGzip reports whether the client accepts gzip by name (RFC 9110, 12.5.3).
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, given := strings.CutPrefix(strings.ReplaceAll(strings.ToLower(weight), " ", ""), "q=")
		return !given || strings.Trim(q, "0.") != ""
	}
	return false
}
