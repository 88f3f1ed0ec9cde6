package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// branch is where a server that takes writes stands in the history of a cluster:
// each promotion begins a timeline, with a higher number. It is zero for a
// standby, and where the server does not tell.
type branch struct {
	cluster  string
	timeline uint32
	server   string // where it says to listen, else where it was reached
}

// readBranch is asked on its own, outside of any transaction: it may fail.
// pg_control_checkpoint() would tell the new timeline only after a checkpoint.
const readBranch = `SELECT (SELECT system_identifier FROM pg_control_system()),
CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END,
coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '')`

// errOldPrimary is that another server took the place of this one.
var errOldPrimary = errors.New("it is an old primary: fence it, and let it return as a standby only; " +
	"if it shall be used from now on, stop all replicas of Gatehouse and start them again")

// timelines has the highest timeline that this process has seen of each cluster.
// A server on a lower one is refused: what was decided since is not there, and
// what is decided there would be nowhere else.
type timelines struct {
	log *slog.Logger

	mu      sync.Mutex
	highest map[string]uint32
	told    map[branch]bool
}

func newTimelines(log *slog.Logger) *timelines {
	return &timelines{log: log, highest: make(map[string]uint32), told: make(map[branch]bool)}
}

// check takes down where a server is, and fails where it must not be used.
func (m *timelines) check(at branch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.highest[at.cluster]
	if at.timeline >= seen {
		m.highest[at.cluster] = at.timeline
		return nil
	}
	err := fmt.Errorf("the server %s is on timeline %d, but this process has worked with timeline %d of the same cluster (%s): %w",
		at.server, at.timeline, seen, at.cluster, errOldPrimary)
	if !m.told[at] {
		m.told[at] = true
		m.log.Warn("postgres: a server is refused", "error", err)
	}
	return err
}

// guard is for ValidateConnect, as a failure there has the driver try the next
// host of the address. It is asked before next, whose objection to a server need
// not be the last word.
func (m *timelines) guard(next pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, c *pgconn.PgConn) error {
		at, err := m.find(ctx, c)
		if err == nil {
			err = m.check(at)
		}
		if err != nil {
			return err
		}
		c.CustomData()[customBranch] = at
		if next == nil {
			return nil
		}
		return next(ctx, c)
	}
}

// find asks a server where it is. One that does not let the role ask, or does
// not know how, is used as if it were the only one.
func (m *timelines) find(ctx context.Context, c *pgconn.PgConn) (branch, error) {
	results, err := c.Exec(ctx, readBranch).ReadAll()
	var pg *pgconn.PgError
	switch {
	case err == nil:
	case !errors.As(err, &pg), severe(pg), pg.Code[:2] == "53", pg.Code == "57014": // another attempt may be told
		return branch{}, err
	default:
		m.log.DebugContext(ctx, "postgres: the server does not tell its timeline: an old primary would not be noticed", "error", err)
		return branch{}, nil
	}
	row := results[0].Rows[0]
	at := branch{cluster: string(row[0]), server: string(row[2])}
	if len(row[1]) == 0 {
		return branch{}, nil // a standby
	}
	n, err := strconv.ParseUint(string(row[1]), 16, 32)
	if err != nil {
		m.log.DebugContext(ctx, "postgres: the server's timeline cannot be read: an old primary would not be noticed", "error", err)
		return branch{}, nil
	}
	at.timeline = uint32(n)
	if at.server == "" {
		at.server = c.Conn().RemoteAddr().String()
	}
	return at, nil
}

// customBranch is where a connection keeps its server's branch. That does not
// change: only a standby is promoted, and a connection to one takes no writes.
const customBranch = "gatehouse.branch"

func branchOf(c *pgx.Conn) branch {
	at, _ := c.PgConn().CustomData()[customBranch].(branch)
	return at
}

// current is for PrepareConn: connections to a server end when another one is
// known to have taken its place.
func (m *timelines) current(_ context.Context, c *pgx.Conn) (bool, error) {
	return m.check(branchOf(c)) == nil, nil
}
