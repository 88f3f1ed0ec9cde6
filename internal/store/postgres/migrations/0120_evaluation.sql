-- The results of registered evaluators for a question, as a JSON array in the order of their
-- arrival; '' for none.
ALTER TABLE approval ADD COLUMN evaluated TEXT NOT NULL DEFAULT '';
