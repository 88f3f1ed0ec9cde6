package main

const (
	archived      = "internal/gate/archive.go"
	sharedArchive = "internal/store/shared/archive.go"
	litearc       = sqlite + "/archive.go"
	invariants    = "internal/invariants"
)

// archiveBugs break these rules: an ended action is archived after its retention, together with its family, and can
// still be found.
func archiveBugs() []bug {
	return []bug{
		plant("an archived action's key is free again", "5, promise 4", litearc,
			"if err == nil && n > 0 {\n\t\treturn gatehouse.ErrConflict",
			"if err == nil && n < 0 {\n\t\treturn gatehouse.ErrConflict", sqlite, conform+"ArchiveStays"),
		plant("an action that a run awaits is archived", "13, 18", litearc,
			"AND r.status <> 'succeeded' AND", "AND r.status = 'none' AND", sqlite, conform+"ArchivePins"),
		plant("a dead letter is archived", "promise 6", litearc,
			"'canceled'\n    AND h.closed_at IS NULL)\n  OR a.status = 'failed' AND NOT EXISTS (SELECT 1 FROM push h WHERE "+
				"h.action_seq = a.seq AND h.closed_at IS NOT NULL)\n",
			"'canceled' AND h.status <> 'failed')\n", sqlite, conform+"ArchivePins"),
		plant("an unsent push is archived", "3, 13", litearc,
			"h.status <> 'applied' AND h.status <> 'canceled'", "h.status = 'none'", sqlite, conform+"ArchivePins"),
		plant("a claim that still counts is archived", "10", litearc,
			"c.released_at IS NULL AND c.counted_at > ?1",
			"c.released_at IS NULL AND c.counted_at < ?1", sqlite, conform+"ArchivePins"),
		plant("an action is archived without its family", "16", sharedArchive,
			"if !family[i].Related {", "if !family[i].Related || true {", sqlite, conform+"ArchiveFamilies"),
		plant("a planned family is not checked again", "13", litearc,
			"if !unchanged {", "if !unchanged && false {", sqlite, conform+"ArchivePins"),
		plant("the retention counts from the proposal", "promise 6", sharedArchive,
			"e.EndedAt.Before(before)", "e.ProposedAt.Before(before)", gate, "TestArchiverKeepsTheRetention"),
		plant("a batch is archived without its entry in the log", "14, promise 7", archived,
			"err = tx.AppendLeaf(&gatehouse.Leaf{",
			"err = func(*gatehouse.Leaf) error { return nil }(&gatehouse.Leaf{", gate,
			"TestArchiverKeepsTheRetention"),
		plant("another tenant finds archived actions", "16", sharedArchive,
			"FROM action_archive WHERE tenant = $1 AND id = $2\nUNION", "FROM action_archive WHERE $1 <> '' AND id = $2\nUNION",
			sqlite, conform+"ArchiveWalls"),
		plant("a late receipt counts as the result", "12", "archive.go",
			"if !c.Late {", "if !c.Late || true {", sqlite, conform+"ArchiveRoundTrip"),
		plant("a document is not compared with its hash", "promise 7", "archive.go",
			"if sha256.Sum256([]byte(a.Document)) != a.SHA256 {", "if false {", invariants, "TestDocuments"),
		plant("a step is not woken by an archived action", "18, 19", sqlite+"/runs_steps.go",
			" UNION ALL SELECT status FROM action_archive WHERE tenant = ?1 AND id = ?2`", "`", sqlite, conform+"ArchiveStays"),
		plant("an action is deleted without a copy", "promise 6", sqlite+"/migrations/0100_base.sql",
			"CREATE TRIGGER action_kept BEFORE DELETE ON action\nWHEN NOT EXISTS (",
			"CREATE TRIGGER action_kept BEFORE DELETE ON action\nWHEN 1 = 2 AND NOT EXISTS (", sqlite, "TestKeptButForTheCopy"),
		plant("two archivers archive the same action", "promise 6", postgres+"/archive.go",
			"if !locked {", "if !locked && false {", postgres, "TestArchiversPassEachOther"),
	}
}
