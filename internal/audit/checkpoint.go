package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrBadCheckpoint says that a checkpoint is malformed, belongs to another log, or
// is not signed by the expected key.
var ErrBadCheckpoint = errors.New("the checkpoint is not valid")

// maxCheckpoint bounds the bytes of a checkpoint, cosignatures included.
const maxCheckpoint = 64 << 10

// Origin names the log of one tenant. It is the first line of the log's checkpoints
// and the name of its key, so that no checkpoint of one tenant passes for another's.
// base is the installation's name, such as gate.example.com.
func Origin(base, tenant string) string {
	// A key's name cannot have a plus, but a tenant's name can. A tenant's name
	// cannot have a %.
	return base + "/" + strings.ReplaceAll(tenant, "+", "%2B")
}

// Key signs the checkpoints of one log. It implements [note.Signer].
type Key struct {
	origin  string
	private ed25519.PrivateKey
	hash    uint32
	public  string
}

// NewKey makes the Ed25519 key of the log with this origin from a secret seed of
// 32 bytes. The same seed gives the same key.
func NewKey(origin string, seed []byte) (*Key, error) {
	if err := checkOrigin(origin); err != nil {
		return nil, err
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, err := note.NewEd25519VerifierKey(origin, private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return nil, err
	}
	return &Key{origin, private, verifier.KeyHash(), public}, nil
}

// Name returns the origin.
func (k *Key) Name() string { return k.origin }

// KeyHash returns the number that identifies the key in a signature line.
func (k *Key) KeyHash() uint32 { return k.hash }

// Sign signs the text of a note.
func (k *Key) Sign(msg []byte) ([]byte, error) { return ed25519.Sign(k.private, msg), nil }

// Public returns the public key, for [note.NewVerifier]: origin, number and key, joined by +.
func (k *Key) Public() string { return k.public }

// SignCheckpoint makes the signed note that commits to a head, in the format of
// C2SP tlog-checkpoint (https://c2sp.org/tlog-checkpoint). The note does not contain
// the head's tenant; see [Origin].
func SignCheckpoint(head gatehouse.LogHead, key *Key) ([]byte, error) {
	if head.Size < 0 {
		return nil, fmt.Errorf("audit: a log of size %d cannot be signed", head.Size)
	}
	root := base64.StdEncoding.EncodeToString(head.Root[:])
	return note.Sign(&note.Note{Text: fmt.Sprintf("%s\n%d\n%s\n", key.origin, head.Size, root)}, key)
}

// VerifyCheckpoint returns the head that a checkpoint commits to. keys are public keys of one
// log, see [Key.Public]: the checkpoint must be of that log, and signed with one of them. Every
// error is [ErrBadCheckpoint]. Signatures by others, such as witnesses, and extension lines
// are allowed and ignored.
func VerifyCheckpoint(msg []byte, keys ...string) (gatehouse.LogHead, error) {
	bad := func(format string, args ...any) (gatehouse.LogHead, error) {
		return gatehouse.LogHead{}, fmt.Errorf("%w: "+format, append([]any{ErrBadCheckpoint}, args...)...)
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	verifiers := make([]note.Verifier, len(keys))
	for i, key := range keys {
		var err error
		if verifiers[i], err = note.NewVerifier(key); err != nil {
			return bad("%s is not a public key, as `gatehouse audit keys` prints it", gatehouse.Quote(key))
		}
	}
	if len(msg) > maxCheckpoint {
		return bad("it is longer than %d bytes", maxCheckpoint)
	}
	n, err := note.Open(msg, note.VerifierList(verifiers...))
	var unverified *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unverified):
		return bad("no given key has signed it")
	case err != nil:
		return bad("it is not a signed note, or a signature is wrong")
	}
	// Three lines and any extension lines; each ends in a newline.
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) < 4 {
		return bad("it has fewer than three lines")
	}
	if !slices.ContainsFunc(n.Sigs, func(s note.Signature) bool { return s.Name == lines[0] }) {
		return bad("its log is %s, but the log of the key is %s", gatehouse.Quote(lines[0]), gatehouse.Quote(n.Sigs[0].Name))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return bad("%s is not a size", gatehouse.Quote(lines[1]))
	}
	tenant := lines[0][strings.LastIndexByte(lines[0], '/')+1:]
	head := gatehouse.LogHead{Tenant: strings.ReplaceAll(tenant, "%2B", "+"), Size: size}
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
