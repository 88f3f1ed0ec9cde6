package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// clusterSecret is a Secret in this pod's namespace. It is read and written over
// the Kubernetes API with the pod's own token.
type clusterSecret struct {
	name, namespace string
	base, token     string
	client          *http.Client
}

// secretObject has the fields of a Secret that are read and written.
type secretObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   secretMetadata    `json:"metadata"`
	Type       string            `json:"type,omitempty"`
	StringData map[string]string `json:"stringData,omitempty"`
	Data       map[string]string `json:"data,omitempty"`
}

type secretMetadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// newClusterSecret reads the pod's service account; account is its folder.
func newClusterSecret(name, account string) (*clusterSecret, error) {
	read := func(file string) string {
		b, _ := os.ReadFile(filepath.Join(account, file)) // missing: reported below
		return strings.TrimSpace(string(b))
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	s := &clusterSecret{name: name, namespace: read("namespace"), token: read("token"),
		base: "https://" + net.JoinHostPort(host, port)}
	roots := x509.NewCertPool()
	if host == "" || s.token == "" || s.namespace == "" || !roots.AppendCertsFromPEM([]byte(read("ca.crt"))) {
		return nil, errors.New("--kubernetes-secret works only in a pod that has a service account token")
	}
	s.client = &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}}
	return s, nil
}

// reserve makes the Secret if it is missing, so that a missing right to make, read or fill it is
// found before there are credentials to lose. It reports whether the Secret has been filled.
func (s *clusterSecret) reserve(ctx context.Context) (filled bool, err error) {
	empty := s.object(nil)
	status, _, err := s.call(ctx, http.MethodPost, "", empty)
	switch {
	case err != nil:
		return false, err
	case status == http.StatusCreated:
		return false, s.tryToFill(ctx)
	case status != http.StatusConflict:
		return false, fmt.Errorf("create the Secret %s: the Kubernetes API answers %d", s.name, status)
	}
	status, body, err := s.call(ctx, http.MethodGet, "/"+s.name, nil)
	if err != nil {
		return false, err
	}
	var there secretObject
	if status != http.StatusOK || json.Unmarshal(body, &there) != nil {
		return false, fmt.Errorf("read the Secret %s: the Kubernetes API answers %d", s.name, status)
	}
	if there.Data["admin_key"] != "" {
		return true, nil
	}
	return false, s.tryToFill(ctx)
}

// tryToFill makes the call of fill as a dry run, which needs the same right and changes nothing
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run).
func (s *clusterSecret) tryToFill(ctx context.Context) error {
	status, _, err := s.call(ctx, http.MethodPut, "/"+s.name+"?dryRun=All", s.object(nil))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("update the Secret %s: the Kubernetes API answers %d to a dry run", s.name, status)
	}
	return err
}

// fill stores the values. It retries a failed call for a minute, also after the end of ctx, because the values
// cannot be read again afterwards.
func (s *clusterSecret) fill(ctx context.Context, values map[string]string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for {
		status, _, err := s.call(ctx, http.MethodPut, "/"+s.name, s.object(values))
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("the Kubernetes API answers %d", status)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("the administrator was created, but its secrets could not be stored in the Secret %s: %w",
				s.name, err)
		}
	}
}

func (s *clusterSecret) object(values map[string]string) *secretObject {
	return &secretObject{APIVersion: "v1", Kind: "Secret", Metadata: secretMetadata{s.name, s.namespace}, Type: "Opaque",
		StringData: values}
}

func (s *clusterSecret) call(
	ctx context.Context, method, path string, o *secretObject,
) (status int, body []byte, err error) {
	var content io.Reader
	if o != nil {
		b, err := json.Marshal(o)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+"/api/v1/namespaces/"+s.namespace+"/secrets"+path, content)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body, err
}
