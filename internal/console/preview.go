package console

import (
	"net/http"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// preview is the preview of an action by its target.
type preview struct {
	card.Preview
	// available is set when there is a preview. at is the time at which the target was asked. failure is the
	// reason why the target did not answer.
	available bool
	at        time.Time
	failure   string
	// canAsk is set when this person may request a preview, asked when the preview was requested.
	canAsk, asked bool
}

func (c *Console) canPreview(v *view, a *gatehouse.Action) bool {
	return v.person != nil && gate.MayPreview(v.person) && c.cfg.Targets.CanPreview(a)
}

// askPreview asks the target for a preview. If the target does not answer, the page shows the reason.
func (c *Console) askPreview(v *view, p *actionPage) {
	if !p.preview.canAsk {
		return
	}
	p.preview.asked = true
	got, err := c.cfg.Targets.Preview(v.ctx, p.a.ID)
	if err != nil {
		p.preview.failure = asError(err).Detail
		return
	}
	p.preview.at = got.AskedAt
	p.preview.Preview, p.preview.available = card.DescribePreview(p.a.Connector, got, card.UndoText(p.a, v.now))
}

// actionPreview serves the part of an action's page with the preview.
func (c *Console) actionPreview(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	p := &actionPage{a: a, preview: preview{canAsk: c.canPreview(v, a)}}
	if to := localPath(v.query("return")); isInbox(to) {
		p.back, p.next = to, queryOf(to)
	}
	c.askPreview(v, p)
	return v.write(http.StatusOK, previewPart(v, p))
}

// previewPath is the URL of actionPreview.
func previewPath(p *actionPage) string {
	q := url.Values{}
	if p.back != "" {
		q.Set("return", p.back)
	}
	return actionPath(p.a.ID) + "/preview?" + q.Encode()
}
