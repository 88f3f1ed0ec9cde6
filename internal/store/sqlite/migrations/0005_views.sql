-- What people call the lists that they come back to.

CREATE TABLE saved_view (
  tenant        TEXT NOT NULL,
  principal_id  TEXT NOT NULL,
  name          TEXT NOT NULL CHECK (name <> ''),
  query         TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, name),
  FOREIGN KEY (tenant, principal_id) REFERENCES principal (tenant, id)
) STRICT, WITHOUT ROWID;
