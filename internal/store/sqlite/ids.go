package sqlite

// idsFrom returns the query for the ids of a table in a range, by the index on
// tenant and id.
func idsFrom(table string) string {
	return `SELECT id FROM ` + table + ` WHERE tenant = ?1 AND id >= ?2 AND id < ?3`
}

// rangesOf maps the type prefix of an id to the query of FindIDs.
var rangesOf = map[string]string{
	"act_": idsFrom("action") + ` UNION ` + idsFrom("action_archive") + ` ORDER BY id LIMIT ?4`,
	"apr_": idsFrom("approval") + ` ORDER BY id LIMIT ?4`,
	"psh_": idsFrom("push") + ` ORDER BY id LIMIT ?4`,
	"run_": idsFrom("run") + ` ORDER BY id LIMIT ?4`,
	"stp_": idsFrom("step") + ` ORDER BY id LIMIT ?4`,
	"key_": idsFrom("api_key") + ` ORDER BY id LIMIT ?4`,
	"ses_": idsFrom("session") + ` ORDER BY id LIMIT ?4`,
	"prn_": idsFrom("principal") + ` ORDER BY id LIMIT ?4`,
	"grt_": idsFrom("action_grant") + ` ORDER BY id LIMIT ?4`,
	"mnd_": idsFrom("mandate") + ` ORDER BY id LIMIT ?4`,
}

// FindIDs reads a range of the index on ids.
func (t *readTx) FindIDs(prefix string, limit int) (ids []string, err error) {
	if len(prefix) < 4 || rangesOf[prefix[:4]] == "" {
		return nil, nil
	}
	// ~ sorts after every character of an id.
	err = t.each(rangesOf[prefix[:4]], func(r *stmt) error { ids = append(ids, r.Text()); return nil }, t.tenant,
		prefix, prefix+"~", limit)
	return ids, err
}
