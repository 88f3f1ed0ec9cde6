-- What people call the lists that they come back to.

CREATE TABLE saved_view (
  tenant        TEXT COLLATE "C" NOT NULL,
  principal_id  TEXT COLLATE "C" NOT NULL,
  name          TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
  query         TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (tenant, principal_id, name),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
);
