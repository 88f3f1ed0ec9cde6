package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

func encodeList[T ~string](list []T) string { return shared.EncodeList(list) }

func encodeJSON[T any](v *T) (string, error) { return shared.EncodeJSON(v) }

// orNull binds "" as NULL.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// listAt decodes a stored list from the next column and keeps the first error.
func listAt[T ~string](r *stmt, err *error) []T {
	list, e := shared.DecodeList[T](r.text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

func jsonAt[T any](r *stmt, err *error) *T {
	v, e := shared.DecodeJSON[T](r.text())
	if e != nil && *err == nil {
		*err = e
	}
	return v
}

func (s *stmt) json() gatehouse.JSON { return gatehouse.JSON(s.raw()) }
