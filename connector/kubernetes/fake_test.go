package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

type object = map[string]any

// fake is an in-memory API server with namespaces, config maps and deployments. It behaves like a
// Kubernetes 1.36 server, as far as the connector uses it: field managers, apply, merge patches,
// preconditions, dry runs, defaults, the normal form of quantities, and Status objects.
// The tests use a real server instead if GATEHOUSE_TEST_KUBERNETES names one; the fake's behaviour
// was copied from a real server.
type fake struct {
	mu      sync.Mutex
	objects map[string]*stored
	version int
}

// stored is an object, with the paths that each manager owns, by "manager operation".
type stored struct {
	body   object
	owners map[string]map[string]bool
}

var (
	objectPath = regexp.MustCompile(
		`^/(api/v1|apis/apps/v1)(?:/namespaces/([a-z0-9-]+))?/(deployments|configmaps|namespaces)(?:/([a-z0-9.-]+))?(` +
			`/scale)?$`)
	kinds = map[string]string{"deployments": "Deployment", "configmaps": "ConfigMap", "namespaces": "Namespace"}
)

func status(code int, reason, message string) (int, any) {
	out := object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": message,
		"code": code}
	if reason != "" {
		out["reason"] = reason
	}
	return code, out
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	code, out := f.route(r, body)
	text, err := json.Marshal(out)
	f.mu.Unlock()
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func (f *fake) route(r *http.Request, body []byte) (int, any) {
	if r.Header.Get("Authorization") != "Bearer "+token && (r.TLS == nil || len(r.TLS.PeerCertificates) == 0) {
		return status(401, "Unauthorized", "Unauthorized")
	}
	switch r.URL.Path {
	case "/apis/apps/v1":
		return 200, object{"kind": "APIResourceList", "resources": []object{
			{"name": "deployments", "namespaced": true, "kind": "Deployment"},
			{"name": "deployments/scale", "namespaced": true, "kind": "Scale"},
		}}
	case "/api/v1":
		return 200, object{"kind": "APIResourceList", "resources": []object{
			{"name": "configmaps", "namespaced": true, "kind": "ConfigMap"},
			{"name": "namespaces", "namespaced": false, "kind": "Namespace"},
		}}
	}
	m := objectPath.FindStringSubmatch(r.URL.Path)
	if m == nil || m[5] != "" && m[3] != "deployments" {
		return status(404, "NotFound", "the server could not find the requested resource")
	}
	var in object
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		return status(400, "BadRequest", "invalid character")
	}
	namespace, resource, name := m[2], m[3], m[4]
	id := namespace + "/" + resource + "/" + name
	if r.Method == http.MethodPost {
		meta, _ := in["metadata"].(object)
		name, _ = meta["name"].(string)
		return f.create(r, namespace, resource, name, in)
	}
	s := f.objects[id]
	switch {
	case s == nil && r.Method == http.MethodPatch &&
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"):
		// An apply creates an object that does not exist, whatever resourceVersion it names.
		if meta, _ := in["metadata"].(object); meta["uid"] != nil {
			return status(409, "Conflict", "uid mismatch: the provided object specified uid, and no existing object was found")
		}
		return f.create(r, namespace, resource, name, in)
	case s == nil:
		return status(404, "NotFound", fmt.Sprintf("%s %q not found", resource, name))
	case r.Method == http.MethodGet && m[5] != "":
		return 200, scaleOf(s.body)
	case r.Method == http.MethodGet:
		return 200, s.body
	case r.Method == http.MethodDelete:
		return f.remove(r, id, s, in)
	case r.Method != http.MethodPatch:
		return status(405, "MethodNotAllowed", "the server does not allow this method")
	case m[5] != "":
		return f.scale(r, s, in)
	}
	return f.patch(r, s, in)
}

func scaleOf(body object) object {
	meta := body["metadata"].(object)
	spec := object{}
	if n := body["spec"].(object)["replicas"]; n != float64(0) {
		spec["replicas"] = n
	}
	return object{"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": spec, "metadata": object{
		"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"], "resourceVersion": meta["resourceVersion"],
	}}
}

// stale compares the uid and version in a request with the object's.
func stale(says any, s *stored) bool {
	want, _ := says.(object)
	is := s.body["metadata"].(object)
	return want["uid"] != nil && want["uid"] != is["uid"] ||
		want["resourceVersion"] != nil && want["resourceVersion"] != is["resourceVersion"]
}

const modified = "Operation cannot be fulfilled: the object has been modified; please apply your changes to the " +
	"latest version and try again"

