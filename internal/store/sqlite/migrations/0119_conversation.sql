-- The conversation on a pending action. The counts on the approval spare lists a look at
-- the comments: asked counts the questions without an answer, answered those with one.
ALTER TABLE approval ADD COLUMN comments INTEGER NOT NULL DEFAULT 0 CHECK (comments BETWEEN 0 AND 100);
ALTER TABLE approval ADD COLUMN asked INTEGER NOT NULL DEFAULT 0 CHECK (asked >= 0);
ALTER TABLE approval ADD COLUMN answered INTEGER NOT NULL DEFAULT 0
  CHECK (answered >= 0 AND asked + answered <= comments);
ALTER TABLE approval ADD COLUMN assignee_id TEXT NOT NULL DEFAULT '';
ALTER TABLE approval ADD COLUMN assignee TEXT NOT NULL DEFAULT '' CHECK ((assignee_id = '') = (assignee = ''));

-- answers is the number of the question that an answer belongs to, else 0.
CREATE TABLE comment (
  seq        INTEGER NOT NULL REFERENCES approval (seq),
  number     INTEGER NOT NULL CHECK (number BETWEEN 1 AND 100),
  tenant     TEXT NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('comment', 'question', 'answer')),
  answers    INTEGER NOT NULL CHECK (answers BETWEEN 0 AND number - 1),
  author_id  TEXT NOT NULL CHECK (author_id <> ''),
  author     TEXT NOT NULL,
  text       TEXT NOT NULL CHECK (text <> '' AND octet_length(text) <= 4096),
  at         INTEGER NOT NULL,
  PRIMARY KEY (seq, number),
  CHECK ((kind = 'answer') = (answers > 0))
) STRICT, WITHOUT ROWID;
CREATE TRIGGER comment_frozen BEFORE UPDATE ON comment
BEGIN SELECT RAISE(ROLLBACK, 'a comment is never changed'); END;

-- Which pending actions a person has hidden from the own inbox, and until when.
CREATE TABLE snooze (
  tenant        TEXT NOT NULL REFERENCES tenant (id),
  principal_id  TEXT NOT NULL CHECK (principal_id <> ''),
  seq           INTEGER NOT NULL REFERENCES approval (seq),
  until         INTEGER NOT NULL,
  PRIMARY KEY (tenant, principal_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX snooze_action ON snooze (seq);
