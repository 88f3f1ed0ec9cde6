package gatehouse

import "slices"

// The transition tables of runs and steps; see transition.go.
var (
	runMoves = map[RunStatus][]RunStatus{
		"":        {RunQueued},
		RunQueued: {RunRunning, RunCanceled},
		RunRunning: {
			RunWaitingApproval, RunWaiting, RunRetrying, RunSucceeded, RunFailed, RunCanceled,
		},
		RunWaitingApproval: {RunRunning, RunFailed, RunCanceled},
		RunWaiting:         {RunRunning, RunFailed, RunCanceled},
		RunRetrying:        {RunRunning, RunCanceled},
		RunSucceeded:       nil,
		RunFailed:          nil,
		RunCanceled:        nil,
	}
	stepMoves = map[StepStatus][]StepStatus{
		"":          {StepBlocked, StepReady, StepSucceeded},
		StepBlocked: {StepReady, StepCanceled},
		StepReady:   {StepRunning, StepCanceled},
		StepRunning: {
			StepSucceeded, StepWaitingApproval, StepWaiting, StepRetrying, StepFailed, StepCanceled,
		},
		StepWaitingApproval: {StepReady, StepSucceeded, StepFailed, StepCanceled},
		StepWaiting:         {StepReady, StepSucceeded, StepFailed, StepCanceled},
		StepRetrying:        {StepReady, StepCanceled},
		StepSucceeded:       nil,
		StepFailed:          nil,
		StepCanceled:        nil,
	}
)

// CanMove reports whether the table has the transition.
func (s RunStatus) CanMove(to RunStatus) bool { return slices.Contains(runMoves[s], to) }

// CanMove reports whether the table has the transition.
func (s StepStatus) CanMove(to StepStatus) bool { return slices.Contains(stepMoves[s], to) }

// PathTo returns the states to move through from s to the given one, which comes
// last: directly, or through running. It is nil when there is no such path, and
// when s equals to.
func (s RunStatus) PathTo(to RunStatus) []RunStatus {
	switch {
	case s.CanMove(to):
		return []RunStatus{to}
	case s != to && s.CanMove(RunRunning) && RunRunning.CanMove(to):
		return []RunStatus{RunRunning, to}
	}
	return nil
}

// RunStatuses lists the states of a run in the order of the table.
func RunStatuses() []RunStatus {
	return []RunStatus{
		RunQueued, RunRunning, RunWaitingApproval, RunWaiting, RunRetrying, RunSucceeded, RunFailed, RunCanceled,
	}
}

// StepStatuses lists the states of a step in the order of the table.
func StepStatuses() []StepStatus {
	return []StepStatus{
		StepBlocked, StepReady, StepRunning, StepWaitingApproval, StepWaiting, StepRetrying, StepSucceeded, StepFailed,
		StepCanceled,
	}
}

// StatusOfSteps derives the state of a started run from its steps and their open items. stop is the
// final state of a stopping run; "" while the run continues. A run has succeeded if and only if
// every step has.
func StatusOfSteps(steps []*Step, stop RunStatus) RunStatus {
	count := make(map[StepStatus]int, 8)
	for _, s := range steps {
		count[s.Status]++
		for _, open := range s.OpenItems {
			count[open]++
		}
	}
	switch {
	case count[StepSucceeded] == len(steps):
		return RunSucceeded
	case count[StepReady]+count[StepRunning] > 0:
		return RunRunning
	case count[StepWaitingApproval] > 0:
		return RunWaitingApproval
	case count[StepRetrying] > 0:
		return RunRetrying
	case count[StepWaiting] > 0:
		return RunWaiting
	case stop != "":
		return stop
	}
	return RunFailed
}
