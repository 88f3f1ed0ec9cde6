package proof

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// disk is a folder on a file system that can be filled.
type disk struct {
	dir string
	// fill uses up the space, and free releases it; s is the server that
	// writes.
	fill, free func(t testing.TB, s *server)
	// real says that the file system is full (ENOSPC), rather than a process
	// limited in file size (EFBIG).
	real bool
}

// TestFullDisk fills the disk of a working gate. Callers are told that the gate
// cannot work now, and nothing of their request is stored. The gate reports
// that it is not ready, continues to read, and works again when there is space.
// A server that is killed meanwhile loses nothing, and reports why it does not
// start.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	oneLeg(t, onSQLite, "full disk", fullDisk)
}

func fullDisk(t *testing.T, l *leg) {
	d := newDisk(t)
	e := onSQLite
	e.folder = func(testing.TB) string { return d.dir }
	w := newWorldOn(t, e, 20_000, "")
	server := w.servers[0]
	load := newLoad(t, w, l.rng, 4)
	load.full.Store(true) // until the store notices, a call may get an error
	goesOn := func() {
		t.Helper()
		load.fresh.Store(0)
		load.acks(t, crashAcks)
	}
	trouble := func() int {
		return w.log.said("sqlite: the outcome of a failed COMMIT is now known") + w.log.said(
			"sqlite: a batch was rolled back as a whole; its transactions are run one by one")
	}
	for range scale(3, 20) { // for a moment
		goesOn()
		before := trouble()
		d.fill(t, server)
		load.stands(t)
		d.free(t, server)
		goesOn()
		if trouble() == before {
			t.Error("the disk was full, but the store reported no error")
		}
		l.add("times that the disk was full", 1)
	}
	refused := 0
	for range scale(1, 10) {
		goesOn()
		d.fill(t, server)
		load.stands(t)
		until(t, "word of the full disk",
			func() bool { return w.admin.get("/readyz").status == http.StatusServiceUnavailable })
		for range 20 {
			res := must(t, w.agent.post("/proposed-actions", contact("no-room", "update", "new")), 503, "busy", "retryable")
			if res.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", res)
			}
			refused++
		}
		if res := w.admin.get("/healthz"); res.status != http.StatusOK {
			t.Errorf("a process that answers reports that it does not: %s", res)
		}
		if res := w.admin.get("/proposed-actions?limit=5"); res.status != http.StatusOK {
			t.Errorf("stored actions cannot be read: %s", res)
		}
		if log := w.log.String(); d.real && !strings.Contains(log, "disk is full") {
			t.Errorf("the log does not say why:\n%s", log)
		}
		d.free(t, server)
		until(t, "server that is ready again", func() bool { return w.admin.get("/readyz").status == http.StatusOK })
		l.add("times that the disk was full", 1)
	}
	for range scale(1, 10) {
		goesOn()
		d.fill(t, server)
		load.stands(t)
		server.kill()
		if d.real { // a new process has no size limit
			if err := server.launch(); err == nil {
				t.Log("the server has started on a full disk")
				server.kill()
			} else if log := w.log.String(); !strings.Contains(log, "disk is full") {
				t.Errorf("the log does not say why the server does not start:\n%s", log)
			}
			d.free(t, server)
		}
		server.start()
		l.add("kills on a full disk", 1)
	}
	goesOn()
	load.stop()
	w.check(t, load.journal)
	var page gatehouse.Page[*gatehouse.Action]
	w.admin.get("/proposed-actions?q=no-room").decode(t, &page)
	if len(page.Items) > 0 {
		t.Errorf("%d of the %d proposals are stored that were refused", len(page.Items), refused)
	}
}
