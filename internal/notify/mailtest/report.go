package mailtest

import "strings"

// Report is a delivery status notification (RFC 3464), as a mail server returns it to an envelope
// sender.
func Report(to, action, status, diagnostic string) string {
	return strings.Join([]string{
		"From: MAILER-DAEMON@mx.example (Mail Delivery System)",
		"To: " + to,
		"Subject: Undelivered Mail Returned to Sender",
		"MIME-Version: 1.0",
		`Content-Type: multipart/report; report-type=delivery-status; boundary="4A/mx.example"`,
		"",
		"--4A/mx.example",
		"Content-Type: text/plain; charset=us-ascii",
		"",
		"This is the mail system at host mx.example.",
		"",
		"--4A/mx.example",
		"Content-Type: message/delivery-status",
		"",
		"Reporting-MTA: dns; mx.example",
		"",
		"Final-Recipient: rfc822; someone@shop.example",
		"Action: " + action,
		"Status: " + status,
		"Diagnostic-Code: smtp; " + diagnostic,
		"",
		"--4A/mx.example",
		"Content-Type: text/rfc822-headers",
		"",
		"Subject: the mail that was sent",
		"",
		"--4A/mx.example--",
		"",
	}, "\r\n")
}
