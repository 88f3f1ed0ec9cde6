package pgurl

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Parse checks an address and returns the configuration of a single connection. Parameters of the store's pool, such as
// pool_max_conns, are no parameters of the server, and are left out.
func Parse(address string) (*pgx.ConnConfig, error) {
	if err := Check(address); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	return config.ConnConfig, nil
}
