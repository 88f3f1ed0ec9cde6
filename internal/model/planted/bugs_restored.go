package main

const restored = gate + "/restored.go"

// restoredBugs mark the wrong pushes as unknown after a backup was restored, or
// settle one without proof.
func restoredBugs() []bug {
	return []bug{
		{"actions approved after a restore are held back, too", "promise 6", []edit{
			{restored, "if !p.CreatedAt.Before(r.Before) || p.Connector", "if p.Connector"},
			{restored, "if !p.CreatedAt.Before(r.Before) {\n\t\t\treturn nil", "if false {\n\t\t\treturn nil"},
		}, gate, "TestMarkUnknown"},
		plant("an administrator marks the pushes of other tenants", "16", restored,
			"r.Tenant != \"\" && r.Tenant != own", "false", gate, "TestMarkUnknown"),
		plant("a dry run marks", "contract", restored,
			"if out.DryRun {", "if false {", "internal/model", "TestModel"),
		plant("an absent class C effect counts as proof", "5, 15", "internal/dispatch/targetreads.go",
			"finding == connector.Absent && !callsOnce(op.Class)", "finding == connector.Absent && op.Class != \"\"",
			"internal/model", "TestModel"),
	}
}
