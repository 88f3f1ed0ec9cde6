package slack

import (
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// outcome classifies an error of an answer with status 200 and ok false, if Slack documents it for
// the methods used here. Unknown errors are ambiguous, as are internal_error and fatal_error: "it's
// possible some aspect of the operation succeeded".
func outcome(code string) connector.Kind {
	switch code {
	case "ratelimited", "rate_limited", "team_added_to_org":
		return connector.Transient
	case
		// The caller is refused.
		"not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"not_allowed_token_type", "no_permission", "access_denied", "ekm_access_denied", "org_login_required",
		"enterprise_is_restricted", "team_access_not_granted", "two_factor_setup_required",
		// The channel is refused.
		"channel_not_found", "not_in_channel", "is_archived", "thread_not_found", "restricted_action",
		"restricted_action_read_only_channel", "restricted_action_thread_only_channel",
		"restricted_action_thread_locked",
		"restricted_action_non_threadable_channel", "messages_tab_disabled", "cannot_reply_to_message",
		"as_user_not_supported", "slack_connect_file_link_sharing_blocked", "method_not_supported_for_channel_type",
		// The text is refused.
		"no_text", "msg_too_long", "msg_blocks_too_long", "too_many_attachments", "message_limit_exceeded",
		"invalid_blocks",
		"invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large", "metadata_must_be_sent_from_app",
		"invalid_arguments", "invalid_arg_name", "invalid_array_arg", "invalid_charset", "invalid_form_data",
		"invalid_json", "json_not_object", "invalid_post_type", "missing_post_type", "deprecated_endpoint",
		"method_deprecated", "invalid_cursor", "invalid_limit", "invalid_ts_latest", "invalid_ts_oldest",
		// The message cannot be changed.
		"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive", "cant_delete_message",
		"compliance_exports_prevent_deletion", "cant_broadcast_message", "update_failed", "block_mismatch",
		"duplicate_channel_not_found", "duplicate_message_not_found", "external_channel_migrating":
		return connector.Terminal
	}
	return connector.Ambiguous
}

// parseAnswer reads an answer: the document if ok is true, else the failure that its error proves.
func parseAnswer(a *rest.Answer) (gatehouse.JSON, *connector.Error) {
	if a.Status != http.StatusOK {
		return "", a.Failure()
	}
	doc := a.JSON()
	ok, _ := doc.Get("ok")
	if ok == "true" {
		return doc, nil
	}
	e := &connector.Error{
		Code: "no_answer", Detail: "the answer does not come from Slack's Web API", Says: a.Text(doc),
	}
	code, has := rest.TextOf(doc, "error")
	if ok != "false" || !has || !gatehouse.ValidName(code) {
		return "", e
	}
	e.Kind, e.Code, e.Detail = outcome(code), "slack_"+code, "Slack refuses: "+code
	switch {
	case code == "message_not_found":
		e.Code, e.Detail = string(gatehouse.CodeTargetChanged), "the message does not exist any more"
	case e.Kind == connector.Ambiguous:
		e.Detail = "Slack answers " + code + ", but may have made the change"
	}
	e.RetryAfter = rest.RetryAfter(a.Header)
	return "", e
}