func (f *fake) create(r *http.Request, namespace, resource, name string, in object) (int, any) {
	id := namespace + "/" + resource + "/" + name
	switch {
	case f.objects[id] != nil:
		return status(409, "AlreadyExists", fmt.Sprintf("%s %q already exists", resource, name))
	case namespace != "" && f.objects["/namespaces/"+namespace] == nil:
		return status(404, "NotFound", fmt.Sprintf("namespaces %q not found", namespace))
	}
	if where := unknown(resource, in); where != "" && r.URL.Query().Get("fieldValidation") == "Strict" {
		return status(400, "BadRequest", "strict decoding error: unknown field "+where)
	}
	in["kind"] = kinds[resource]
	s := &stored{body: complete(resource, clone(in)), owners: map[string]map[string]bool{}}
	if code, out := invalid(resource, s.body); code != 0 {
		return code, out
	}
	operation := " Update"
	if r.Method == http.MethodPatch {
		operation = " Apply"
	}
	s.owners[r.URL.Query().Get("fieldManager")+operation] = set(leaves(in))
	meta := s.body["metadata"].(object)
	if namespace != "" {
		meta["namespace"] = namespace
	}
	f.version++
	meta["uid"] = fmt.Sprintf("uid-%d", f.version)
	meta["resourceVersion"] = strconv.Itoa(f.version)
	if s.body["spec"] != nil {
		meta["generation"] = float64(1)
	}
	if r.URL.Query().Get("dryRun") == "" {
		f.objects[id] = s
	}
	return 201, clone(s.body)
}

func (f *fake) remove(r *http.Request, id string, s *stored, in object) (int, any) {
	dry := in["dryRun"] != nil
	if in == nil { // the query counts only without a body
		dry = r.URL.Query().Get("dryRun") != ""
	}
	if stale(in["preconditions"], s) {
		return status(409, "Conflict",
			"Operation cannot be fulfilled: the UID or ResourceVersion in the precondition does not match")
	}
	if !dry {
		delete(f.objects, id)
	}
	return 200, object{"kind": "Status", "apiVersion": "v1", "status": "Success"}
}

func (f *fake) scale(r *http.Request, s *stored, in object) (int, any) {
	if stale(in["metadata"], s) {
		return status(409, "Conflict", modified)
	}
	in = object{"spec": object{"replicas": in["spec"].(object)["replicas"]}}
	code, out := f.store(r, s, merged(s.body, in), r.URL.Query().Get("fieldManager")+" Update", leaves(in))
	if code != 200 {
		return code, out
	}
	return 200, scaleOf(out.(object))
}

func (f *fake) patch(r *http.Request, s *stored, in object) (int, any) {
	apply := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	resource := strings.ToLower(s.body["kind"].(string)) + "s"
	where := unknown(resource, in)
	switch {
	case apply && where != "":
		return status(500, "", "failed to create typed patch object: "+where+": field not declared in schema")
	case where != "" && r.URL.Query().Get("fieldValidation") == "Strict":
		return status(422, "Invalid", "is invalid: patch: strict decoding error: unknown field "+where)
	case stale(in["metadata"], s):
		return status(409, "Conflict", modified)
	}
	manager := r.URL.Query().Get("fieldManager")
	set := leaves(in)
	if !apply {
		return f.store(r, s, merged(s.body, in), manager+" Update", set)
	}
	was := leaves(s.body)
	if r.URL.Query().Get("force") == "" {
		var causes []object
		for _, path := range slices.Sorted(maps.Keys(set)) {
			for _, other := range slices.Sorted(maps.Keys(s.owners)) {
				if had, ok := was[path]; ok && other != manager+" Apply" && s.owners[other][path] && !same(had, set[path]) {
					name, _, _ := strings.Cut(other, " ")
					causes = append(causes, object{
						"reason": "FieldManagerConflict", "message": fmt.Sprintf("conflict with %q using apps/v1", name), "field": path,
					})
				}
			}
		}
		if causes != nil {
			code, out := status(409, "Conflict", fmt.Sprintf("Apply failed with %d conflict", len(causes)))
			out.(object)["details"] = object{"causes": causes}
			return code, out
		}
	}
	next := merged(s.body, in)
	for path := range s.owners[manager+" Apply"] {
		_, still := set[path]
		for other, paths := range s.owners {
			still = still || other != manager+" Apply" && paths[path]
		}
		if !still {
			drop(next, strings.Split(path, "\x00")[1:])
		}
	}
	return f.store(r, s, next, manager+" Apply", set)
}

// store replaces an object, unless the new one is invalid or this is a dry run.
func (f *fake) store(r *http.Request, s *stored, next object, owner string, values map[string]any) (int, any) {
	resource := strings.ToLower(s.body["kind"].(string)) + "s"
	next = complete(resource, next)
	if code, out := invalid(resource, next); code != 0 {
		return code, out
	}
	if r.URL.Query().Get("dryRun") != "" {
		return 200, next
	}
	was := leaves(s.body)
	for other, paths := range s.owners {
		for path := range values {
			if other != owner && !same(was[path], values[path]) {
				delete(paths, path)
			}
		}
	}
	if strings.HasSuffix(owner, " Apply") || s.owners[owner] == nil {
		s.owners[owner] = map[string]bool{}
	}
	maps.Copy(s.owners[owner], set(values))
	if !same(s.body, next) {
		f.version++
		meta := next["metadata"].(object)
		meta["resourceVersion"] = strconv.Itoa(f.version)
		if n, ok := meta["generation"].(float64); ok && !same(s.body["spec"], next["spec"]) {
			meta["generation"] = n + 1
		}
		s.body = next
	}
	return 200, clone(s.body)
}

