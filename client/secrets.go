package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.SecretService = (*Client)(nil)

// ListSecrets returns the secrets of the store, without their values.
func (c *Client) ListSecrets(ctx context.Context) ([]*gatehouse.Secret, error) {
	return list[*gatehouse.Secret](ctx, c, "/secrets", nil)
}

// SetSecret stores a secret.
func (c *Client) SetSecret(ctx context.Context, n gatehouse.NewSecret) (*gatehouse.Secret, error) {
	return post[gatehouse.Secret](ctx, c, false, "/secrets", n)
}

// RotateSecret replaces the value of a secret.
func (c *Client) RotateSecret(ctx context.Context, n gatehouse.NewSecret) (*gatehouse.Secret, error) {
	value := gatehouse.SecretValue{Value: n.Value}
	return post[gatehouse.Secret](ctx, c, false, "/secrets/"+segment(n.Name)+"/rotate", value)
}

// RevokeSecret deletes the value of a secret.
func (c *Client) RevokeSecret(ctx context.Context, name string) (*gatehouse.Secret, error) {
	return post[gatehouse.Secret](ctx, c, false, "/secrets/"+segment(name)+"/revoke", nil)
}
