package card

import "testing"

// TestForeignNumbersAreMarked: digits and separators of other scripts, which can
// pass for another amount, are marked; ordinary numbers are not.
func TestForeignNumbersAreMarked(t *testing.T) {
	t.Parallel()
	for text, marked := range map[string]string{
		"1\u0660\u0660.00": "\u0660\u0660", "\uff11\uff12.50": "\uff11\uff12", "1\u066b50": "\u066b", "1\uff0e50": "\uff0e",
		"9\u202450": "\u2024", "12.50": "", "1,250.00 EUR": "", "2026-11-23T10:00:00Z": "", "price \U0001d7ce": "\U0001d7ce",
	} {
		got := ""
		for _, span := range Visible(text) {
			if span.Hostile() {
				got += span.Text
			}
		}
		if got != marked {
			t.Errorf("%+q: marked %+q, want %+q", text, got, marked)
		}
	}
}
