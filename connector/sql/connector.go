package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Connector carries out operations on the tables of one database.
type Connector struct {
	cfg         Config
	fingerprint string
	db          *sql.DB // writes
	reader      *sql.DB // reads; the same pool as db, except for SQLite
	dialect     dialect
	file        string // the path of an SQLite file, for error texts; "" for a server

	mu     sync.Mutex
	tables map[string]*table // by entity type

	recordReady atomic.Bool // the idempotency table was seen
}

var (
	_ connector.Connector   = (*Connector)(nil)
	_ connector.Checker     = (*Connector)(nil)
	_ connector.ReadBacker  = (*Connector)(nil)
	_ connector.Validator   = (*Connector)(nil)
	_ connector.Describer   = (*Connector)(nil)
	_ connector.Floorer     = (*Connector)(nil)
	_ connector.Prober      = (*Connector)(nil)
	_ connector.StateReader = (*Connector)(nil)
)

// New makes a connector from a configuration. It opens no connection, because a target that is down
// must not keep Gatehouse from starting. The caller must close the connector.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.IdempotencyTable == "" {
		cfg.IdempotencyTable = "gatehouse_applied"
	}
	var password string
	if cfg.PasswordSecret != "" {
		var err error
		if password, err = secrets(cfg.PasswordSecret); err != nil {
			return nil, fmt.Errorf("password_secret: %w", err)
		}
	}
	c := &Connector{cfg: cfg, tables: make(map[string]*table)}
	var address string
	var err error
	scheme, rest, _ := strings.Cut(cfg.DSN, ":")
	switch scheme {
	case "sqlite":
		if cfg.PasswordSecret != "" {
			return nil, errors.New("password_secret: an SQLite file has no password")
		}
		c.dialect = sqliteDialect{}
		address, c.db, c.reader, err = openSQLite(rest)
		c.file = strings.TrimPrefix(address, "sqlite:")
	case "postgres", "postgresql":
		c.dialect = postgresDialect{}
		address, c.db, err = openPostgres(cfg.DSN, password)
		c.reader = c.db
	case "mysql", "mariadb":
		c.dialect = mysqlDialect{}
		address, c.db, err = openMySQL(cfg.DSN, password)
		c.reader = c.db
	case "sqlserver":
		c.dialect = sqlserverDialect{}
		address, c.db, err = openSQLServer(cfg.DSN, password)
		c.reader = c.db
	default:
		return nil, errors.New("dsn: must begin with sqlite:, postgres://, mysql:// or sqlserver://")
	}
	if err != nil {
		return nil, fmt.Errorf("dsn: %w", err)
	}
	for name, e := range cfg.Entities {
		if e.Preview != nil && *e.Preview && c.dialect.previewSession() == nil {
			return nil, errors.Join(fmt.Errorf("entities.%s.preview: %s does not support previews", name, scheme),
				c.Close())
		}
	}
	c.fingerprint = fingerprint(address, cfg)
	return c, nil
}

// fingerprint hashes the definition, with the address but without its password. The levels,
// previews and amounts are left out, because they affect approval and not the statement: an action
// keeps the level of its proposal.
func fingerprint(address string, cfg Config) string {
	entities := make(map[string]Entity, len(cfg.Entities))
	for name, e := range cfg.Entities {
		e.Operations, e.Fields, e.Preview, e.Amounts = nil, nil, nil, nil
		entities[name] = e
	}
	return connector.Fingerprint(struct {
		Type, Address, PasswordSecret, IdempotencyTable string
		Entities                                        map[string]Entity
	}{"sql", address, cfg.PasswordSecret, cfg.IdempotencyTable, entities})
}

// Close closes all connections.
func (c *Connector) Close() error {
	err := c.db.Close()
	if c.reader != c.db {
		err = errors.Join(err, c.reader.Close())
	}
	return err
}

// Probe implements [connector.Prober]: the target can be reached, and every configured table exists with its
// columns. The idempotency table need not exist yet.
func (c *Connector) Probe(ctx context.Context) error {
	for entity := range c.cfg.Entities {
		if _, err := c.table(ctx, entity, true); err != nil {
			if c.file != "" && c.dialect.classify(err).code == "unreachable" {
				return fmt.Errorf("the file %s: %w", c.file, err)
			}
			return fmt.Errorf("entity %s: %w", entity, err)
		}
	}
	if _, err := c.dialect.columns(ctx, c.reader, c.cfg.IdempotencyTable); err != nil {
		return fmt.Errorf("idempotency_table: %w", err)
	}
	return nil
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// splitOperation removes the prefix "bulk_" from the name of an operation. many is true for a bulk
// operation and for update_where; ok is false for an unknown name.
func splitOperation(name string) (op string, many, ok bool) {
	if name == opUpsert || name == opUpdateWhere {
		return name, name == opUpdateWhere, true
	}
	op, many = strings.CutPrefix(name, bulkPrefix)
	switch op {
	case opInsert, opUpdate, opDelete:
		return op, many, true
	}
	return "", false, false
}

// Declared implements [connector.Describer].
func (c *Connector) Declared(call connector.Call) gatehouse.Declared {
	entity := c.cfg.Entities[call.Target.EntityType]
	out := gatehouse.Declared{Amounts: entity.Amounts}
	op, many, _ := splitOperation(call.Operation)
	if op == opDelete && (many || len(call.Target.EntityRefs) > 0) && entity.KeyFrom == keyFromDatabase {
		out.Undo = connector.NoUndo("the database makes the keys: rows that were deleted together cannot get their keys back")
	}
	if len(call.Target.EntityRefs) > maxBulkReversal {
		out.Undo = connector.NoUndo("the values before are kept for at most 1,000 rows")
	}
	return out
}

// Operation accepts insert, update, delete, bulk_insert, bulk_update, bulk_delete, upsert and
// update_where. All are of class A, because the idempotency record commits together with the change.
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	if _, _, ok := splitOperation(name); !ok {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: connector.ClassA, Reverses: true, KeyRetention: c.cfg.KeyRetention.D()},
		true
}
