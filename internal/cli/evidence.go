package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// evidenceCmd groups the commands about evidence.
type evidenceCmd struct {
	Action evidenceActionCmd `cmd:"" default:"withargs" help:"Print all evidence about an action; the default command."`
	Export evidenceExportCmd `cmd:"" help:"Fetch the evidence bundle of a finished run, and verify it."`
	Show   evidenceShowCmd   `cmd:"" help:"Verify a bundle, and print its content."`
}

func (*evidenceCmd) Help() string {
	return `
The evidence of an action is one JSON document: "gatehouse evidence ID" is short
for "gatehouse evidence action ID". The evidence of a run is one ZIP archive with
a manifest: "gatehouse evidence export" fetches it.

Examples:

    gatehouse evidence act_01993b7e -o evidence.json
    gatehouse evidence export run_01993b7e -o evidence.zip
    gatehouse evidence show evidence.zip
`
}

// evidenceExportCmd fetches a bundle.
type evidenceExportCmd struct {
	ID     string `arg:"" help:"The run, which must have ended."`
	Output string `short:"o" placeholder:"FILE" help:"Write to this new file; RUN.zip by default."`
}

func (*evidenceExportCmd) Help() string {
	return `
The archive is written only if its SHA-256 is the one that the server stored, every
file in it has the hash in the manifest, and every audit entry the hash of its own
text; otherwise the command exits 1. Keep the SHA-256 elsewhere: with it "gatehouse
evidence show --sha256" can later show whether the archive is unchanged.

Piped, the columns are: run, file, bytes, SHA-256, files.

Examples:

    gatehouse evidence export run_01993b7e
    gatehouse evidence export run_01993b7e -o evidence.zip --json
`
}

// exportedBundle is what export prints with --json.
type exportedBundle struct {
	*gatehouse.Bundle
	File  string `json:"file"`
	Bytes int    `json:"bytes"`
}

// fetch fetches a bundle, verifies it and writes it to the file.
func (c *evidenceExportCmd) fetch(g *globals) (*exportedBundle, *bundleReport, error) {
	api, err := g.connect()
	if err != nil {
		return nil, nil, err
	}
	b, err := api.RunBundle(g.Ctx, c.ID)
	if err != nil {
		return nil, nil, err
	}
	report := verifyBundle(b.Archive)
	report.expect(b.SHA256, c.ID)
	if err := report.err(); err != nil {
		return nil, nil, err
	}
	out := &exportedBundle{Bundle: b, File: c.Output, Bytes: len(b.Archive)}
	if out.File == "" {
		out.File = filepath.Base(c.ID) + ".zip"
	}
	return out, report, createFile(out.File, func(w io.Writer) error {
		_, err := w.Write(b.Archive)
		return err
	})
}

// Run fetches, verifies and writes.
func (c *evidenceExportCmd) Run(g *globals) error {
	out, report, err := c.fetch(g)
	return printOutcome(g, out, err, func() error {
		t := &term.Table{Header: []string{"RUN", "FILE", "BYTES", "SHA256", "FILES"}}
		t.Add(out.RunID, out.File, strconv.Itoa(out.Bytes), out.SHA256, strconv.Itoa(len(report.Manifest.Files)))
		if err := g.Print(t, ""); err != nil {
			return err
		}
		g.Say("Verified: the archive's SHA-256, %s, %s of the audit log.",
			term.Count(len(report.Manifest.Files), "file"), term.EntryCount(int64(report.Entries)))
		return nil
	})
}

// evidenceShowCmd verifies a bundle.
type evidenceShowCmd struct {
	Source string `arg:"" name:"file" help:"A bundle's file, or a finished run of the server."`
	SHA256 string `name:"sha256" placeholder:"HEX" help:"The archive's expected SHA-256, kept elsewhere."`
}

func (*evidenceShowCmd) Help() string {
	return `
Computes every hash again from the bytes: of each file against the manifest, and
of each audit entry against its own text. Checks that the audit entries have the
digest of each action, and the end of the run. A file is verified without a server.
An archive cannot prove that its entries are those of the log: compare audit.json
with a log that "gatehouse audit verify" has verified. Exits 1 when a check fails.

Examples:

    gatehouse evidence show evidence.zip
    gatehouse evidence show evidence.zip --sha256 4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a
    gatehouse evidence show run_01993b7e --json
`
}

// Run verifies the bundle and prints its content.
func (c *evidenceShowCmd) Run(g *globals) error {
	archive, stored, run, err := c.read(g)
	if err != nil {
		return err
	}
	report := verifyBundle(archive)
	report.expect(stored, run)
	report.expect(c.SHA256, "")
	err = printOutcome(g, report, nil, func() error {
		printBundle(sheet.New(&g.IO), report)
		return nil
	})
	if err != nil {
		return err
	}
	if err := report.err(); err != nil {
		return err
	}
	g.Say("Verified: %s, %s of the audit log.", term.Count(len(report.Manifest.Files), "file"),
		term.EntryCount(int64(report.Entries)))
	return nil
}

// maxBundle limits the size of an archive that is read from a file, in bytes.
const maxBundle = 256 << 20

// maxUnpacked limits the sum of the sizes of an archive's files, in bytes. Each file has at most maxBundle.
const maxUnpacked = 4 * maxBundle

// read reads the file, or fetches the run's archive with the SHA-256 that the server stored.
func (c *evidenceShowCmd) read(g *globals) (archive []byte, sha256, run string, err error) {
	if isFile(c.Source) {
		info, err := os.Stat(c.Source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, "", "", fmt.Errorf("there is no file %s", c.Source)
		case err != nil:
			return nil, "", "", err
		case !info.Mode().IsRegular():
			return nil, "", "", fmt.Errorf("%s is not a file", c.Source)
		case info.Size() > maxBundle:
			return nil, "", "", fmt.Errorf("%s is larger than %d MiB, the limit of this command", c.Source, maxBundle>>20)
		}
		archive, err = os.ReadFile(c.Source)
		return archive, "", "", err
	}
	api, err := g.connect()
	if err != nil {
		return nil, "", "", err
	}
	b, err := api.RunBundle(g.Ctx, c.Source)
	if err != nil {
		return nil, "", "", err
	}
	return b.Archive, b.SHA256, c.Source, nil
}
