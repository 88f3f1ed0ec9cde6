-- The outcomes of a channel's messages in the last minutes, as JSON, and whether the
-- channel fails since too many of them failed.
ALTER TABLE channel_state ADD COLUMN flaky INTEGER NOT NULL DEFAULT 0 CHECK (flaky IN (0, 1));
ALTER TABLE channel_state ADD COLUMN minutes TEXT NOT NULL DEFAULT '';
