package wake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMessagesCarryTheirTopics(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		topic := rapid.OneOf(rapid.StringMatching(`(push|audit|act_[0-9a-f]{32})`), rapid.StringN(1, 40, 400))
		topics := rapid.SliceOfN(topic, 0, 600).Draw(t, "topics")
		var want, got []string
		for _, s := range topics {
			if !strings.ContainsAny(s, "\n\x00") {
				want = append(want, s)
			}
		}
		for _, m := range Encode("me", topics) {
			if len(m) > MaxMessage {
				t.Fatalf("a message of %d bytes", len(m))
			}
			origin, some := Decode(m)
			if origin != "me" || len(some) == 0 {
				t.Fatalf("origin %q, %d topics", origin, len(some))
			}
			got = append(got, some...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestTopicsThatDoNotFitAreLeftOut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxMessage-len("me")-1)
	got := Encode("me", []string{"", "a", "b\nc", long + "x", long, "d\x00"})
	want := []string{"me\na", "me\n" + long}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("me\naudit\npush")
	f.Add("\n\n\n")
	f.Add(strings.Repeat("a\n", MaxMessage))
	f.Fuzz(func(t *testing.T, message string) {
		origin, topics := Decode(message)
		if len(topics) > MaxMessage/2 {
			t.Fatalf("%d topics", len(topics))
		}
		for _, s := range topics {
			if s == "" || strings.Contains(s, "\n") {
				t.Fatalf("topic %q", s)
			}
		}
		if strings.Contains(origin, "\n") {
			t.Fatalf("origin %q", origin)
		}
	})
}
