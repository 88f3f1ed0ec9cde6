-- The conversation on a pending action. The counts on the approval spare lists a look at
-- the comments: asked counts the questions without an answer, answered those with one.
ALTER TABLE approval ADD COLUMN comments INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN answered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approval ADD COLUMN assignee_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN assignee TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD CONSTRAINT approval_conversation
CHECK (comments BETWEEN 0 AND 100 AND asked >= 0 AND answered >= 0 AND asked + answered <= comments);
ALTER TABLE approval ADD CONSTRAINT approval_assignee CHECK ((assignee_id = '') = (assignee = ''));

-- answers is the number of the question that an answer belongs to, else 0. seq has no
-- foreign key, for the reason that vote has none.
CREATE TABLE comment (
  seq        BIGINT NOT NULL,
  number     INTEGER NOT NULL CHECK (number BETWEEN 1 AND 100),
  tenant     TEXT COLLATE "C" NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('comment', 'question', 'answer')),
  answers    INTEGER NOT NULL CHECK (answers BETWEEN 0 AND number - 1),
  author_id  TEXT COLLATE "C" NOT NULL CHECK (author_id <> ''),
  author     TEXT NOT NULL,
  text       TEXT NOT NULL CHECK (text <> '' AND octet_length(text) <= 4096),
  at         BIGINT NOT NULL,
  PRIMARY KEY (seq, number),
  CHECK ((kind = 'answer') = (answers > 0))
);
CREATE TRIGGER comment_frozen BEFORE UPDATE ON comment
FOR EACH ROW
EXECUTE FUNCTION gatehouse_forbid('a comment is never changed');

CREATE POLICY wall ON comment
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE comment ENABLE ROW LEVEL SECURITY;
ALTER TABLE comment FORCE ROW LEVEL SECURITY;

-- Which pending actions a person has hidden from the own inbox, and until when.
CREATE TABLE snooze (
  tenant        TEXT COLLATE "C" NOT NULL REFERENCES tenant (id),
  principal_id  TEXT COLLATE "C" NOT NULL CHECK (principal_id <> ''),
  seq           BIGINT NOT NULL,
  until         BIGINT NOT NULL,
  PRIMARY KEY (tenant, principal_id, seq)
);
CREATE INDEX snooze_action ON snooze (seq);

CREATE POLICY wall ON snooze
USING (tenant = current_setting('gatehouse.tenant', true) OR current_setting('gatehouse.tenant', true) = '*');
ALTER TABLE snooze ENABLE ROW LEVEL SECURITY;
ALTER TABLE snooze FORCE ROW LEVEL SECURITY;
