package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const sumsFile = "SHA256SUMS"

// checksums lists all artifacts in the format of sha256sum.
func (d *dist) checksums() error {
	files, err := os.ReadDir(d.out)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, f := range files {
		sum, err := fileSum(filepath.Join(d.out, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, f.Name())
	}
	return d.write(sumsFile, out.Bytes())
}

func fileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// installer is install.sh with this release's version and address.
func (d *dist) installer() error {
	src, err := d.read("deploy/release/install.sh")
	if err != nil {
		return err
	}
	src = bytes.ReplaceAll(src, []byte("@VERSION@"), []byte(d.version))
	src = bytes.ReplaceAll(src, []byte("@BASE@"), []byte(d.base))
	return d.write("install.sh", src)
}
