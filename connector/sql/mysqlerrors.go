package sqlconn

import "github.com/gatehouse-dev/gatehouse/connector"

// errorClass is the classification of a server's error, for a transaction that is rolled back.
type errorClass struct {
	kind connector.Kind
	code string
}

// mysqlErrors classifies the errors of MariaDB and MySQL, by number. All other errors are "sql_error".
// https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference
var mysqlErrors = classesOf(map[errorClass][]uint16{
	// Deadlock; a record that another transaction changed (innodb_snapshot_isolation).
	{connector.Transient, "serialization"}: {1213, 1020},
	{connector.Transient, "busy"}:          {1205},
	{connector.Transient, "timeout"}:       {1969, 3024},
	// A statement that was killed, or whose table was redefined.
	{connector.Transient, "interrupted"}: {1317, 1615},
	// Full disks and memory, too many connections, shutdown, killed sessions, a cluster's node
	// that is not ready.
	{connector.Transient, "unavailable"}: {
		1021, 1037, 1038, 1040, 1041, 1047, 1053, 1079, 1080, 1114, 1135, 1158, 1159, 1160, 1161, 1203, 1226, 1927,
	},
	// Rights, and servers that only read.
	{connector.Terminal, "forbidden"}: {1044, 1045, 1142, 1143, 1227, 1290, 1370, 1698, 1792, 1836},
	// No such table or column, or one that was altered under the transaction.
	{connector.Terminal, "schema_changed"}: {1054, 1146, 1412},
	// Keys, NOT NULL, a column without default, foreign keys, CHECK of MySQL and of MariaDB.
	{connector.Terminal, "constraint_violation"}: {
		1048, 1062, 1216, 1217, 1364, 1451, 1452, 1557, 1586, 1761, 1762, 3819, 4025,
	},
	{connector.Terminal, "invalid_value"}: {1264, 1265, 1292, 1366, 1367, 1406, 1411, 1416, 1525, 1690, 3140, 3141},
})

func classesOf[Number comparable](classes map[errorClass][]Number) map[Number]errorClass {
	out := make(map[Number]errorClass)
	for class, numbers := range classes {
		for _, n := range numbers {
			out[n] = class
		}
	}
	return out
}
