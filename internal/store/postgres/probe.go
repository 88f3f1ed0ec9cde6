package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
)

// Probed is the result of Probe. Schema is the version of the tables, 0 if there are none.
type Probed struct {
	Server string
	Schema int
}

// Probe reads the versions of the server and of the tables. It changes nothing.
func Probe(ctx context.Context, url string) (found Probed, err error) {
	config, err := pgurl.Parse(url)
	if err != nil {
		return found, err
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return found, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, c.Close(ctx))
	}()
	var ours bool
	err = c.QueryRow(ctx,
		`SELECT current_setting('server_version'), to_regclass('gatehouse_schema') IS NOT NULL`).Scan(&found.Server, &ours)
	if err != nil || !ours {
		return found, err
	}
	err = c.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM gatehouse_schema`).Scan(&found.Schema)
	return found, err
}
