package kubernetes

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// outcome classifies an unsuccessful answer by its Status object
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/).
func outcome(a *rest.Answer) *connector.Error {
	e := a.Failure()
	doc := a.JSON()
	reason, message := rest.Text(doc, "reason"), rest.Text(doc, "message")
	if !isStatus(doc) {
		return e
	}
	if message != "" {
		e.Detail = "the server refuses: " + rest.Brief(gatehouse.StringJSON(message))
	}
	switch {
	case a.Status == http.StatusNotFound:
		e.Code = string(gatehouse.CodeTargetChanged)
	case a.Status == http.StatusConflict && reason == "AlreadyExists":
		e.Code = "already_exists"
	case a.Status == http.StatusConflict && len(conflicts(doc)) > 0:
		e.Code = "field_conflict"
	case a.Status == http.StatusConflict && reason == "Conflict":
		// Somebody has written the object since it was read, perhaps only its status.
		e.Kind, e.Code = connector.Transient, "conflict"
	case a.Status == http.StatusUnprocessableEntity, a.Status == http.StatusBadRequest,
		// The server answers this way if an apply names an unknown field.
		a.Status == http.StatusInternalServerError && reason == "" &&
			strings.HasPrefix(message, "failed to create typed patch object"):
		e.Kind, e.Code = connector.Terminal, "refused"
	case a.Status == http.StatusForbidden:
		e.Code = "forbidden"
	case a.Status == http.StatusUnauthorized:
		e.Code = "unauthorized"
	}
	return e
}

// isStatus reports whether an unsuccessful answer is the API server's, and not that of a proxy in between.
func isStatus(doc gatehouse.JSON) bool { return rest.Text(doc, "kind") == "Status" }

// conflicts are the managers that own fields of an apply, as the server names them.
func conflicts(doc gatehouse.JSON) []string {
	details, _ := doc.Get("details")
	list, _ := details.Get("causes")
	causes, _ := list.Elements()
	var out []string
	for _, cause := range causes {
		if rest.Text(cause, "reason") != "FieldManagerConflict" {
			continue
		}
		_, after, _ := strings.Cut(rest.Text(cause, "message"), `"`)
		name, _, _ := strings.Cut(after, `"`)
		out = append(out, name)
	}
	return out
}

// ours reports whether an apply conflicts only with this manager's own updates, such as the
// creation of the object: the server tracks updates and applies separately.
func ours(doc gatehouse.JSON, manager string) bool {
	names := conflicts(doc)
	for _, name := range names {
		if name != manager {
			return false
		}
	}
	return len(names) > 0
}
