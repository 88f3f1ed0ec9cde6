package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestErrorWithoutCode: an error that a proxy sends without a SQLSTATE is an error like any other.
func TestErrorWithoutCode(t *testing.T) {
	t.Parallel()
	if err := explain(&pgconn.PgError{Severity: "ERROR", Message: "no server"}); kindOf(err) != other {
		t.Errorf("%v is of kind %v", err, kindOf(err))
	}
}
