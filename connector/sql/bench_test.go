package sqlconn_test

import (
	"fmt"
	"testing"
)

// BenchmarkUpdate measures one conditional update by the connector, from BEGIN to COMMIT.
func BenchmarkUpdate(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			_, c := newShop(b, engine)
			version := 7
			for b.Loop() {
				mustExecute(b, c, call("update", "SKU-1042", fmt.Sprint(version), "", fmt.Sprintf(`{"qty":%d}`, version)))
				version++
			}
		})
	}
}
