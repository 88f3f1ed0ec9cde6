-- The index for text searches over the live actions, derived from the proposals. A
-- background task fills it block by block: block n has the actions with seq from
-- 1024 n up to, not including, 1024 (n + 1). It is a B-tree of words and not a GIN index:
-- under row-level security the server uses only leakproof operators with an index, and
-- those of tsvector, arrays and trigrams are not leakproof.

-- rows lists the actions of the block that have the word: seq minus 1024 n, two bytes each.
CREATE TABLE action_word (
  tenant  TEXT COLLATE "C" NOT NULL,
  block   BIGINT NOT NULL,
  word    TEXT COLLATE "C" NOT NULL,
  rows    BYTEA NOT NULL CHECK (length(rows) >= 2),
  PRIMARY KEY (tenant, block, word)
);
CREATE POLICY wall ON action_word
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE action_word ENABLE ROW LEVEL SECURITY;
ALTER TABLE action_word FORCE ROW LEVEL SECURITY;

-- The ids of a tenant's actions in a block are from low_id to top_id.
CREATE TABLE action_word_block (
  tenant  TEXT COLLATE "C" NOT NULL,
  block   BIGINT NOT NULL,
  low_id  TEXT COLLATE "C" NOT NULL,
  top_id  TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, block)
);
CREATE POLICY wall ON action_word_block
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE action_word_block ENABLE ROW LEVEL SECURITY;
ALTER TABLE action_word_block FORCE ROW LEVEL SECURITY;

-- The first block that is not in the index.
CREATE TABLE action_word_mark (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  block  BIGINT NOT NULL CHECK (block >= 0)
);
INSERT INTO action_word_mark (id, block) VALUES (1, 0);

-- The texts that searches have read so far.
ALTER TABLE proposal DROP COLUMN search;
