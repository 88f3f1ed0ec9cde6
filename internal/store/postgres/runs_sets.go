package postgres

// What a run's transitions lock, read and write as one statement for a whole
// group; see sets.go. Members are of different runs, each under its run's lock,
// so that no two of them write the same step.
const (
	stepsMoved = stepMoved + ` FROM u` + stepHeld
	// A run is found by its id alone, however many of its tenant are in the state.
	runsMoved   = runMoved + ` FROM ` + runByID + ` WHERE run.seq = x.run_seq AND run.status = $3`
	runOutputs  = `UPDATE run_body SET output = $3 FROM ` + runByID + ` WHERE run_body.seq = x.run_seq`
	runByID     = `u CROSS JOIN LATERAL (SELECT r.seq AS run_seq FROM run r WHERE r.tenant = $1 AND r.id = $2 OFFSET 0) x`
	wakeParents = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM ` + ofEach + `step
WHERE tenant = $1 AND child_run = $2 AND child_run IS NOT NULL AND status = 'waiting'` + once + ` ON CONFLICT DO NOTHING`
)

// The arguments of what moves a step.
const stepKinds = "ttti tiit lttt i tt it iiii"

// withBodies is updateBodies for a group: all or none.
func withBodies() *set {
	types := kinds(stepKinds + "tt")
	return &set{sql: `WITH u AS (` + rows(types) + `), w AS (` + ofRow(stepsMoved+` RETURNING seq, tenant, $22 AS input, $23 AS output`) + `),
b AS (INSERT INTO step_body AS b (seq, tenant, item, input, output) SELECT seq, tenant, '', input, output FROM w` + bodiesStay + `)
SELECT CASE WHEN (SELECT count(*) FROM w) = (SELECT count(*) FROM u) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		types: types, subject: 2}
}

// addRunSets adds the statements of runs to those that groups send. Their writes
// come before the leaves.
func addRunSets(sets map[string]*set) {
	two, three := kinds("tt"), kinds("ttt")
	sets[lockRun] = locks(needRun, lockRun, two...)
	sets[runHead] = reads(runHead, two...)
	sets[boardSteps] = reads(boardSteps, three...)
	sets[openItems] = reads(openItems, three...)
	writes := []struct {
		sql string
		set *set
	}{
		{releaseClaim, writes(0, releaseClaims, kinds("tti")...)},
		{insertUsage, writes(0, usageColumns+`SELECT `+usageValues+` FROM u ORDER BY n`, kinds("ttttittiitiiti")...)},
		{insertAttempt, writes(3, attemptColumns+`SELECT `+attemptValues+` FROM u ORDER BY n`, kinds("tttiitiittt")...)},
		{updateBodies, withBodies()},
		{updateStep, allOrNone(2, stepsMoved, kinds(stepKinds)...)},
		{moveRun, allOrNone(2, runsMoved, kinds("ttttt itt ii")...)},
		{setRunOutput, writes(2, runOutputs, kinds("ttt")...)},
		{wakeParent, writes(0, wakeParents, two...)},
		{insertReflexion, writes(0, reflexionColumns+`SELECT `+reflexionValues+` FROM u ORDER BY n`, kinds("ttttitttti")...)},
	}
	for i, w := range writes {
		w.set.rank = i - len(writes)
		sets[w.sql] = w.set
	}
}
