-- The store deletes a sum that reaches 0: its claims are released or archived.
DELETE FROM ceiling_sum WHERE amount = 0;
