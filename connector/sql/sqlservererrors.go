package sqlconn

import "github.com/gatehouse-dev/gatehouse/connector"

// sqlserverErrors classifies the errors of SQL Server, by number. All other errors are "sql_error".
// https://learn.microsoft.com/en-us/sql/relational-databases/errors-events/database-engine-events-and-errors
var sqlserverErrors = classesOf(map[errorClass][]int32{
	// Deadlock; conflicts of snapshots and of memory-optimized tables.
	{connector.Transient, "serialization"}: {1205, 3960, 3961, 41301, 41302, 41305, 41325},
	// Lock timeout; an object that another transaction is making.
	{connector.Transient, "busy"}: {1222, 2714},
	// Memory, log and files that are full, shutdown, killed sessions, databases in transition, and
	// Azure's throttling.
	{connector.Transient, "unavailable"}: {
		596, 701, 802, 921, 922, 924, 952, 976, 978, 983, 1101, 1105, 3908, 6005, 8645, 8651, 9001, 9002, 10928, 10929,
		17142, 17189, 40197, 40501, 40613, 49918, 49919, 49920,
	},
	// Logins, rights, and read-only databases.
	{connector.Terminal, "forbidden"}: {
		229, 230, 262, 297, 300, 916, 1088, 3906, 4060, 18450, 18452, 18456, 18470, 18486, 18487, 18488,
	},
	// No such column or table.
	{connector.Terminal, "schema_changed"}: {207, 208},
	// Foreign keys and CHECK, NOT NULL, unique indexes and keys.
	{connector.Terminal, "constraint_violation"}: {515, 547, 2601, 2627},
	// Conversions, overflows, and texts that are too long.
	{connector.Terminal, "invalid_value"}: {
		220, 232, 235, 241, 242, 245, 248, 257, 295, 296, 517, 529, 2628, 3606, 8114, 8115, 8152, 8169, 9420, 13609,
	},
})
