package shared

// idRanges holds, by the prefix of the ids, the statement that finds the ids of a range.
var idRanges = map[string]string{
	"act_": `
SELECT id FROM action WHERE tenant = $1 AND id >= $2 AND id < $3
UNION SELECT id FROM action_archive WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"apr_": `SELECT id FROM approval WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"psh_": `SELECT id FROM push WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"run_": `SELECT id FROM run WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"stp_": `SELECT id FROM step WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"key_": `SELECT id FROM api_key WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"ses_": `SELECT id FROM session WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"prn_": `SELECT id FROM principal WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"grt_": `SELECT id FROM action_grant WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"mnd_": `SELECT id FROM mandate WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"dlg_": `SELECT id FROM delegation WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"dev_": `SELECT id FROM device WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
	"rgk_": `SELECT id FROM ring_key WHERE tenant = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4`,
}

// FindIDs finds the ids that begin with prefix.
func (t Reads) FindIDs(prefix string, limit int) ([]string, error) {
	if len(prefix) < 4 || idRanges[prefix[:4]] == "" {
		return nil, nil
	}
	// ~ sorts after every character of an id.
	return list(t, scanText, idRanges[prefix[:4]], t.Tenant(), prefix, prefix+"~", limit)
}
