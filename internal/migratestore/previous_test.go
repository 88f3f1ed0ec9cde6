package migratestore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// keepRelease writes the stores of this release to testdata. Those of a release never change afterwards.
var keepRelease = flag.String("keep-release", "", "write the stores of this release to testdata, and do not test them")

// releases are the releases whose stores this program must open.
var releases = []string{"0.1.0"}

// release is what a test needs to know of the stores in testdata: the administrator's key, and the time.
type release struct {
	Key string    `json:"key"`
	At  time.Time `json:"at"`
}

// TestPreviousReleases opens stores of earlier releases, with rows in every table of filled. It migrates them, and
// then decides, dispatches, numbers the log and verifies it.
func TestPreviousReleases(t *testing.T) {
	t.Parallel()
	if *keepRelease != "" {
		keep(t, *keepRelease)
		return
	}
	for _, name := range releases {
		var r release
		text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		must(t, err)
		must(t, json.Unmarshal(text, &r))
		before := func() world {
			clock := gatetest.NewClock()
			clock.Advance(r.At.Sub(clock.Now()))
			return world{r.Key, clock}
		}
		t.Run(name+"/sqlite", func(t *testing.T) {
			t.Parallel()
			w, path := before(), filepath.Join(t.TempDir(), "gatehouse.db")
			must(t, os.WriteFile(path, unpack(t, name+".db.gz"), 0o600))
			goOn(t, migratedfile.Open(t, path, w.Clock.Now), w)
		})
		t.Run(name+"/postgres", func(t *testing.T) {
			t.Parallel()
			w, url := before(), pgtest.Database(t)
			c, err := pgx.Connect(t.Context(), url)
			must(t, err)
			_, err = c.PgConn().Exec(t.Context(), string(unpack(t, name+".sql.gz"))).ReadAll()
			must(t, err)
			must(t, c.Close(context.Background()))
			goOn(t, open(t, url, w.Clock), w)
		})
	}
}

// keep writes the stores: the SQLite file, a copy of it as a dump of PostgreSQL, and a release.
func keep(t *testing.T, name string) {
	t.Helper()
	path, w := folder(t)
	url := pgtest.Database(t)
	_, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()})
	must(t, err)
	dump, err := exec.CommandContext(t.Context(), filepath.Join(pgtest.Programs(), "pg_dump"),
		"--inserts", "--no-owner", "--no-privileges", pgtest.Superuser(url)).Output()
	must(t, err)
	dump = regexp.MustCompile(`(?m)^\\.*\n`).ReplaceAll(dump, nil) // commands of psql
	file, err := os.ReadFile(path)
	must(t, err)
	pack(t, name+".db.gz", file)
	pack(t, name+".sql.gz", dump)
	text, err := json.Marshal(release{Key: w.Key, At: w.Clock.Now()})
	must(t, err)
	must(t, os.WriteFile(filepath.Join("testdata", name+".json"), append(text, '\n'), 0o600))
}

func pack(t *testing.T, name string, content []byte) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(t, err)
	_, err = z.Write(content)
	must(t, err)
	must(t, z.Close())
	must(t, os.MkdirAll("testdata", 0o750))
	must(t, os.WriteFile(filepath.Join("testdata", name), b.Bytes(), 0o600))
}

func unpack(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	content, err := io.ReadAll(z)
	must(t, err)
	return content
}
