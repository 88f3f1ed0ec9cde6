package sqlite

// idsFrom finds ids in a range, by the index of a table's tenant and id.
func idsFrom(table string) string {
	return `SELECT id FROM ` + table + ` WHERE tenant = ?1 AND id >= ?2 AND id < ?3`
}

// rangesOf are the queries of FindIDs, by the type prefix of the ids.
var rangesOf = map[string]string{
	"act_": idsFrom("action") + ` UNION ` + idsFrom("action_archive") + ` ORDER BY id LIMIT ?4`,
	"apr_": idsFrom("approval") + ` ORDER BY id LIMIT ?4`,
	"psh_": idsFrom("push") + ` ORDER BY id LIMIT ?4`,
	"run_": idsFrom("run") + ` ORDER BY id LIMIT ?4`,
	"stp_": idsFrom("step") + ` ORDER BY id LIMIT ?4`,
	"key_": idsFrom("api_key") + ` ORDER BY id LIMIT ?4`,
	"ses_": idsFrom("session") + ` ORDER BY id LIMIT ?4`,
	"prn_": idsFrom("principal") + ` ORDER BY id LIMIT ?4`,
}

// FindIDs reads a range of an index.
func (t *readTx) FindIDs(tenant, prefix string, limit int) (ids []string, err error) {
	if len(prefix) < 4 || rangesOf[prefix[:4]] == "" {
		return nil, nil
	}
	// ~ sorts after every character of an id.
	err = t.each(rangesOf[prefix[:4]], func(r *stmt) error { ids = append(ids, r.text()); return nil }, tenant, prefix, prefix+"~", limit)
	return ids, err
}
