package console

import (
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const messagePreferencesPath = devicesPath + "/preferences"

// topicWords are the labels of the topics.
var topicWords = map[gatehouse.MessageTopic]string{
	gatehouse.TopicQuestions: "Questions that wait for you",
	gatehouse.TopicReminders: "Reminders of questions that wait for you",
	gatehouse.TopicOutcomes:  "How your requests ended",
	gatehouse.TopicDigests:   "Digests, when many messages come at once",
	gatehouse.TopicAlerts:    "Alerts for operators and administrators",
}

// setMessagePreference saves a person's choice for one channel. Each ticked box of the form is a wanted topic.
func (c *Console) setMessagePreference(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	change := gatehouse.PreferenceChange{Channel: v.form("channel")}
	for _, topic := range gatehouse.MessageTopics() {
		if v.form("want_"+string(topic)) == "" {
			change.Muted = append(change.Muted, topic)
		}
	}
	hours := gatehouse.QuietHours{From: v.form("quiet_from"), To: v.form("quiet_to"), Zone: v.form("quiet_zone")}
	if hours.From != "" || hours.To != "" {
		change.Quiet = &hours
	}
	saved, err := c.cfg.Preferences.SetPreference(v.ctx, change)
	if err == nil {
		return c.showDevices(v, http.StatusOK, &devicesView{saved: saved.Channel})
	}
	e := refusalOf(err)
	if e == nil {
		return err
	}
	return c.showDevices(v, gatehouse.StatusOf(e.Code), &devicesView{failed: e, refusedChange: &change})
}

// unsubscribeRoutes are the page behind the unsubscribe link in a digest, and its button. Mail services call the
// same POST without a cookie (RFC 8058). The POST can only switch off digests, so it needs no nonce.
func (c *Console) unsubscribeRoutes() []route {
	if c.cfg.Unsubscribe == nil {
		return nil
	}
	page := func(v *view, u *gatehouse.Unsubscription, err error) error {
		if err != nil {
			return v.reviewFailed(err)
		}
		v.title = "Digests"
		v.w.Header().Set("Content-Security-Policy", reviewPolicy)
		return v.write(http.StatusOK, reviewLayout(v, unsubscribeBody(u, v.query("t"))))
	}
	return []route{
		{pattern: "GET " + gatehouse.UnsubscribePath, public: true, background: true, handle: func(v *view) error {
			u, err := c.cfg.Unsubscribe.FindUnsubscription(v.ctx, v.query("t"))
			return page(v, u, err)
		}},
		{pattern: "POST " + gatehouse.UnsubscribePath, public: true, background: true, handle: func(v *view) error {
			u, err := c.cfg.Unsubscribe.Unsubscribe(v.ctx, v.query("t"))
			return page(v, u, err)
		}},
	}
}