func set(values map[string]any) map[string]bool {
	out := map[string]bool{}
	for path := range values {
		out[path] = true
	}
	return out
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func clone(in object) object {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	var out object
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// unknown is a field of the specification that does not exist in the schema.
func unknown(resource string, in object) string {
	known := []string{"replicas", "selector", "template", "strategy", "paused", "minReadySeconds", "revisionHistoryLimit"}
	spec, _ := in["spec"].(object)
	for name := range spec {
		if resource == "deployments" && !slices.Contains(known, name) {
			return ".spec." + name
		}
	}
	return ""
}

func invalid(resource string, body object) (int, any) {
	if resource != "deployments" {
		return 0, nil
	}
	spec, _ := body["spec"].(object)
	n, isNumber := spec["replicas"].(float64)
	switch {
	case !isNumber || n < 0:
		return status(422, "Invalid", "spec.replicas: Invalid value: must be greater than or equal to 0")
	case spec["selector"] == nil || spec["template"] == nil:
		return status(422, "Invalid", "spec.selector: Required value")
	}
	return 0, nil
}

// complete sets defaults, and normalises quantities.
func complete(resource string, body object) object {
	spec, _ := body["spec"].(object)
	if resource != "deployments" || spec == nil {
		return body
	}
	if spec["replicas"] == nil {
		spec["replicas"] = float64(1)
	}
	template, _ := spec["template"].(object)
	pod, _ := template["spec"].(object)
	containers, _ := pod["containers"].([]any)
	for _, c := range containers {
		c := c.(object)
		if c["imagePullPolicy"] == nil {
			c["imagePullPolicy"] = "IfNotPresent"
		}
		resources, _ := c["resources"].(object)
		limits, _ := resources["limits"].(object)
		if limits["cpu"] == "1000m" {
			limits["cpu"] = "1"
		}
	}
	return body
}

// leaves are the values that managers own, by path.
func leaves(in object) map[string]any {
	out := map[string]any{}
	for name, v := range in {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			meta, _ := v.(object)
			for _, part := range []string{"labels", "annotations"} {
				walk("\x00metadata\x00"+part, meta[part], out)
			}
		default:
			walk("\x00"+name, v, out)
		}
	}
	return out
}

func walk(path string, v any, out map[string]any) {
	switch v := v.(type) {
	case nil:
	case object:
		for name, m := range v {
			walk(path+"\x00"+name, m, out)
		}
	case []any:
		for _, e := range v {
			m, ok := e.(object)
			if !ok || m["name"] == nil {
				out[path] = v
				return
			}
			walk(path+"\x00["+m["name"].(string)+"]", m, out)
		}
	default:
		out[path] = v
	}
}

// merged is an object with the values of another. List elements are matched by their names; null
// removes.
func merged(base, in object) object {
	out := clone(base)
	for name, v := range in {
		if name == "metadata" {
			meta, _ := v.(object)
			v = object{}
			for _, part := range []string{"labels", "annotations"} {
				if meta[part] != nil {
					v.(object)[part] = meta[part]
				}
			}
		}
		had, isObject := out[name].(object)
		list, isList := out[name].([]any)
		switch v := v.(type) {
		case nil:
			delete(out, name)
			continue
		case object:
			if !isObject {
				had = object{}
			}
			out[name] = merged(had, v)
			continue
		case []any:
			if isList {
				out[name] = mergedList(list, v)
				continue
			}
		}
		out[name] = v
	}
	return clone(out)
}

func mergedList(list, in []any) []any {
	for _, e := range in {
		m, ok := e.(object)
		if !ok || m["name"] == nil {
			return in
		}
		at := slices.IndexFunc(list, func(had any) bool { h, _ := had.(object); return h["name"] == m["name"] })
		if at < 0 {
			list = append(list, m)
		} else {
			list[at] = merged(list[at].(object), m)
		}
	}
	return list
}

// drop removes a leaf, and every parent that becomes empty.
func drop(v object, path []string) {
	name := path[0]
	if len(path) == 1 {
		delete(v, name)
		return
	}
	switch next := v[name].(type) {
	case object:
		if drop(next, path[1:]); len(next) == 0 {
			delete(v, name)
		}
	case []any:
		for i, e := range next {
			if m, _ := e.(object); "["+fmt.Sprint(m["name"])+"]" == path[1] {
				if drop(m, path[2:]); len(m) == 0 || m["name"] == nil {
					v[name] = slices.Delete(next, i, i+1)
				}
				return
			}
		}
	}
}
