package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// devCredentialsFile holds the credentials, so that people need not keep them.
const devCredentialsFile = "dev-credentials.json"

// devCredentials are the last served address and the principals' credentials.
type devCredentials struct {
	URL      string                `json:"url,omitempty"`
	Admin    gatehouse.Credentials `json:"admin"`
	Reviewer gatehouse.Credentials `json:"reviewer,omitzero"`
	Agent    gatehouse.Credentials `json:"agent,omitzero"`
}

func readDevCredentials(data string) (*devCredentials, error) {
	b, err := os.ReadFile(filepath.Join(data, devCredentialsFile))
	if err != nil {
		return nil, err
	}
	c := &devCredentials{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(data, devCredentialsFile), err)
	}
	return c, nil
}

// write replaces the whole file.
func (c *devCredentials) write(data string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(data, devCredentialsFile)
	if err := os.WriteFile(path+".new", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ensureDev makes sure that an administrator, a second reviewer and an agent
// exist, and that the file has their secrets.
func ensureDev(ctx context.Context, n *Node, data string) (*devCredentials, error) {
	creds, err := readDevCredentials(data)
	if errors.Is(err, fs.ErrNotExist) {
		creds, err = &devCredentials{}, nil
	}
	if err != nil {
		return nil, err
	}
	made, err := n.Gate.Bootstrap(ctx)
	switch {
	case err == nil:
		// Credentials of an earlier store are not valid in this one.
		*creds = devCredentials{Admin: *made}
		if err := creds.write(data); err != nil {
			return nil, err
		}
	case gatehouse.CodeOf(err) != gatehouse.CodeAlreadyExists:
		return nil, err
	}
	admin, err := n.Gate.Authenticate(ctx, creds.Admin.Key)
	if gatehouse.CodeOf(err) == gatehouse.CodeUnauthenticated {
		return nil, fmt.Errorf(
			"%s is not a folder of development mode: its administrator's key is not in %s. Use another --data, or `gatehouse "+
				"serve`",
			data, devCredentialsFile)
	}
	if err != nil {
		return nil, err
	}
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaCLI})
	if err := ensureEditToken(ctx, n, admin, &creds.Admin); err != nil {
		return nil, err
	}
	err = ensureMember(ctx, n, &creds.Reviewer, gatehouse.NewPrincipal{
		Name: "dev-reviewer", Kind: gatehouse.KindPerson,
		Roles: []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleOperator},
	})
	if err != nil {
		return nil, err
	}
	err = ensureMember(ctx, n, &creds.Agent, gatehouse.NewPrincipal{
		Name: "dev-agent", Kind: gatehouse.KindAgent,
		// A proxy before an MCP server executes its own proposals.
		Roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleWorker},
	})
	if err != nil {
		return nil, err
	}
	return creds, creds.write(data)
}

// dismissOwn dismisses the notices of the changes that this start of the server has made in the
// administrator's name since began, such as new principals and the setup link.
func dismissOwn(ctx context.Context, n *Node, creds *gatehouse.Credentials, began time.Time) error {
	admin, err := n.Gate.Authenticate(ctx, creds.Key)
	if err != nil {
		return err
	}
	ctx = gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: admin, StepUp: true, Via: gatehouse.ViaCLI})
	page, err := n.Gate.ListNotices(ctx, gatehouse.NoticeFilter{})
	if err != nil {
		return err
	}
	var own []string
	for _, notice := range page.Items {
		if notice.Actor == admin.ID && !notice.At.Before(began) {
			own = append(own, notice.ID)
		}
	}
	if len(own) == 0 {
		return nil
	}
	_, err = n.Gate.DismissNotices(ctx, own)
	return err
}

// ensureEditToken replaces a person's edit token if the known one is no longer valid, such as after
// an admin reset.
func ensureEditToken(ctx context.Context, n *Node, person *gatehouse.Principal, have *gatehouse.Credentials) error {
	ok, err := n.Gate.CheckEditToken(ctx, person, have.EditToken)
	if err != nil || ok {
		return err
	}
	made, err := n.Gate.RotateEditToken(ctx, person.Name)
	if err == nil {
		have.EditToken = made.EditToken
	}
	return err
}

// ensureMember keeps a member's secrets that are valid, and replaces the others. The principal may
// exist already.
func ensureMember(ctx context.Context, n *Node, have *gatehouse.Credentials, want gatehouse.NewPrincipal) error {
	member, err := n.Gate.Authenticate(ctx, have.Key)
	switch {
	case err == nil && want.Kind == gatehouse.KindPerson:
		return ensureEditToken(ctx, n, member, have)
	case gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated:
		return err
	}
	made, err := n.Gate.CreatePrincipal(ctx, want)
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		if made, err = n.Gate.CreateKey(ctx, want.Name); err != nil {
			return err
		}
		if want.Kind == gatehouse.KindPerson {
			var token *gatehouse.Credentials
			if token, err = n.Gate.RotateEditToken(ctx, want.Name); err == nil {
				made.EditToken = token.EditToken
			}
		}
	}
	if err != nil {
		return err
	}
	*have = *made
	return nil
}
