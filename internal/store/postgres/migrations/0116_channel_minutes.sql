-- The outcomes of a channel's messages in the last minutes, as JSON, and whether the
-- channel fails since too many of them failed.
ALTER TABLE channel_state ADD COLUMN flaky BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE channel_state ADD COLUMN minutes TEXT COLLATE "C" NOT NULL DEFAULT '';
