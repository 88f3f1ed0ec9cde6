package postgres

// idRange finds ids in a range, by the index on tenant and id of a table.
func idRange(table string) string {
	return `SELECT id FROM ` + table + ` WHERE tenant = $1 AND id >= $2 AND id < $3`
}

// idRanges are the queries of FindIDs, by the type prefix of the ids.
var idRanges = map[string]string{
	"act_": idRange("action") + ` UNION ` + idRange("action_archive") + ` ORDER BY id LIMIT $4`,
	"apr_": idRange("approval") + ` ORDER BY id LIMIT $4`,
	"psh_": idRange("push") + ` ORDER BY id LIMIT $4`,
	"run_": idRange("run") + ` ORDER BY id LIMIT $4`,
	"stp_": idRange("step") + ` ORDER BY id LIMIT $4`,
	"key_": idRange("api_key") + ` ORDER BY id LIMIT $4`,
	"ses_": idRange("session") + ` ORDER BY id LIMIT $4`,
	"prn_": idRange("principal") + ` ORDER BY id LIMIT $4`,
	"grt_": idRange("action_grant") + ` ORDER BY id LIMIT $4`,
	"mnd_": idRange("mandate") + ` ORDER BY id LIMIT $4`,
}

// FindIDs finds the ids that begin with prefix.
func (t *readTx) FindIDs(prefix string, limit int) (ids []string, err error) {
	if len(prefix) < 4 || idRanges[prefix[:4]] == "" {
		return nil, nil
	}
	// ~ sorts after every character of an id.
	err = t.each(idRanges[prefix[:4]], func(r *row) error { ids = append(ids, r.Text()); return nil }, t.tenant, prefix,
		prefix+"~", limit)
	return ids, err
}
