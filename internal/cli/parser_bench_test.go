package cli

import "testing"

// BenchmarkParser compares the parser of a command line that begins with its command, as most do, with the parser of
// all commands.
func BenchmarkParser(b *testing.B) {
	for name, args := range map[string][]string{"all": nil, "one": {"list"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := newParser(&cli{}, args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
