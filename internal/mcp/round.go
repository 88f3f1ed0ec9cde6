package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// round is the content of a held call's requestState. A client of protocol
// 2026-07-28 sends the call again with it, and so continues to wait.
//
// The client could change the requestState, so it is signed together with the
// caller and the call. Each requestState is accepted once.
type round struct {
	Action string `json:"action"`
	// Key identifies the chain of equal calls that the action belongs to (see
	// join), "" for none.
	Key string `json:"key,omitempty"`
	// Until is when the requestState expires, in Unix seconds.
	Until int64  `json:"until"`
	Nonce string `json:"nonce"`
	// Count is the number of rounds that the call has taken.
	Count int `json:"count"`
}

const (
	// roundHold bounds the hold of one round: clients end a request after 60 s.
	roundHold = 45 * time.Second
	// roundLife is how long a client may take to send the next round.
	roundLife = 10 * time.Minute
	// maxRounds bounds the rounds of a call. Clients give up after ten.
	maxRounds = 8
	// maxState bounds a requestState, in bytes.
	maxState = 2 << 10
)

var (
	errState = errors.New("it was not issued for this call of this principal")
	errSpent = errors.New("it was used before")
	errLate  = errors.New("it has expired")
)

// signRound signs a round of a call.
func (p *Proxy) signRound(c *call, r round) (string, error) {
	key, err := p.Folder.roundKey()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(b)
	return payload + "." + base64.RawURLEncoding.EncodeToString(p.roundMAC(key, c, payload)), nil
}

// roundMAC covers the caller, the call, and the content of the round with its
// expiry.
func (p *Proxy) roundMAC(key []byte, c *call, payload string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(hash("round", p.me.ID, p.connector(), c.tool, string(c.arguments), payload)))
	return m.Sum(nil)
}

// verifyRound checks the requestState of a call and marks it as used.
func (p *Proxy) verifyRound(c *call) (*round, error) {
	payload, signature, ok := strings.Cut(text(c.state), ".")
	if !ok || len(payload) > maxState {
		return nil, errState
	}
	key, err := p.Folder.roundKey()
	if err != nil {
		return nil, err
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(mac, p.roundMAC(key, c, payload)) {
		return nil, errState
	}
	var r round
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, err
	}
	if time.Now().Unix() > r.Until {
		return nil, errLate
	}
	return &r, p.Folder.spend(r.Nonce)
}

// again asks the client to send a held call again; nil when the protocol has no rounds, or the call has used
// them up. For a client that does not support them, the answer also has the text for the model.
func (p *Proxy) again(f *frame, c *call, key string, a *gatehouse.Action) []byte {
	if metaVersion(f) == "" || c.rounds+1 >= maxRounds {
		return nil
	}
	state, err := p.signRound(c, round{
		Action: a.ID, Key: key, Until: time.Now().Add(roundLife).Unix(), Nonce: rand.Text(), Count: c.rounds + 1,
	})
	if err != nil {
		p.Log.Error("a round could not be signed", "action", a.ID, "error", err)
		return nil
	}
	result := memberOf(p.gateResult(f, a.ID, string(a.Status), describe(a)), "result")
	result = setMember(result, "resultType", []byte(`"input_required"`))
	return resultFrame(f.id, setMember(result, "requestState", []byte(gatehouse.StringJSON(state))))
}

// roundKey returns the key that signs rounds. Proxies of one folder share it.
func (f *Folder) roundKey() ([]byte, error) {
	const name = "rounds.key"
	key, err := os.ReadFile(f.path(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	temp, err := os.CreateTemp(f.dir, name+".*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	key = make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	_, err = temp.Write(key)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return nil, err
	}
	// If two proxies create a key at the same time, one key is used by both.
	if err := os.Link(temp.Name(), f.path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(f.path(name))
}

// spend marks a round as used; errSpent if any proxy of this folder has done so
// before.
func (f *Folder) spend(nonce string) error {
	dir := f.path("rounds")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f.forgetRounds(dir)
	// The name is a hash because the nonce, although signed, came over the
	// network.
	spent, err := os.OpenFile(filepath.Join(dir, hash("nonce", nonce)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errSpent
	}
	if err != nil {
		return err
	}
	return spent.Close()
}

// forgetRounds occasionally removes used rounds that have expired.
func (f *Folder) forgetRounds(dir string) {
	f.mu.Lock()
	due := time.Since(f.swept) > roundLife
	if due {
		f.swept = time.Now()
	}
	f.mu.Unlock()
	if !due {
		return
	}
	list, _ := os.ReadDir(dir) // an unreadable folder stays
	for _, entry := range list {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > 2*roundLife {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
