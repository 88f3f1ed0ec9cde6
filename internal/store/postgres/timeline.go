package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// serverTimeline is the position of a writable server in the history of its cluster: each
// promotion begins a timeline with a higher number. It is zero for a standby, and for a server
// that does not report it.
type serverTimeline struct {
	cluster  string
	timeline uint32
	server   string // its own address, or else the address it was reached at
}

// readServerTimeline runs outside any transaction, because it may fail.
// pg_control_checkpoint() would show the new timeline only after a checkpoint.
const readServerTimeline = `SELECT (SELECT system_identifier FROM pg_control_system()),
CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '')`

// errOldPrimary says that another server has taken the place of this one.
var errOldPrimary = errors.New("another server has replaced this primary: fence it, and let it return only as a " +
	"standby; if it is meant to be the primary again, stop all replicas of Gatehouse, then start them")

// timelines holds the highest timeline that this process has seen of each cluster. A server on
// a lower one is refused: it lacks the decisions made since, and decisions made on it would
// exist nowhere else.
type timelines struct {
	log *slog.Logger

	mu      sync.Mutex
	highest map[string]uint32
	logged  map[serverTimeline]bool
}

func newTimelines(log *slog.Logger) *timelines {
	return &timelines{log: log, highest: make(map[string]uint32), logged: make(map[serverTimeline]bool)}
}

// check records a server's timeline, and fails if the server must not be used.
func (m *timelines) check(at serverTimeline) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.highest[at.cluster]
	if at.timeline >= seen {
		m.highest[at.cluster] = at.timeline
		return nil
	}
	err := fmt.Errorf(
		"the server %s is on timeline %d, but this process has worked with timeline %d of the same cluster (%s): %w",
		at.server, at.timeline, seen, at.cluster, errOldPrimary)
	if !m.logged[at] {
		m.logged[at] = true
		m.log.Warn("postgres: a server is refused", "error", err)
	}
	return err
}

// guard is for ValidateConnect: on a failure there, the driver tries another host of the address. The
// check runs before the function next: if next only reports that it does not prefer the server, the driver
// may still use the server.
func (m *timelines) guard(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, c *pgconn.PgConn) error {
		at, err := m.lookUp(ctx, c)
		if err == nil {
			err = m.check(at)
		}
		if err != nil {
			return err
		}
		c.CustomData()[customTimeline] = at
		if next == nil {
			return nil
		}
		return next(ctx, c)
	}
}

// lookUp reads a server's timeline. A server that does not report it, or not to this role, gets
// the zero value, which check always accepts.
func (m *timelines) lookUp(ctx context.Context, c *pgconn.PgConn) (serverTimeline, error) {
	results, err := c.Exec(ctx, readServerTimeline).ReadAll()
	var pg *pgconn.PgError
	switch {
	case err == nil:
	case !errors.As(err, &pg), severe(pg), strings.HasPrefix(pg.Code, "53"), pg.Code == "57014": // another attempt may succeed
		return serverTimeline{}, err
	default:
		m.log.DebugContext(ctx,
			"postgres: the server does not report its timeline, so Gatehouse would not notice an old primary", "error", err)
		return serverTimeline{}, nil
	}
	row := results[0].Rows[0]
	at := serverTimeline{cluster: string(row[0]), server: string(row[2])}
	if len(row[1]) == 0 {
		return serverTimeline{}, nil // a standby
	}
	n, err := strconv.ParseUint(string(row[1]), 16, 32)
	if err != nil {
		m.log.DebugContext(ctx,
			"postgres: the server's timeline cannot be read, so Gatehouse would not notice an old primary", "error", err)
		return serverTimeline{}, nil
	}
	at.timeline = uint32(n)
	if at.server == "" {
		at.server = c.Conn().RemoteAddr().String()
	}
	return at, nil
}

// customTimeline is the key under which a connection stores the timeline that its server had when the connection was
// made. Only the promotion of a standby changes the timeline of a server. A Store that writes has no connections to
// standbys, because registerSession writes on each new connection. Only a ReadOnlyStore can have them.
const customTimeline = "gatehouse.timeline"

func timelineOf(c *pgx.Conn) serverTimeline {
	at, _ := c.PgConn().CustomData()[customTimeline].(serverTimeline)
	return at
}

// usable is for PrepareConn. It returns false for a connection to a known old primary, and the pool then closes the
// connection.
func (m *timelines) usable(_ context.Context, c *pgx.Conn) (bool, error) {
	return m.check(timelineOf(c)) == nil, nil
}
