package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// masterKeyFile is the name of the master key's file in a data folder.
const masterKeyFile = "master.key"

// readMasterKey reads the master key of the data folder if the configuration has none and the store is not in a
// database.
func readMasterKey(cfg *config.Config, data, databaseURL string) error {
	if cfg.Links.MasterKey != "" || databaseURL != "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(data, masterKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cfg.Links.MasterKey = strings.TrimSpace(string(b))
	if err == nil && cfg.Links.MasterKey == "" {
		err = fmt.Errorf("%s is empty", filepath.Join(data, masterKeyFile))
	}
	return err
}

// masterKey parses the master key; nil if there is none.
func masterKey(cfg *config.Config) (*ring.Master, error) {
	if cfg.Links.MasterKey == "" {
		return nil, nil
	}
	m, err := ring.Parse(cfg.Links.MasterKey)
	if err != nil {
		return nil, fmt.Errorf("links.master_key (or %s in the data folder): %w", masterKeyFile, err)
	}
	return m, nil
}

// makeMasterKey gives a data folder a master key, unless it has one or the
// configuration has one.
func makeMasterKey(cfg *config.Config, data string) error {
	if cfg.Links.MasterKey != "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(data, masterKeyFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, ring.NewMasterKey())
	return errors.Join(err, f.Sync(), f.Close())
}

// noteUnsigned logs that mails have no signed links, if there is a mail channel and no
// master key.
func (n *Node) noteUnsigned(log *slog.Logger) {
	if n.config.Links.MasterKey != "" {
		return
	}
	for _, c := range n.channels {
		if c.Kind() == "email" {
			log.Info("mails carry no signed links: there is no master key. Set links.master_key or, without a database, put "+
				"a key into the data folder", "file", masterKeyFile)
			return
		}
	}
}
