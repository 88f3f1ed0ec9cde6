package console

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// slackLinks separates a person's linked Slack users from the other identities.
func slackLinks(list []*gatehouse.ExternalIdentity) (links, others []*gatehouse.ExternalIdentity) {
	for _, i := range list {
		if strings.HasPrefix(i.Issuer, gatehouse.SlackIssuer) {
			links = append(links, i)
		} else {
			others = append(others, i)
		}
	}
	return links, others
}

// slackCode shows a code: the Slack user who enters it is linked to this person.
func (c *Console) slackCode(v *view) error {
	made, err := c.cfg.Slack.CreateSlackCode(v.ctx)
	if err != nil {
		return c.settingsRefused(v, err)
	}
	return v.showCredentials(credentialsPage{
		title: "Link your Slack account", back: settingsPath + "#slack",
		secrets: []secret{{"In Slack, enter", "/gatehouse link " + made.Code}},
		meaning: "Enter the code yourself, and never share it: whoever enters it can decide as you in Slack. It " +
			"works once.",
		until: made.ExpiresAt.UTC().Format(time.TimeOnly) + " UTC",
	})
}

// unlinkSlack removes one of the person's own links.
func (c *Console) unlinkSlack(v *view) error {
	return c.changeOwn(v, "#slack", func() error { return c.unlink(v, v.person.ID, c.cfg.Slack.UnlinkSlack) })
}
