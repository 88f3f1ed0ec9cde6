package sqlconn

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// Config defines a connector of type sql.
type Config struct {
	// Type is "sql" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// DSN is the database: sqlite:PATH, postgres://…, mysql://… or sqlserver://….
	DSN string `yaml:"dsn" form:"first"`
	// PasswordSecret is the secret with the password, which replaces a password in the DSN.
	PasswordSecret string `yaml:"password_secret" form:"first"`
	// Entities maps a target's entity_type to its table.
	Entities map[string]Entity `yaml:"entities" form:"first"`
	// IdempotencyTable is the table for applied changes; gatehouse_applied by default.
	IdempotencyTable string `yaml:"idempotency_table"`
	// KeyRetention is how long the rows of the idempotency table are kept; forever by default.
	KeyRetention gatehouse.Duration `yaml:"key_retention"`
	// Operations declares individual operations.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level, 3 to 5 for update_where. An undeclared insert or update has 3, a delete 4, an
	// update_where or a bulk operation 5. An upsert has that of its insert or update, and at least 3.
	Floor gatehouse.RiskLevel `yaml:"floor"`
	// L4Above is for update_where: a change with a larger max_rows has at least level 4; 0 by default.
	L4Above int `yaml:"l4_above"`
}

// Entity is one table.
type Entity struct {
	// Table is the table's name, or schema.name.
	Table string `yaml:"table" form:"first"`
	// Key is the unique column by which entity_ref names a row.
	Key string `yaml:"key" form:"first"`
	// KeyFrom is "database" if the database makes the key of an inserted row.
	KeyFrom string `yaml:"key_from" json:",omitempty"`
	// Version is an integer column that each update increments, or SQL Server's rowversion.
	// Optional.
	Version string `yaml:"version" form:"first"`
	// Columns are the columns that proposals can name and receipts show, in addition to Key and Version; all
	// columns by default. Receipts also show ExternalID.
	Columns []string `yaml:"columns" form:"first"`
	// ExternalID is the column by which receipts name the row; Key by default.
	ExternalID string `yaml:"external_id"`
	// Operations overrides the connector's declarations for this entity.
	Operations map[string]Operation `yaml:"operations"`
	// Fields maps columns to levels. They can lower the floor of an update of one row, but of
	// no other operation.
	Fields connector.FieldLevels `yaml:"fields" form:"first"`
	// Amounts are the columns that hold money. By default, they are recognized by their names.
	Amounts []gatehouse.AmountField `yaml:"amounts" json:",omitempty"`
	// Preview tries a pending change in a transaction that is rolled back; true by default for SQLite and
	// PostgreSQL, false for MariaDB and MySQL. SQL Server has no previews.
	Preview *bool `yaml:"preview" json:",omitempty"`
}

const (
	opInsert = "insert"
	opUpdate = "update"
	opDelete = "delete"

	bulkPrefix = "bulk_"

	opUpsert      = "upsert"
	opUpdateWhere = "update_where"
)

// keyFromDatabase is the value of Entity.KeyFrom.
const keyFromDatabase = "database"

// maxBulkReversal limits the rows of a bulk reversal: a change of more rows has no reversal.
const maxBulkReversal = 1000

var identifierForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,62}$`)

// validate checks everything that needs no connection.
func (c *Config) validate() error {
	if c.Type != "" && c.Type != "sql" {
		return fmt.Errorf("type: is %s, not sql", gatehouse.Quote(c.Type))
	}
	if len(c.Entities) == 0 {
		return fmt.Errorf("entities: at least one is needed")
	}
	if c.IdempotencyTable != "" && !validTable(c.IdempotencyTable) {
		return fmt.Errorf("idempotency_table: %s is not a table's name", gatehouse.Quote(c.IdempotencyTable))
	}
	if err := checkOperations("operations", c.Operations); err != nil {
		return err
	}
	folded := make(map[string]string, len(c.Entities))
	for _, name := range slices.Sorted(maps.Keys(c.Entities)) {
		if other, ok := folded[spelling.Fold(name)]; ok {
			return fmt.Errorf("entities.%s: differs from %s only in its spelling", name, gatehouse.Quote(other))
		}
		folded[spelling.Fold(name)] = name
		if err := c.Entities[name].validate("entities." + name); err != nil {
			return err
		}
		if err := c.checkBulk(name); err != nil {
			return err
		}
	}
	return nil
}

func (e Entity) validate(at string) error {
	if !validTable(e.Table) {
		return fmt.Errorf("%s.table: %s is not a table's name", at, gatehouse.Quote(e.Table))
	}
	if !identifierForm.MatchString(e.Key) {
		return fmt.Errorf("%s.key: %s is not a column's name", at, gatehouse.Quote(e.Key))
	}
	if e.KeyFrom != "" && e.KeyFrom != keyFromDatabase {
		return fmt.Errorf("%s.key_from: must be database, or be left out", at)
	}
	for _, o := range []struct{ name, value string }{{"version", e.Version}, {"external_id", e.ExternalID}} {
		if o.value != "" && !identifierForm.MatchString(o.value) {
			return fmt.Errorf("%s.%s: %s is not a column's name", at, o.name, gatehouse.Quote(o.value))
		}
	}
	if e.Version == e.Key {
		return fmt.Errorf("%s.version: is the key", at)
	}
	for i, col := range e.Columns {
		if !identifierForm.MatchString(col) {
			return fmt.Errorf("%s.columns[%d]: %s is not a column's name", at, i, gatehouse.Quote(col))
		}
	}
	if err := checkOperations(at+".operations", e.Operations); err != nil {
		return err
	}
	if err := gatehouse.CheckAmountFields(e.Amounts); err != nil {
		return fmt.Errorf("%s.amounts: %w", at, err)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		if !identifierForm.MatchString(name) {
			return fmt.Errorf("%s.fields: %s is not a column's name", at, gatehouse.Quote(name))
		}
		if len(e.Columns) > 0 && name != e.Key && name != e.Version && !slices.Contains(e.Columns, name) {
			return fmt.Errorf("%s.fields.%s: is not among columns", at, name)
		}
	}
	return e.Fields.Validate(at + ".fields")
}

// validTable accepts "name" and "schema.name".
func validTable(s string) bool {
	schema, name, two := strings.Cut(s, ".")
	return identifierForm.MatchString(schema) && (!two || identifierForm.MatchString(name))
}
