package postgres

import "slices"

// The statements of run transitions, for a whole group; see sets.go. The members are of
// different runs and each holds the lock of its run, so no two members write the same step.
const (
	stepsMoved = stepMoved + ` FROM u` + stepGuard
	// A run is looked up by its id alone, however many runs of its tenant have the status.
	runsMoved   = runMoved + ` FROM ` + runByID + ` WHERE run.seq = x.run_seq AND run.status = $3`
	runOutputs  = `UPDATE run_body SET output = $3 FROM ` + runByID + ` WHERE run_body.seq = x.run_seq`
	runByID     = `u CROSS JOIN LATERAL (SELECT r.seq AS run_seq FROM run r WHERE r.tenant = $1 AND r.id = $2 OFFSET 0) x`
	wakeParents = `INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM ` + ofEach + `step
WHERE tenant = $1 AND child_run = $2 AND child_run IS NOT NULL AND status = 'waiting'` + once + ` ON CONFLICT DO NOTHING`
)

// The argument types of a step update.
const stepKinds = "ttti tiit lttt i tt it iiii"

// bodiesSet is updateBodies for a group: all or none.
func bodiesSet() *set {
	types := kinds(stepKinds + "tt")
	return &set{sql: `WITH u AS (` + argsTable(types) + `), w AS (` + ofRow(stepsMoved+` RETURNING seq, tenant, $22 AS input, $23 AS output`) + `),
b AS (INSERT INTO step_body AS b (seq, tenant, item, input, output) SELECT seq, tenant, '', input, output FROM w` + bodiesStay + `)
SELECT CASE WHEN (SELECT count(*) FROM w) = (SELECT count(*) FROM u) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		types: types, subject: 2, key: 8}
}

// sortByRank sorts a member's writes into the order in which groups send them, if all of them
// concern runs. These tables are separate from the others, and each step is written once, so
// only the order of statements of one kind matters.
func (s *Store) sortByRank(writes []query) []query {
	steps := make(map[any]bool, len(writes))
	// The writes repeat a few statements. Each is looked up once and recognized by its text,
	// which is the same string.
	var known []*set
	var texts []string
	sets := make([]*set, len(writes))
	sorted := true
	for i, q := range writes {
		at := slices.Index(texts, q.sql)
		if at < 0 {
			at = len(texts)
			texts, known = append(texts, q.sql), append(known, s.sets[q.sql])
		}
		sets[i] = known[at]
		if sets[i].rank > 0 && q.sql != appendLeaf {
			return writes
		}
		if q.sql == updateStep || q.sql == updateBodies || q.sql == passStep {
			if id := q.args[1]; steps[id] {
				return writes
			} else {
				steps[id] = true
			}
		}
		sorted = sorted && (i == 0 || sets[i-1].rank <= sets[i].rank)
	}
	if sorted {
		return writes
	}
	slices.SortFunc(known, func(a, b *set) int { return a.rank - b.rank })
	list := make([]query, 0, len(writes))
	for _, k := range known {
		for i, q := range writes {
			if sets[i] == k {
				list = append(list, q)
			}
		}
	}
	return list
}

// compatible reports whether a statement can share a set with the others of its member: its subject
// differs from all of theirs.
func (s *set) compatible(others []query, q query) bool {
	if s.subject == 0 {
		return q.sql == appendLeaf
	}
	id := q.args[s.subject-1]
	return !slices.ContainsFunc(others, func(o query) bool { return o.args[s.subject-1] == id })
}

// stepSet is updateStep for a group: all or none.
func stepSet() *set {
	s := allOrNone(2, stepsMoved, kinds(stepKinds)...)
	s.key = 8
	return s
}

// passSet is passStep for a group: all or none.
func passSet() *set {
	types := kinds("tt iitl iii ttt")
	return &set{sql: `WITH u AS (` + argsTable(types) + `), w AS (` +
		ofRow(stepPassed+` FROM u`+stepBlocked+`$10 AS input, $11 AS output, $12 AS worker`) + passedParts +
		`SELECT CASE WHEN (SELECT count(*) FROM w) = (SELECT count(*) FROM u) THEN 0 ELSE gatehouse_refuse('GH001') END`,
		types: types, subject: 2, key: 5}
}

// addRunSets adds the statements of runs to the sets. Their writes come before the leaves.
func addRunSets(sets map[string]*set) {
	two, three := kinds("tt"), kinds("ttt")
	sets[lockRun] = locks(needRun, lockRun, two...)
	sets[runHead] = reads(runHead, two...)
	sets[boardSteps] = reads(boardSteps, three...)
	writes := []struct {
		sql string
		set *set
	}{
		{releaseClaim, writes(0, releaseClaims, kinds("tti")...)},
		{insertUsage, writes(0, usageColumns+`SELECT `+usageValues+` FROM u ORDER BY n`, kinds("ttttittiitiiti")...)},
		{insertAttempt, allOrNone(3, attemptColumns+`SELECT `+attemptValues+` FROM u CROSS JOIN LATERAL (SELECT 1 FROM `+ofStep+` OFFSET 0) s ORDER BY n`,
			kinds("tttiitiittt")...)},
		{updateBodies, bodiesSet()},
		{passStep, passSet()},
		{updateStep, stepSet()},
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
