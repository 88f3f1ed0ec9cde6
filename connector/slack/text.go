package slack

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// linkForm is a link as Slack stores it, with or without a label.
	linkForm = regexp.MustCompile(`<((?:https?://|mailto:|tel:)[^|>]*)(?:\|([^>]*))?>`)
	// emojiName is an emoji as Slack stores it.
	emojiName = regexp.MustCompile(`:[a-z0-9_+'-]+:(?::skin-tone-[2-6]:)?`)
	entities  = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// plainText reduces a text to the part that is the same before and after Slack stores it: links by
// their label, no entities, and no emoji.
func plainText(s string) string {
	s = linkForm.ReplaceAllStringFunc(s, func(link string) string {
		m := linkForm.FindStringSubmatch(link)
		address, shown := m[1], m[2]
		bare := address
		for _, scheme := range []string{"https://", "http://", "mailto:", "tel:"} {
			bare = strings.TrimPrefix(bare, scheme)
		}
		if shown == "" || shown == bare || shown == address {
			if shown == bare {
				return bare
			}
			return address
		}
		return address + "|" + shown
	})
	s = emojiName.ReplaceAllString(entities.Replace(s), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0xff || r == 0x200d || r == 0xfe0f {
			return -1
		}
		return r
	}, s))
}

func sameText(a, b string) bool { return plainText(a) == plainText(b) }
