package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// exportAudit sends every entry that the query selects as CSV, newest first. An export is complete
// or refused: the reader of a file cannot see that rows are missing.
func (c *Console) exportAudit(v *view) error {
	q, err := readAuditQuery(v.r.URL.Query())
	if err != nil {
		return err
	}
	head, err := c.cfg.Audit.Head(v.ctx)
	if err != nil {
		return err
	}
	s, err := c.newAuditSearch(v, q)
	if err != nil {
		return err
	}
	rows, next, err := s.newest(head.Size, exportedRows+1, exportedReads)
	if err != nil {
		return err
	}
	if next > 0 || len(rows) > exportedRows {
		return gatehouse.E(gatehouse.CodeInvalid,
			"more than %d entries match, or more than %d would have to be read: choose a shorter time, or read "+
				"the log with \"gatehouse audit\"",
			exportedRows, exportedReads)
	}
	p := &auditPage{q: q, rows: rows}
	if err := p.findNames(c, v); err != nil {
		return err
	}

	var out bytes.Buffer
	w := csv.NewWriter(&out)
	records := [][]string{{
		"number", "time", "by", "by_id", "sentence", "type", "subject", "action_id", "from", "to", "digest",
		"leaf_hash", "leaf",
	}}
	for _, row := range rows {
		l := row.leaf
		records = append(records, []string{
			strconv.FormatInt(row.entry.Index, 10), l.At.UTC().Format(time.RFC3339Nano),
			escapeFormula(p.actorPart(l.Actor).text), escapeFormula(l.Actor), escapeFormula(p.plainSentence(row)),
			escapeFormula(l.Type), escapeFormula(l.Subject), escapeFormula(l.ActionID), escapeFormula(l.From),
			escapeFormula(l.To), escapeFormula(string(l.Digest)), escapeFormula(rootText(row.entry.LeafHash)),
			string(row.entry.Body),
		})
	}
	if err := w.WriteAll(records); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="audit-`+v.now.Format("20060102-150405")+`.csv"`)
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(out.Bytes())
	return nil
}

// escapeFormula puts an apostrophe before a text that a spreadsheet would read as a formula
// (https://owasp.org/www-community/attacks/CSV_Injection). A leaf needs no apostrophe: it begins with "{".
func escapeFormula(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@＝＋－＠\t\r\n", first) {
		return "'" + text
	}
	return text
}
