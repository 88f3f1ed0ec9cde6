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

func (s *stmt) JSON() gatehouse.JSON { return gatehouse.JSON(s.raw()) }
