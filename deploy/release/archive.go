package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file of an archive, or a folder if its content is nil; its name then ends in a slash.
type entry struct {
	name    string
	mode    int64
	content []byte
	uid     int // of owner and group
}

// writeTar writes entries in the given order, all with the same time.
func writeTar(w io.Writer, at time.Time, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Uid: e.uid, Gid: e.uid,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if e.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}

func (d *dist) tarGzip(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, d.level)
	if err != nil {
		return nil, err
	}
	if err := writeTar(z, d.date, entries); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (d *dist) zipped(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: d.date}
		h.SetMode(fs.FileMode(e.mode))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// archives makes one archive per platform: the program, the licence, the readme, the changelog, and
// the completions.
func (d *dist) archives() error {
	for _, b := range d.binaries {
		folder := b.name(d.version)
		program, err := os.ReadFile(b.file)
		if err != nil {
			return err
		}
		entries := []entry{{name: folder + "/" + filepath.Base(b.file), mode: 0o755, content: program}}
		for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
			content, err := d.read(name)
			if err != nil {
				return err
			}
			entries = append(entries, entry{name: folder + "/" + name, mode: 0o644, content: content})
		}
		for _, c := range []struct{ shell, name string }{{"bash", "gatehouse.bash"}, {"fish", "gatehouse.fish"},
			{"zsh", "_gatehouse"}} {
			entries = append(entries, entry{name: folder + "/completions/" + c.name, mode: 0o644,
				content: d.completions[c.shell]})
		}
		pack, suffix := d.tarGzip, ".tar.gz"
		if b.os == "windows" {
			pack, suffix = d.zipped, ".zip"
		}
		content, err := pack(entries)
		if err != nil {
			return err
		}
		if err := d.write(folder+suffix, content); err != nil {
			return err
		}
	}
	return nil
}

// deployment makes the chart's archive, and an archive of all deployment files.
func (d *dist) deployment() error {
	chart, err := d.folder("deploy/helm/gatehouse", "gatehouse")
	if err != nil {
		return err
	}
	var all []entry
	for _, name := range []string{"compose", "grafana", "helm", "kubernetes", "prometheus", "systemd"} {
		entries, err := d.folder("deploy/"+name, "deploy/"+name)
		if err != nil {
			return err
		}
		all = append(all, entries...)
	}
	for name, entries := range map[string][]entry{
		"gatehouse-" + d.version + ".tgz":           chart,
		"gatehouse_" + d.version + "_deploy.tar.gz": all,
	} {
		content, err := d.tarGzip(entries)
		if err != nil {
			return err
		}
		if err := d.write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// folder reads the files of a folder, with their names in the archive.
func (d *dist) folder(from, to string) ([]entry, error) {
	var entries []entry
	tree := os.DirFS(filepath.Join(d.root, filepath.FromSlash(from)))
	err := fs.WalkDir(tree, ".", func(name string, f fs.DirEntry, err error) error {
		if err != nil || f.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: path.Join(to, name), mode: 0o644, content: content})
		return nil
	})
	return entries, err
}
