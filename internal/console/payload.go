package console

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// How much of a payload is shown: fields, lines of texts and of the attached
// diff, and references count one each, and one more for each lineBytes of them.
const (
	// firstWeight is shown at first. What has more is shown in full on demand,
	// and can be approved only then.
	firstWeight = 300
	// wholeWeight is the most that a page shows at all: it is made in memory,
	// and read by a browser. What has more cannot be approved here.
	wholeWeight = 50_000
	lineBytes   = 256
)

// payload is the change field by field, as much of it as is shown.
type payload struct {
	changes []card.Change
	// same are the fields that the change writes as they are, context those that it
	// does not name.
	same, context []card.Change
	refs          []string
	// artifact is the attached diff, nil for none, and when it is left out.
	artifact *card.Artifact
	// hidden counts what is left out: nothing when full, unless it is too much
	// for any page.
	hidden int
	full   bool
}

func newPayload(a *gatehouse.Action, full bool) payload {
	p := payload{refs: a.Target.EntityRefs, full: full}
	for _, c := range card.Changes(a) {
		switch {
		case c.Context:
			p.context = append(p.context, c)
		case c.Kind == card.Same:
			p.same = append(p.same, c)
		default:
			p.changes = append(p.changes, c)
		}
	}
	card.ByWeight(p.changes)
	limit := firstWeight
	if full {
		limit = wholeWeight
	}
	budget := limit
	for i, c := range p.changes {
		if budget -= weight(c); budget < 0 {
			p.hidden += len(p.changes) - i
			p.changes = p.changes[:i]
			break
		}
	}
	for i, c := range p.same {
		if budget -= weight(c); budget < 0 {
			p.hidden += len(p.same) - i
			p.same = p.same[:i]
			break
		}
	}
	if n := len(p.refs); n > limit {
		p.hidden += n - limit
		p.refs = p.refs[:limit]
	}
	if n := len(p.context); n > limit {
		p.hidden += n - limit
		p.context = p.context[:limit]
	}
	if art := card.ParseArtifact(a.ArtifactDiff); art != nil {
		n := 0
		for _, b := range art.Blocks {
			n += linesWeight(b.Lines)
		}
		if p.artifact = art; n > limit {
			p.hidden += n
			p.artifact = nil
		}
	}
	return p
}

// shownProof is what a page says that left nothing of an action out. It is
// bound to the session, the action and its digest: no form can be sent in the
// place of looking, and any replica knows it again.
func (v *view) shownProof(a *gatehouse.Action) string {
	mac := hmac.New(sha256.New, []byte(v.cookie(v.c.sessionCookie())))
	mac.Write([]byte("gatehouse shown in full\x00" + a.ID + "\x00" + string(a.Digest)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// shownInFull reports whether the form that is answered was on such a page.
func (v *view) shownInFull(a *gatehouse.Action) bool {
	return v.r.Method == http.MethodPost && hmac.Equal([]byte(v.form("shown")), []byte(v.shownProof(a)))
}

// shown reports whether the person has seen all of what is approved: a page
// shows all of a short payload at once.
func (v *view) shown(a *gatehouse.Action) bool {
	return v.shownInFull(a) || newPayload(a, false).hidden == 0
}

// weight is how much room a change takes, in lines.
func weight(c card.Change) int {
	n := 1 + len(c.Path)/lineBytes
	if c.Text == nil {
		return n + (len(c.Before.Text)+len(c.After.Text))/lineBytes
	}
	for _, b := range c.Text.Blocks {
		n += linesWeight(b.Lines)
	}
	return n
}

func linesWeight(lines []card.Line) (n int) {
	for _, l := range lines {
		n += 1 + len(l.Text)/lineBytes
	}
	return n
}

// pretty indents a JSON text; the lexemes stay as they are.
func pretty(j gatehouse.JSON) string {
	if j == "" {
		return "null"
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(j), "", "  "); err != nil {
		return string(j)
	}
	return b.String()
}
