package sqlconn

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/gatehouse-dev/gatehouse"
)

func sqlserverKind(dataType string) kind {
	switch dataType {
	case "tinyint", "smallint", "int", "bigint":
		return kindInteger
	case "decimal", "numeric", "money", "smallmoney", "float", "real":
		return kindNumber
	case "bit":
		return kindBool
	case "json":
		return kindJSON
	case "datetime", "smalldatetime", "datetime2", "datetimeoffset":
		return kindTime
	case "char", "varchar", "text", "nchar", "nvarchar", "ntext", "date", "time":
		return kindText
	case "binary", "varbinary", "image":
		return kindBinary
	case "timestamp":
		return kindRowVersion
	}
	return kindOther // uniqueidentifier, xml, and what has only a text form
}

// sqlserverType is the declaration of a type, from the numbers of the catalogue.
func sqlserverType(dataType string, length, precision, scale int) string {
	switch dataType {
	case "nchar", "nvarchar":
		length /= 2 // two bytes for each character; -1, which means max, becomes 0
		fallthrough
	case "char", "varchar", "binary", "varbinary":
		if length <= 0 {
			return dataType + "(max)"
		}
		return fmt.Sprintf("%s(%d)", dataType, length)
	case "decimal", "numeric":
		return fmt.Sprintf("%s(%d,%d)", dataType, precision, scale)
	case "datetime2", "datetimeoffset", "time":
		return fmt.Sprintf("%s(%d)", dataType, scale)
	case "timestamp":
		return "rowversion"
	}
	return dataType
}

// read lets the server format the values that the driver would return in another form.
func (d sqlserverDialect) read(c column) string {
	name := d.quote(c.name)
	dataType, _, _ := strings.Cut(c.decl, "(")
	switch {
	case dataType == "datetimeoffset":
		return "CONVERT(nvarchar(40), " + name + ", 127)" // RFC 3339 in UTC
	case c.kind == kindTime:
		return "CONVERT(nvarchar(40), " + name + ", 126)" // RFC 3339 without a zone
	case dataType == "date":
		return "CONVERT(nvarchar(10), " + name + ", 23)"
	case dataType == "time":
		return "CONVERT(nvarchar(16), " + name + ", 121)"
	case c.kind == kindText || c.kind == kindJSON || c.kind == kindOther:
		return "CONVERT(nvarchar(max), " + name + ")"
	}
	return name
}

func (sqlserverDialect) decode(c column, raw any) (cell, error) {
	switch v := raw.(type) {
	case nil:
		return cell{"null", true}, nil
	case int64:
		return cell{gatehouse.JSON(strconv.FormatInt(v, 10)), true}, nil
	case bool:
		return cell{gatehouse.JSON(strconv.FormatBool(v)), true}, nil
	case float64:
		bits := 64
		if c.decl == "real" {
			bits = 32
		}
		return cell{gatehouse.JSON(strconv.FormatFloat(v, 'g', -1, bits)), true}, nil
	case []byte:
		if c.kind == kindNumber { // a decimal's text
			return cell{gatehouse.JSON(v), true}, nil
		}
		return cell{gatehouse.StringJSON("0x" + hex.EncodeToString(v)), true}, nil
	case string:
		if c.kind == kindJSON {
			if j, err := gatehouse.Canonicalize([]byte(v)); err == nil {
				return cell{j, true}, nil
			}
			return cell{gatehouse.StringJSON(v), false}, nil
		}
		restorable := c.kind != kindOther || c.decl == "uniqueidentifier" || c.decl == "xml"
		return cell{gatehouse.StringJSON(v), restorable && utf8.ValidString(v)}, nil
	}
	return cell{}, fmt.Errorf("sqlconn: SQL Server gave a %T", raw)
}

// bind passes integers, truth values and bytes as such, and points in time in UTC without a zone
// where the column has none. Other values are Unicode texts, which the server converts to the column's
// type. But an ASCII text of at most 8,000 characters for a char or varchar column is passed as a
// varchar: comparing the column with a Unicode text would lock the whole table instead of the row.
func (sqlserverDialect) bind(c column, v gatehouse.JSON) any {
	if isNull(v) {
		return nil
	}
	s, isText := v.Text()
	if !isText || c.kind == kindJSON {
		s = string(v)
	}
	switch c.kind {
	case kindInteger:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		switch v {
		case "true":
			return int64(1)
		case "false":
			return int64(0)
		}
	case kindBool:
		if isBool(v) {
			return v == "true"
		}
	case kindTime:
		if t, ok := parseTime(s); ok {
			layout := "2006-01-02T15:04:05.999999999"
			if strings.HasPrefix(c.decl, "datetimeoffset") {
				layout = time.RFC3339Nano
			}
			return t.UTC().Format(layout)
		}
	case kindBinary, kindRowVersion:
		if b, ok := binary(s); ok {
			return b
		}
	case kindText:
		if strings.HasPrefix(c.decl, "varchar(") || strings.HasPrefix(c.decl, "char(") {
			if isASCII(s) && len(s) > 0 && len(s) <= 8000 {
				return mssql.VarChar(s)
			}
		}
	}
	return s
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
