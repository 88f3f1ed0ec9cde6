package wake

import "strings"

// MaxMessage bounds the size of one message of topics, in bytes. PostgreSQL
// accepts payloads shorter than 8000 bytes.
const MaxMessage = 7900

// Encode packs topics into messages of at most MaxMessage bytes: the origin,
// then one topic per line. The origin identifies the sender, which ignores its
// own messages. A topic that is empty, contains a line break or a NUL byte, or
// does not fit is left out: no caller uses such a topic.
func Encode(origin string, topics []string) []string {
	var messages []string
	var b strings.Builder
	b.WriteString(origin)
	for _, t := range topics {
		if t == "" || strings.ContainsAny(t, "\n\x00") || len(origin)+1+len(t) > MaxMessage {
			continue
		}
		if b.Len()+1+len(t) > MaxMessage {
			messages = append(messages, b.String())
			b.Reset()
			b.WriteString(origin)
		}
		b.WriteByte('\n')
		b.WriteString(t)
	}
	if b.Len() > len(origin) {
		messages = append(messages, b.String())
	}
	return messages
}

// Decode unpacks a message. Whatever the message contains, the result has at most
// MaxMessage/2 topics. A message that is too long yields none.
func Decode(message string) (origin string, topics []string) {
	if len(message) > MaxMessage {
		return "", nil
	}
	origin, rest, found := strings.Cut(message, "\n")
	if !found {
		return origin, nil
	}
	for t := range strings.SplitSeq(rest, "\n") {
		if t != "" {
			topics = append(topics, t)
		}
	}
	return origin, topics
}
