package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Mail is a mail that the gate has sent. No mail leaves this machine.
type Mail struct{ To, Text string }

// mailWithin limits the wait for a mail. The first stage of the policy takes 2s.
const mailWithin = 30 * time.Second

// escalation: ana does not answer in time, so ben is asked, too. He decides with the link and the
// code in his mail.
func escalation(ctx context.Context, p *play, l *Line) error {
	a, err := p.clearance(ctx, l)
	if err != nil {
		return err
	}
	p.Stage.Say(fmt.Sprintf("%s proposes a clearance; the policy asks ana, and after 2 seconds ben, too", agentName))
	p.Stage.Say("ben's approval is not accepted before that; ana is at lunch, and the time passes")
	link, code, err := p.mailed(ctx, "ben", a.ID)
	if err != nil {
		return err
	}
	web, err := openLink(ctx, link)
	if err != nil {
		return err
	}
	if a, err = p.ben.see(ctx, a.ID); err != nil {
		return err
	}
	if a.Status != gatehouse.StatusPending || a.Approval.Stage != 2 {
		return fmt.Errorf("after the link was opened: %s, stage %d", a.Status, a.Approval.Stage)
	}
	p.Stage.Say("a mail asks ben now; opening its link decides nothing; only the code in the mail does")
	if err := web.approve(ctx, code); err != nil {
		return err
	}
	if err := p.ben.note(a, gatehouse.Approve, gatehouse.Decided); err != nil {
		return err
	}
	l.Decided++
	if a, err = p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
		return err
	}
	if a.DecidedBy != "ben" || a.DecidedVia != gatehouse.ViaLink {
		return fmt.Errorf("decided by %s, via %s", a.DecidedBy, a.DecidedVia)
	}
	l.Outcome = "escalated to ben; approved by the link of his mail"
	return nil
}

// clearances limits how many clearances a slow machine proposes.
const clearances = 5

// clearance proposes a clearance, and lets ben approve it at once, which the gate must refuse. Where this takes longer
// than the first stage, ben's approval counts, and the next item is proposed.
func (p *play) clearance(ctx context.Context, l *Line) (*gatehouse.Action, error) {
	for n := 1; ; n++ {
		it, err := p.item(ctx, sku(550+n))
		if err != nil {
			return nil, err
		}
		q := priceChange(it, money(it.cents*7/10), "the season is over")
		q.ActionType = "clearance"
		a, err := p.propose(ctx, l, q)
		if err != nil {
			return nil, err
		}
		_, err = p.ben.decide(ctx, a, gatehouse.Decision{Decision: gatehouse.Approve})
		if err != nil || n == clearances {
			return a, refused(l, err, gatehouse.CodeRoleRequired)
		}
		l.Decided++
		if _, err := p.finish(ctx, l, a.ID, gatehouse.StatusApplied); err != nil {
			return nil, err
		}
	}
}

var (
	linkForm  = regexp.MustCompile(`http://\S+/review/\S+`)
	codeForm  = regexp.MustCompile(`Code: (\w{6})`)
	nonceForm = regexp.MustCompile(`name="nonce" value="([^"]+)"`)
)

// mailed waits for the mail about an action to a person, and returns its link and its code.
func (p *play) mailed(ctx context.Context, name, action string) (link, code string, err error) {
	end := time.Now().Add(mailWithin)
	for time.Now().Before(end) {
		for _, m := range p.Mails() {
			if !strings.Contains(m.To, name+"@") || !strings.Contains(m.Text, action) {
				continue
			}
			link, found := linkForm.FindString(m.Text), codeForm.FindStringSubmatch(m.Text)
			if link == "" || found == nil {
				return "", "", fmt.Errorf("the mail to %s has no link or no code", name)
			}
			return link, found[1], nil
		}
		select {
		case <-ctx.Done():
			return "", "", ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return "", "", fmt.Errorf("no mail arrived for %s", name)
}

// linkPage is the open page of a link, in a browser without a session.
type linkPage struct {
	http  *http.Client
	at    *url.URL
	nonce string
}

// openLink follows a link.
func openLink(ctx context.Context, link string) (*linkPage, error) {
	at, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	w := &linkPage{http: &http.Client{Jar: jar, Timeout: finishWithin}, at: at}
	page, err := w.send(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	nonce := nonceForm.FindStringSubmatch(page)
	if nonce == nil {
		return nil, fmt.Errorf("the page of the link offers nothing to decide")
	}
	w.nonce = nonce[1]
	return w, nil
}

// approve submits the form of the page with the code of the mail.
func (w *linkPage) approve(ctx context.Context, code string) error {
	form := url.Values{"token": {w.at.Query().Get("token")}, "nonce": {w.nonce}, "code": {code}}
	_, err := w.send(ctx, http.MethodPost, w.at.Scheme+"://"+w.at.Host+w.at.Path+"/approve", form)
	return err
}

func (w *linkPage) send(ctx context.Context, method, address string, form url.Values) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the page of the link answers %s", resp.Status)
	}
	return string(body), err
}
