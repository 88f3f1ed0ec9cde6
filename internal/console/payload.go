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

// How much of a payload a page shows, by weight. Each field and each line of a text or of the attached diff weighs
// one, plus one for each lineBytes of its length; a reference and a field that the change does not name weigh one.
// The limit applies to each list separately; the changed fields and those that are set to their present values are
// one list.
const (
	// firstWeight is the weight that a page shows at first. A heavier payload is shown in full on
	// request, and can be approved only then.
	firstWeight = 300
	// wholeWeight is the weight that a page shows at most, because the page is built in memory and
	// parsed by a browser. A heavier payload cannot be approved here.
	wholeWeight = 50_000
	lineBytes   = 256
)

// payload is the change field by field, as far as it is shown.
type payload struct {
	changes []card.Change
	// same are the fields that the change sets to their present values, context the fields that it
	// does not name.
	same, context []card.Change
	refs          []string
	// artifact is the attached diff; nil if there is none or it is left out.
	artifact *card.Artifact
	// hidden counts the omitted entries; an omitted diff counts as one. With full, hidden is zero unless
	// the payload exceeds wholeWeight.
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
	card.ByRank(p.changes)
	limit := firstWeight
	if full {
		limit = wholeWeight
	}
	budget := limit
	for _, list := range []*[]card.Change{&p.changes, &p.same} {
		for i, c := range *list {
			if budget -= weight(c); budget < 0 {
				p.hidden += len(*list) - i
				*list = (*list)[:i]
				break
			}
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
			p.hidden++
			p.artifact = nil
		}
	}
	return p
}

// shownProof is a token on a page that showed the complete action. It is bound to the session, the
// action and its digest, so a form cannot forge it, and any replica can verify it.
func (v *view) shownProof(a *gatehouse.Action) string {
	mac := hmac.New(sha256.New, []byte(v.cookie(v.c.sessionCookie())))
	mac.Write([]byte("gatehouse shown in full\x00" + a.ID + "\x00" + string(a.Digest)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// shownInFull reports whether the posted form comes from a page that showed the complete action.
func (v *view) shownInFull(a *gatehouse.Action) bool {
	return v.r.Method == http.MethodPost && hmac.Equal([]byte(v.form("shown")), []byte(v.shownProof(a)))
}

// shown reports whether the person has seen everything that they approve. A page shows a short
// payload completely from the start.
func (v *view) shown(a *gatehouse.Action) bool {
	return v.shownInFull(a) || newPayload(a, false).hidden == 0
}

// weight is the space that a change takes, in lines.
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

// pretty indents a JSON text; numbers keep their exact text.
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
