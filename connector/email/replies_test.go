package email_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/email"
)

// huge is more than the buffers between client and server hold, in bytes.
const huge = 32 << 20

// scripted starts a mail server that sends the given reply to a command and then closes the connection; to
// other commands it sends the usual replies. "BANNER" is the greeting, "." the end of a message. mails counts
// the messages that the server received whole.
func scripted(t *testing.T, replies map[string]string) (addr string, mails *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	connectortest.Must(t, err)
	mails = new(atomic.Int64)
	usual := map[string]string{"BANNER": "220 ready\r\n", "DATA": "354 go on\r\n", "QUIT": "221 bye\r\n"}
	var served sync.WaitGroup
	t.Cleanup(func() { listener.Close(); served.Wait() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		lines, inMessage, command := bufio.NewScanner(conn), false, "BANNER"
		for {
			if !inMessage || command == "." {
				reply, broken := replies[command]
				switch {
				case broken:
				case usual[command] != "":
					reply = usual[command]
				default:
					reply = "250 fine\r\n"
				}
				n, err := fmt.Fprint(conn, reply)
				if n > huge/2 {
					t.Errorf("the client reads %d bytes of a reply", n)
				}
				if err != nil || broken {
					return
				}
				inMessage = command == "DATA"
			}
			if !lines.Scan() {
				return
			}
			command = strings.ToUpper(lines.Text())
			if !inMessage {
				command, _, _ = strings.Cut(command, " ")
			}
			if inMessage && command == "." {
				mails.Add(1)
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { serve(conn) })
		}
	}()
	return listener.Addr().String(), mails
}

// TestBrokenReplies: whatever the server replies to whichever command, the failure claims no more than is
// proven.
func TestBrokenReplies(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"not now": "421 too busy\r\n", "full": "452 no space\r\n", "never": "554 no\r\n",
		"no code": "fine, thanks\r\n", "no such code": "999 fine\r\n", "another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"cut off": "25", "unfinished": "250-fine\r\n", "hung up": "", "huge": strings.Repeat("2", huge) + "\r\n",
		"hostile": "250 \x00\xff\u202e<script>\r\n250 fine\r\n354 go on\r\n250 queued\r\n",
	} {
		for _, command := range []string{"BANNER", "EHLO", "MAIL", "RCPT", "DATA", ".", "QUIT"} {
			t.Run(name+" to "+command, func(t *testing.T) {
				t.Parallel()
				replies := map[string]string{command: reply}
				if command == "EHLO" {
					replies["HELO"] = reply
				}
				addr, mails := scripted(t, replies)
				c := newConnector(t, email.Config{
					SMTP: addr, TLS: "none", AllowPrivate: true, From: "gate@acme.example", Recipients: []string{"*"},
				})
				_, err := c.Execute(t.Context(), call(hello))
				var failure *connector.Error
				sent := mails.Load() > 0
				switch {
				case name == "hostile": // the reply contains a whole dialogue, so any outcome is right
				case err == nil && !sent:
					t.Error("Execute succeeded, but the server received no mail")
				case err == nil:
					if command != "QUIT" {
						t.Errorf("Execute succeeded, although the reply to %s was broken", command)
					}
				case !errors.As(err, &failure):
					t.Errorf("a %T: %v", err, err)
				case failure.Kind == connector.Ambiguous && !sent && command != ".":
					t.Errorf("%v, though no message was sent", failure)
				case sent && failure.Kind == connector.NotSent:
					t.Errorf("%v, though the server has the message", failure)
				case sent && failure.Kind != connector.Ambiguous && name != "not now" && name != "full" && name != "never":
					t.Errorf("%v, though no answer to the message can be read", failure)
				case !sent && name == "not now" && (failure.Kind != connector.NotSent || failure.Code != "smtp_421"):
					t.Errorf("%+v", failure)
				}
			})
		}
	}
}
