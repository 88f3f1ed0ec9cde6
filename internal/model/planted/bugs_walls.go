package main

// wallBugs open a hole in one of the two barriers between tenants on PostgreSQL. The other barrier
// would hide the hole, so the test checks each barrier by itself.
func wallBugs() []bug {
	return []bug{
		plant("a push on PostgreSQL is found from another tenant", "16", postgres+"/pushes.go",
			"FROM push WHERE tenant = r.tenant AND id = r.id OFFSET 0", "FROM push WHERE r.tenant <> '' AND id = r.id OFFSET 0",
			postgres, "TestStatementsSeparateTenants/TenantWalls"),
		plant("a list on PostgreSQL shows other tenants' pushes", "16", postgres+"/pages.go",
			`where.add("h.tenant = ?", t.tenant)`, `where.add("?::text <> ''", t.tenant)`, postgres,
			"TestStatementsSeparateTenants/TenantWalls"),
		{"a key on PostgreSQL is revoked from another tenant", "16", []edit{
			{"internal/store/shared/identity.go", "FROM api_key WHERE tenant = $1 AND id = $2`",
				"FROM api_key WHERE CAST($1 AS text) <> '' AND id = $2`"},
			{"internal/store/shared/identity.go", "SET revoked_at = $1 WHERE tenant = $2 AND",
				"SET revoked_at = $1 WHERE CAST($2 AS text) <> '' AND"},
		}, postgres, "TestStatementsSeparateTenants/TenantWalls"},
		plant("every transaction sees all tenants", "16", postgres+"/tenantscope.go",
			"\tt.tenant = tenant\n}", "\tt.tenant = AllTenants\n}", postgres, "TestPoliciesSeparateTenants/TenantWalls"),
		plant("a batch of reads on PostgreSQL sees all tenants", "16", postgres+"/readbatch.go",
			"t.useTenantsOf(queries...)", "t.tenant = AllTenants", postgres, "TestReadBatchOfTenants"),
		plant("a group on PostgreSQL sees all tenants", "16", postgres+"/groupmerge.go",
			"t.useTenantsOf(queries...)", "t.tenant = AllTenants", postgres, "TestGroupSeesItsTenants"),
		plant("a tenant's name selects all tenants", "16", postgres+"/tenantscope.go",
			"tenant = \"\"\n", "_ = tenant\n", postgres, "TestTenantCalledAll"),
		plant("row-level security does not apply to the tables' owner", "16", postgres+"/migrations/0100_base.sql",
			"    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t.name);\n", "", postgres,
			"TestPoliciesSeparateTenants/TenantWalls"),
		plant("a row-level policy allows every write", "16", postgres+"/migrations/0100_base.sql",
			"current_setting('gatehouse.tenant', true) = '*')$p$",
			"current_setting('gatehouse.tenant', true) = '*') WITH CHECK (true)$p$",
			postgres, "TestPoliciesSeparateTenants/TenantWalls"),
		plant("a copied store has no row-level security for the owner", "16", "internal/migratestore/move.go",
			"err = walls(ctx, tx, `FORCE`)", "err = walls(ctx, tx, `NO FORCE`)", "internal/migratestore", "TestMove"),
	}
}
