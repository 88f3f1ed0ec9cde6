package email

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"net/textproto"
	"regexp"
	"strings"
)

const (
	// maxParts and maxStatus bound how much of a report is read: its parts, and the bytes of its status.
	maxParts  = 10
	maxStatus = 64 << 10
	// maxRecipients bounds the recipients that are read from a report or from a header.
	maxRecipients = 20
)

// report is the content of a delivery status notification (RFC 3464).
type report struct {
	// action is failed or delayed, "" for anything else.
	action string
	// status is the enhanced status code, such as 5.1.1, and diagnostic the server's text.
	status, diagnostic string
}

// returnedMail parses a mail that came back. A mail server that delivers to a program may put a line
// of the mbox format before the header.
func returnedMail(raw []byte) (*netmail.Message, error) {
	if bytes.HasPrefix(raw, []byte("From ")) {
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	return netmail.ReadMessage(bytes.NewReader(raw))
}

// recipients are the addresses to which a mail was sent, according to its header.
func recipients(h netmail.Header) (list []string) {
	for _, name := range []string{"X-Original-To", "Delivered-To", "To"} {
		for _, value := range h[textproto.CanonicalMIMEHeaderKey(name)] {
			addresses, _ := netmail.ParseAddressList(value)
			for _, a := range addresses {
				if len(list) == maxRecipients {
					return list
				}
				list = append(list, a.Address)
			}
		}
	}
	return list
}

// readReport finds the report in a mail. A mail without a report, or one truncated before the report's end,
// has an empty one.
func readReport(m *netmail.Message) report {
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/report" || params["boundary"] == "" {
		return report{}
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for range maxParts {
		part, err := parts.NextPart()
		if err != nil {
			return report{}
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil || kind != "message/delivery-status" && kind != "message/global-delivery-status" {
			continue
		}
		status, err := io.ReadAll(io.LimitReader(part, maxStatus))
		if err != nil {
			return report{}
		}
		return readStatus(status)
	}
	return report{}
}

// statusCode is an enhanced status code (RFC 3463) of a failure.
var statusCode = regexp.MustCompile(`^[45]\.\d{1,3}\.\d{1,3}\b`)

// readStatus reads the groups of fields: the first is about the mail, each other about a recipient.
// A failure takes precedence over a delay.
func readStatus(raw []byte) (r report) {
	// ReadMIMEHeader refuses control characters, which the diagnostic of a foreign server may have.
	raw = bytes.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f {
			return '?'
		}
		return c
	}, raw)
	groups := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw)))
	for range maxRecipients {
		fields, err := groups.ReadMIMEHeader()
		if err != nil && !errors.Is(err, io.EOF) {
			return r
		}
		action := strings.ToLower(strings.TrimSpace(fields.Get("Action")))
		code := statusCode.FindString(strings.TrimSpace(fields.Get("Status")))
		if code != "" && (action == "failed" || action == "delayed" && r.action == "") {
			_, diagnostic, _ := strings.Cut(fields.Get("Diagnostic-Code"), ";")
			r = report{action, code, strings.TrimSpace(diagnostic)}
		}
		if err != nil || r.action == "failed" {
			return r
		}
	}
	return r
}
