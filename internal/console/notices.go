package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const noticesPath = "/settings/changes"

func (c *Console) noticeRoutes() []route {
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + noticesPath, roles: admins, handle: c.notices},
		{pattern: "POST " + noticesPath + "/dismiss", roles: admins, handle: c.dismissNotices},
	}
}

// maxCounted is the highest number of notices that the banner counts to.
const maxCounted = 20

// noticesView is a page of notices.
type noticesView struct {
	list []*gatehouse.Notice
	all  bool
	more string
}

func (c *Console) notices(v *view) error {
	p := &noticesView{all: v.query("show") == "all"}
	page, err := c.cfg.Notices.ListNotices(v.ctx, gatehouse.NoticeFilter{All: p.all, Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	p.list = page.Items
	if page.NextCursor != "" {
		p.more = noticesPath + "?" + url.Values{"cursor": {page.NextCursor}, "show": {v.query("show")}}.Encode()
	}
	return v.render(http.StatusOK, "Changes to rights and rules", settingsPath, noticesBody(v, p))
}

func (c *Console) dismissNotices(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	if _, err := c.cfg.Notices.DismissNotices(v.ctx, v.r.PostForm["notice"]); err != nil {
		return err
	}
	return v.redirect(noticesPath)
}

// countNotices sets the count in every page's banner for administrators. If the store does not
// answer, the page has no banner.
func (v *view) countNotices() {
	if v.person == nil || !v.has(gatehouse.RoleAdmin) || v.r.URL.Path == noticesPath {
		return
	}
	page, err := v.c.cfg.Notices.ListNotices(v.ctx, gatehouse.NoticeFilter{Limit: maxCounted})
	if err != nil {
		v.c.log.WarnContext(v.ctx, "notices not read", "request_id", v.requestID, "error", err)
		return
	}
	v.notices = len(page.Items)
	v.moreNotices = page.NextCursor != ""
}

// noticeCount is the text of the banner.
func (v *view) noticeCount() string {
	if v.moreNotices {
		return "More than " + strconv.Itoa(v.notices) + " changes"
	}
	return plural(v.notices, "change", "changes")
}

// noticeKinds are the words for each kind of notice.
var noticeKinds = map[string]string{
	"principal.created": "Created", "principal.changed": "Changed", "tenant.created": "Tenant created",
	"key.created": "Key made for", "key.revoked": "Key revoked for", "edit_token.rotated": "New edit token for",
	"setup_link.created": "Set-up link made for", "passkey.added": "Passkey added by",
	"passkey.removed": "Passkey removed from",
	"identity.linked": "Sign-in identity linked to", "identity.unlinked": "Sign-in identity unlinked from",
	"delegation.made": "Delegation made by", "delegation.ended": "Delegation ended for",
	"grant.created": "Grant given for", "mandate.given": "Plan approved for",
	"secret.set": "Set:", "secret.rotated": "Rotated:", "secret.revoked": "Revoked:",
	"connectors.applied": "Connectors applied:",
	"link.key_created":   "Made:", "link.key_rotated": "Rotated:", "link.key_revoked": "Revoked:",
	"group.created": "Group made:", "group.deleted": "Group removed:",
	"policy.applied": "Policy applied:", "policy.activated": "Policy activated:",
	"policy.break_glass": "Policy changed without the approval that it needs:",
	"admin.reset":        "Administrator reset on the server's machine:",
}

// noticeWords explains a kind of notice.
func noticeWords(kind string) string {
	if words, ok := noticeKinds[kind]; ok {
		return words
	}
	return strings.NewReplacer(".", " ", "_", " ").Replace(kind)
}
