-- How often a push was put back since the breaker of its connector was open. Such a
-- claim is none that came to nothing, which is what a poisonous payload is told by.
ALTER TABLE push ADD COLUMN put_back INTEGER NOT NULL DEFAULT 0 CHECK (put_back >= 0);
