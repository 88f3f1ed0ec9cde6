-- The persons who may decide, for the question whether anybody may answer a
-- proposal.
CREATE INDEX principal_approver ON principal (tenant, id)
WHERE kind = 'person' AND NOT disabled AND (instr(roles, '"approver"') > 0 OR instr(roles, '"admin"') > 0);
