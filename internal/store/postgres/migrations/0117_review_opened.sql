-- When the recipient's browser first opened the page of a review's link.
ALTER TABLE review ADD COLUMN opened_at BIGINT;
