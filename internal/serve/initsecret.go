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

// reservation is the name of a value that the Secret has until the administrator's secrets replace it. A Secret
// without any value was emptied or deleted by somebody, who may have moved the secrets out of it.
const reservation = "reserved"

// read returns the Secret's values, none if it is missing. It finds a missing right to make, read or fill it
// before there are credentials to lose. It changes nothing: it makes the calls of reserve and fill as dry runs
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run).
func (s *clusterSecret) read(ctx context.Context) (map[string]string, error) {
	var there secretObject
	status, _, err := s.call(ctx, http.MethodPost, "?dryRun=All", s.object(nil))
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusConflict:
		status, body, err := s.call(ctx, http.MethodGet, "/"+s.name, nil)
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK || json.Unmarshal(body, &there) != nil {
			return nil, fmt.Errorf("read the Secret %s: the Kubernetes API answers %d", s.name, status)
		}
	case status != http.StatusCreated:
		return nil, fmt.Errorf("create the Secret %s: the Kubernetes API answers %d to a dry run", s.name, status)
	}
	status, _, err = s.call(ctx, http.MethodPut, "/"+s.name+"?dryRun=All", s.object(nil))
	if err == nil && status != http.StatusOK && status != http.StatusNotFound { // 404: allowed, but it is missing
		err = fmt.Errorf("update the Secret %s: the Kubernetes API answers %d to a dry run", s.name, status)
	}
	return there.Data, err
}

// reserve makes the Secret with the reservation as its only value.
func (s *clusterSecret) reserve(ctx context.Context) error {
	reserved := s.object(map[string]string{reservation: "gatehouse init has not stored the secrets yet"})
	status, _, err := s.call(ctx, http.MethodPost, "", reserved)
	if err == nil && status == http.StatusConflict {
		status, _, err = s.call(ctx, http.MethodPut, "/"+s.name, reserved)
	}
	if err == nil && status != http.StatusCreated && status != http.StatusOK {
		err = fmt.Errorf("reserve the Secret %s: the Kubernetes API answers %d", s.name, status)
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
