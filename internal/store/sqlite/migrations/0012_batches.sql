-- A leaf is written once: its number and hash stand with those of the entries
-- that were numbered with it, in one row. Each entry took five rows before, and
-- its own was written twice. What the old tables say goes over in batches.go.
DROP TRIGGER audit_leaf_frozen;
DROP TRIGGER audit_leaf_body;
DROP TRIGGER audit_leaf_kept;
DROP INDEX audit_action;
ALTER TABLE audit_leaf RENAME TO audit_leaf_before;

CREATE TABLE audit_leaf (
  seq        INTEGER PRIMARY KEY,
  tenant     TEXT NOT NULL,
  action_id  TEXT NOT NULL,
  body       TEXT NOT NULL
) STRICT;
INSERT INTO audit_leaf (seq, tenant, action_id, body) SELECT seq, tenant, action_id, body FROM audit_leaf_before ORDER BY seq;
CREATE INDEX audit_action ON audit_leaf (tenant, action_id) WHERE action_id <> '';
CREATE TRIGGER audit_leaf_frozen BEFORE UPDATE ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'a leaf never changes'); END;
CREATE TRIGGER audit_leaf_kept BEFORE DELETE ON audit_leaf
BEGIN SELECT RAISE(ABORT, 'audit leaves are never deleted'); END;

-- Entries of one log, from number on: leaves are the rows of their leaves, in
-- the order of their numbers, eight bytes each, the highest first, and last the
-- last of them. hashes are the tree hashes that they complete, from position on,
-- 32 bytes each. A leaf of a tenant waits for its number while its row is above
-- every last of the tenant; up to meta.numbered none does.
CREATE TABLE audit_batch (
  seq       INTEGER PRIMARY KEY,
  tenant    TEXT NOT NULL,
  number    INTEGER NOT NULL CHECK (number >= 0),
  position  INTEGER NOT NULL CHECK (position >= 0),
  last      INTEGER NOT NULL CHECK (last >= 0),
  leaves    BLOB NOT NULL CHECK (length(leaves) % 8 = 0),
  hashes    BLOB NOT NULL CHECK (length(hashes) % 32 = 0)
) STRICT;
CREATE UNIQUE INDEX audit_batch_number ON audit_batch (tenant, number);
CREATE UNIQUE INDEX audit_batch_position ON audit_batch (tenant, position);
CREATE INDEX audit_batch_last ON audit_batch (tenant, last);
CREATE TRIGGER audit_batch_frozen BEFORE UPDATE ON audit_batch
BEGIN SELECT RAISE(ABORT, 'a numbered leaf never changes'); END;
CREATE TRIGGER audit_batch_kept BEFORE DELETE ON audit_batch
BEGIN SELECT RAISE(ABORT, 'numbers and tree hashes are never deleted'); END;
