package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Row is the current row of a result. Its methods read the columns from left to right.
type Row interface {
	Text() string
	JSON() gatehouse.JSON
	Int() int64
	Bool() bool
	Time() time.Time
	// TimePtr is nil for NULL.
	TimePtr() *time.Time
	Hash() [32]byte
	Blob() []byte
	// Null reports whether the next column is NULL, without reading it.
	Null() bool
	Skip(n int)
}

// JSONAt reads a JSON value from the next column; nil for "". It keeps the first error in err.
func JSONAt[T any](r Row, err *error) *T {
	v, e := DecodeJSON[T](r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return v
}

// listAt reads a stored list from the next column. It keeps the first error in err.
func listAt[T ~string](r Row, err *error) []T {
	list, e := DecodeList[T](r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

// membershipsAt is listAt for memberships.
func membershipsAt(r Row, err *error) []gatehouse.Membership {
	list, e := DecodeMemberships(r.Text())
	if e != nil && *err == nil {
		*err = e
	}
	return list
}

// OrNull stores "" as NULL.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// OrNone returns nil without an error instead of ErrNotFound.
func OrNone[T any](row *T, err error) (*T, error) {
	if err == gatehouse.ErrNotFound { //nolint:errorlint // the stores' own, unwrapped
		return nil, nil
	}
	return row, err
}

// FailureArgs returns the arguments for the columns that ScanFailure reads.
func FailureArgs(f *gatehouse.Failure) (code, detail any) {
	if f == nil {
		return nil, nil
	}
	return f.Code, f.Detail
}

// openFlag is 1 if only open rows are wanted, else 0.
func openFlag(open bool) int {
	if open {
		return 1
	}
	return 0
}

// ScanFailure reads code and detail, which are either both NULL or both set.
func ScanFailure(r Row) *gatehouse.Failure {
	if r.Null() {
		r.Skip(2)
		return nil
	}
	return &gatehouse.Failure{Code: r.Text(), Detail: r.Text()}
}

// ScanPrincipal reads a principal.
func ScanPrincipal(r Row) (*gatehouse.Principal, error) {
	var err error
	p := &gatehouse.Principal{
		Tenant: r.Text(), ID: r.Text(), Name: r.Text(), Kind: gatehouse.Kind(r.Text()),
		Roles:  listAt[gatehouse.Role](r, &err),
		Person: r.Text(), Sponsor: r.Text(), Disabled: r.Bool(), CreatedAt: r.Time(), ApproverSince: r.TimePtr(),
		Groups: membershipsAt(r, &err),
	}
	return p, err
}

// ScanRun reads a run without its bodies.
func ScanRun(r Row) *gatehouse.Run {
	return &gatehouse.Run{
		Tenant: r.Text(), ID: r.Text(), Workflow: r.Text(), Version: int(r.Int()), Workspace: r.Text(),
		Status: gatehouse.RunStatus(r.Text()), Stop: gatehouse.RunStatus(r.Text()),
		Trigger: gatehouse.TriggerType(r.Text()), TriggerRef: r.Text(),
		StartedBy: r.Text(), StarterID: r.Text(), ParentRun: r.Text(), ParentStep: r.Text(), RetryOf: r.Text(),
		Writes:  int(r.Int()),
		Failure: ScanFailure(r), CreatedAt: r.Time(), StartedAt: r.TimePtr(), FinishedAt: r.TimePtr(),
		Deadline: r.TimePtr(), Evidence: r.Text(),
	}
}
