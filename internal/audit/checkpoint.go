package audit

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrBadCheckpoint says that a checkpoint is malformed, belongs to another log, or
// is not signed by the expected key.
var ErrBadCheckpoint = errors.New("audit: bad checkpoint")

// maxCheckpoint bounds the bytes of a checkpoint, cosignatures included.
const maxCheckpoint = 64 << 10

// Origin names the log of one tenant, as the first line of its checkpoints and as
// the name of its key, so that no checkpoint of one tenant passes for another's.
// base is the installation's name, such as gate.example.com.
func Origin(base, tenant string) string {
	// A key's name cannot have a plus, but a tenant's name can. A tenant's name
	// cannot have a %.
	return base + "/" + strings.ReplaceAll(tenant, "+", "%2B")
}

// NewKey makes an Ed25519 key for the log with this origin: secret, for
// [note.NewSigner], and public, for [note.NewVerifier].
func NewKey(origin string) (secret, public string, err error) {
	if err := checkOrigin(origin); err != nil {
		return "", "", err
	}
	return note.GenerateKey(rand.Reader, origin)
}

// SignCheckpoint makes the signed note that commits to a head, in the format of
// C2SP tlog-checkpoint (https://c2sp.org/tlog-checkpoint). The signer's name must
// be the origin. The note does not contain the head's tenant; see [Origin].
func SignCheckpoint(head gatehouse.LogHead, origin string, signer note.Signer) ([]byte, error) {
	if err := checkOrigin(origin); err != nil {
		return nil, err
	}
	if signer.Name() != origin {
		return nil, fmt.Errorf("audit: the key of %s cannot sign for %s", gatehouse.Quote(signer.Name()),
			gatehouse.Quote(origin))
	}
	if head.Size < 0 {
		return nil, fmt.Errorf("audit: a log of size %d cannot be signed", head.Size)
	}
	root := base64.StdEncoding.EncodeToString(head.Root[:])
	return note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", origin, head.Size, root)}, signer)
}

// VerifyCheckpoint returns the size and root that a checkpoint commits to; the
// head's tenant is left empty. Any mistake is [ErrBadCheckpoint]. Signatures
// by others, such as witnesses, and extension lines are allowed and ignored.
func VerifyCheckpoint(msg []byte, origin string, verifier note.Verifier) (gatehouse.LogHead, error) {
	bad := func(format string, args ...any) (gatehouse.LogHead, error) {
		return gatehouse.LogHead{}, fmt.Errorf("%w: "+format, append([]any{ErrBadCheckpoint}, args...)...)
	}
	if verifier.Name() != origin {
		return bad("the key is that of %s, not of %s", gatehouse.Quote(verifier.Name()), gatehouse.Quote(origin))
	}
	if len(msg) > maxCheckpoint {
		return bad("it is longer than %d bytes", maxCheckpoint)
	}
	n, err := note.Open(msg, note.VerifierList(verifier))
	if err != nil {
		return bad("%v", err)
	}
	// Three lines and any extension lines; each ends in a newline.
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) < 4 {
		return bad("it has fewer than three lines")
	}
	if lines[0] != origin {
		return bad("it is of the log %s, not of %s", gatehouse.Quote(lines[0]), gatehouse.Quote(origin))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return bad("%s is not a size", gatehouse.Quote(lines[1]))
	}
	head := gatehouse.LogHead{Size: size}
	if err := head.Root.UnmarshalText([]byte(lines[2])); err != nil {
		return bad("%v", err)
	}
	return head, nil
}

// checkOrigin refuses an origin that cannot be a key's name.
func checkOrigin(origin string) error {
	if origin == "" || !utf8.ValidString(origin) || strings.Contains(origin, "+") ||
		strings.ContainsFunc(origin, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return fmt.Errorf("audit: %s cannot name a log: an origin has no spaces and no plus", gatehouse.Quote(origin))
	}
	return nil
}
