package term

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestDecodeProposal: DecodeProposal refuses what the server refuses, and names the place.
func TestDecodeProposal(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`{"action_type":"note","target":{"entity_ref":"A"},"proposed_change":{"N":1}}`: "",
		`{"Action_Type":"note"}`:                         "/Action_Type is an unknown field",
		`{"rationale":"a","Rationale":"b"}`:              "/Rationale is an unknown field",
		`{"rationale":"a","rationale":"b"}`:              "not valid JSON",
		`{"target":{"Entity_Ref":"A"}}`:                  "/target/Entity_Ref is an unknown field",
		`{"action_type":1}`:                              "/action_type has the wrong type",
		`{"expires_in":"soon"}`:                          "/expires_in ",
		`[]`:                                             "has the wrong type",
		`{"action_type":"note"} {"action_type":"other"}`: "not valid JSON",
	} {
		p, err := DecodeProposal([]byte(source))
		if want == "" {
			if err != nil || p.ActionType != "note" || p.Target.EntityRef != "A" || p.ProposedChange != `{"N":1}` {
				t.Errorf("%s: %+v, %v", source, p, err)
			}
			continue
		}
		if gatehouse.CodeOf(err) != gatehouse.CodeMalformed || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// TestPassing: busy servers and lost connections pass, whether the connection ended before an answer or within
// one. A canceled call and any other error do not.
func TestPassing(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{gatehouse.E(gatehouse.CodeBusy, "busy"), true},
		{&url.Error{Op: "Get", URL: "x", Err: syscall.ECONNREFUSED}, true},
		{fmt.Errorf("client: %w", io.ErrUnexpectedEOF), true},
		{fmt.Errorf("client: %w", reset), true},
		{&net.OpError{Op: "read", Net: "tcp", Err: context.Canceled}, false},
		{&url.Error{Op: "Get", URL: "x", Err: context.Canceled}, false},
		{&url.Error{Op: "Get", URL: "x", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, false},
		{gatehouse.E(gatehouse.CodeNotFound, "no action"), false},
		{errors.New("client: cannot decode the answer"), false},
	} {
		if got := Passing(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
