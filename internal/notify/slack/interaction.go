package slack

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// interaction is Slack's description of a click, or of a submitted form.
type interaction struct {
	Type       string  `json:"type"`
	TriggerID  string  `json:"trigger_id"`
	Team       *withID `json:"team"`
	Enterprise *withID `json:"enterprise"`
	User       struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
	} `json:"container"`
	Actions []struct {
		ActionID string `json:"action_id"`
		Value    string `json:"value"`
	} `json:"actions"`
	View struct {
		CallbackID string `json:"callback_id"`
		Metadata   string `json:"private_metadata"`
		State      struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

type withID struct {
	ID string `json:"id"`
}

func (w *withID) id() string {
	if w == nil {
		return ""
	}
	return w.ID
}

// The syntax of Slack's ids.
var (
	userForm = regexp.MustCompile(`^[UW][A-Z0-9]{2,30}$`)
	teamForm = regexp.MustCompile(`^[TE][A-Z0-9]{2,30}$`)
	tsForm   = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{1,8}$`)
)

// person is the acting Slack user, in the form of an external identity.
type person struct{ issuer, user string }

var errIdentity = errors.New("slack: the id of the user or of the workspace has an unknown form")

// identify returns a user as a person. The issuer is the user's enterprise, or else the workspace. A
// user whose home is neither of them is a guest; the issuer is then the home that Slack names.
func identify(enterprise, team, home, user string) (person, error) {
	owner := team
	if enterprise != "" {
		owner = enterprise
	}
	if home != "" && home != team && home != enterprise {
		owner = home
	}
	if !teamForm.MatchString(owner) || !userForm.MatchString(user) {
		return person{}, errIdentity
	}
	return person{gatehouse.SlackIssuer + owner, user}, nil
}

func (i *interaction) person() (person, error) {
	return identify(i.Enterprise.id(), i.Team.id(), i.User.TeamID, i.User.ID)
}

// subject identifies an action, and the card in Slack that shows it.
type subject struct {
	Tenant   string `json:"t"`
	ActionID string `json:"a"`
	Digest   string `json:"d"`
	// SlackChannel is the channel's id, and TS the timestamp of the card's message.
	SlackChannel string `json:"p"`
	TS           string `json:"ts"`
}

var errValue = errors.New("slack: the button does not belong to Gatehouse")

// parseValue parses the value of a button.
func parseValue(value string) (s subject, err error) {
	parts := strings.Split(value, "|")
	if len(parts) != 4 || parts[0] != "1" {
		return s, errValue
	}
	s = subject{Tenant: parts[1], ActionID: parts[2], Digest: parts[3]}
	return s, s.check()
}

func (s *subject) check() error {
	if !gatehouse.ValidName(s.Tenant) || !strings.HasPrefix(s.ActionID, "act_") || len(s.ActionID) > 64 ||
		len(s.Digest) != gatehouse.DigestPrefix {
		return errValue
	}
	return nil
}

// parseMetadata parses the metadata of a form.
func parseMetadata(metadata string) (s subject, err error) {
	if err := json.Unmarshal([]byte(metadata), &s); err != nil {
		return s, errValue
	}
	if !channelForm.MatchString(s.SlackChannel) || !tsForm.MatchString(s.TS) {
		return s, errValue
	}
	return s, s.check()
}
