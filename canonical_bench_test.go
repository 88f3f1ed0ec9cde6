package gatehouse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// BenchmarkCanonicalize measures typical proposals, and worst-case bodies of the
// largest size.
func BenchmarkCanonicalize(b *testing.B) {
	var ordered, reversed []string
	for i := range 40_000 {
		ordered = append(ordered, fmt.Sprintf(`"k%06d": "value %d"`, i, i))
		reversed = append(reversed, fmt.Sprintf(`"k%06d": "value %d"`, 999_999-i, i))
	}
	deep := strings.Repeat(`{"b":1,"a":`, gatehouse.MaxDepth) + `"` + strings.Repeat("x", 1<<20-1000) + `"` +
		strings.Repeat("}", gatehouse.MaxDepth)
	for _, c := range []struct{ name, text string }{
		{"small", `{"price": "12.50", "currency": "USD", "valid_from": "2026-01-01"}`},
		{"proposal", proposalText},
		{"ordered", "{" + strings.Join(ordered, ",") + "}"},
		{"reversed", "{" + strings.Join(reversed, ",") + "}"},
		{"deep", deep},
		{"text", `{"text":"` + strings.Repeat("the quick brown fox ", 50_000) + `"}`},
		{"unicode", `{"text":"` + strings.Repeat("šý漢字😀 ", 40_000) + `"}`},
		{"escaped", `{"text":"` + strings.Repeat(`\u0041\n\ud83d\ude00`, 40_000) + `"}`},
	} {
		src := []byte(c.text)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := gatehouse.Canonicalize(src); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/check", func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if err := gatehouse.CheckJSON(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
