-- The index for text searches over the live actions, derived from the proposals. A
-- background task fills it block by block: block n has the actions with seq from
-- 1024 n up to, not including, 1024 (n + 1).

-- rows lists the actions of the block that have the word: seq minus 1024 n, two bytes each.
CREATE TABLE action_word (
  tenant  TEXT NOT NULL,
  block   INTEGER NOT NULL,
  word    TEXT NOT NULL,
  rows    BLOB NOT NULL CHECK (length(rows) >= 2),
  PRIMARY KEY (tenant, block, word)
) STRICT, WITHOUT ROWID;

-- The ids of a tenant's actions in a block are from low_id to top_id.
CREATE TABLE action_word_block (
  tenant  TEXT NOT NULL,
  block   INTEGER NOT NULL,
  low_id  TEXT NOT NULL,
  top_id  TEXT NOT NULL,
  PRIMARY KEY (tenant, block)
) STRICT, WITHOUT ROWID;

-- The first block that is not in the index.
CREATE TABLE action_word_mark (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  block  INTEGER NOT NULL CHECK (block >= 0)
) STRICT;
INSERT INTO action_word_mark (id, block) VALUES (1, 0);

-- The texts that searches have read so far.
ALTER TABLE proposal DROP COLUMN search;
