package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"

	"github.com/gatehouse-dev/gatehouse"
)

// The flags of authenticator data (WebAuthn, 6.1).
const (
	userPresent  = 1 << 0
	userVerified = 1 << 2
	attested     = 1 << 6
)

// authenticator is a software authenticator with one ES256 key, in a browser
// at an origin.
type authenticator struct {
	t      *testing.T
	origin string
	flags  byte
	key    *ecdsa.PrivateKey
	id     []byte
	user   []byte
	count  uint32
	// counts is false for an authenticator without a counter, like synced passkeys.
	counts bool
	// challenge, when set, is signed instead of the requested one.
	challenge string
}

func newAuthenticator(t *testing.T) *authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return &authenticator{t: t, origin: publicURL, flags: userPresent | userVerified, key: key, id: id, counts: true}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// options are those of both ceremonies.
type options struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	UserVerification       string `json:"userVerification"`
	AuthenticatorSelection struct {
		ResidentKey      string `json:"residentKey"`
		UserVerification string `json:"userVerification"`
	} `json:"authenticatorSelection"`
	AllowCredentials []struct {
		ID string `json:"id"`
	} `json:"allowCredentials"`
	ExcludeCredentials []struct {
		ID string `json:"id"`
	} `json:"excludeCredentials"`
}

func (a *authenticator) read(c *gatehouse.Challenge) (o options) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(c.Options), &o); err != nil {
		a.t.Fatal(err)
	}
	if len(o.Challenge) < 43 {
		a.t.Errorf("challenge %q", o.Challenge)
	}
	return o
}

func (a *authenticator) clientData(kind string, o options) []byte {
	challenge := o.Challenge
	if a.challenge != "" {
		challenge = a.challenge
	}
	data, err := json.Marshal(
		map[string]any{"type": kind, "challenge": challenge, "origin": a.origin, "crossOrigin": false})
	if err != nil {
		a.t.Fatal(err)
	}
	return data
}

func (a *authenticator) data(rpID string, more byte) []byte {
	sum := sha256.Sum256([]byte(rpID))
	if a.counts {
		a.count++
	}
	return binary.BigEndian.AppendUint32(append(sum[:], a.flags|more), a.count)
}

// create answers a registration.
func (a *authenticator) create(c *gatehouse.Challenge) []byte {
	a.t.Helper()
	o := a.read(c)
	if o.AuthenticatorSelection.ResidentKey != "required" || o.AuthenticatorSelection.UserVerification != "required" {
		a.t.Errorf("asked for %+v", o.AuthenticatorSelection)
	}
	var err error
	if a.user, err = base64.RawURLEncoding.DecodeString(o.User.ID); err != nil {
		a.t.Fatal(err)
	}
	point, err := a.key.PublicKey.Bytes() // uncompressed: 4, x, y
	if err != nil {
		a.t.Fatal(err)
	}
	// COSE_Key: EC2, ES256, P-256.
	public, err := webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:65]})
	if err != nil {
		a.t.Fatal(err)
	}
	data := append(a.data(o.RP.ID, attested), make([]byte, 16)...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.id)))
	data = slices.Concat(data, a.id, public)
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		a.t.Fatal(err)
	}
	return a.answer(map[string]any{
		"clientDataJSON": b64(a.clientData("webauthn.create", o)), "attestationObject": b64(object),
		"transports": []string{"internal"},
	})
}

// get answers a sign-in or a step-up.
func (a *authenticator) get(c *gatehouse.Challenge) []byte {
	a.t.Helper()
	o := a.read(c)
	if o.UserVerification != "required" {
		a.t.Errorf("user verification is %q", o.UserVerification)
	}
	client := a.clientData("webauthn.get", o)
	sum := sha256.Sum256(client)
	data := a.data(o.RPID, 0)
	digest := sha256.Sum256(slices.Concat(data, sum[:]))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	if err != nil {
		a.t.Fatal(err)
	}
	return a.answer(map[string]any{
		"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(a.user),
	})
}

func (a *authenticator) answer(response map[string]any) []byte {
	out, err := json.Marshal(map[string]any{
		"id": b64(a.id), "rawId": b64(a.id), "type": "public-key", "response": response,
		"clientExtensionResults":  map[string]any{},
		"authenticatorAttachment": "platform",
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}
