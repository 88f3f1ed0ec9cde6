package slack

import (
	"regexp"
	"slices"
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

// plainText normalizes a text, so that a text and Slack's stored form of the text become equal. A link
// without a label, or with its address as the label, becomes the address. A link whose label is the
// address without the scheme becomes this label. A link with another label becomes the address and the
// label. Entities are decoded, and emoji are removed.
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
		if isEmoji(r) {
			return -1
		}
		return r
	}, s))
}

// sameText reports whether a text and the form in which Slack has stored it are the same.
func sameText(a, b string) bool { return plainText(a) == plainText(b) }

// unchanged reports whether a message still has the text of a pre-image. A pre-image usually names emoji as Slack
// stores them, so names such as :tada: are compared too. If the pre-image has an emoji character, the connector does
// not know Slack's name for it, and compares the texts without emoji.
func unchanged(before, now string) bool {
	if strings.ContainsFunc(before, isEmoji) {
		return sameText(before, now)
	}
	return sameText(before, now) &&
		slices.Equal(emojiName.FindAllString(before, -1), emojiName.FindAllString(now, -1))
}

func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r) && r > 0xff || r == 0x200d || r == 0xfe0f
}
