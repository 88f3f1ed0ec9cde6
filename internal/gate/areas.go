package gate

import "github.com/gatehouse-dev/gatehouse"

// The subsets of [gatehouse.Tx] that functions of several areas take as parameters.
type (
	// changeRecorder records changes of rights or rules: see recordChange.
	changeRecorder interface {
		gatehouse.Clock
		gatehouse.LogWriter
		gatehouse.ConsoleWriter
	}
	// actionMover moves actions, and records the moves.
	actionMover interface {
		gatehouse.Clock
		gatehouse.ActionWriter
		gatehouse.LogWriter
	}
	// pushMover moves actions together with their pushes.
	pushMover interface {
		actionMover
		gatehouse.PushReader
		gatehouse.PushWriter
	}
	// mandateMover changes mandates, and records the changes.
	mandateMover interface {
		gatehouse.Clock
		gatehouse.MandateReader
		gatehouse.MandateWriter
		gatehouse.LogWriter
	}
	// peopleWriter reads, locks and changes people.
	peopleWriter interface {
		gatehouse.Clock
		gatehouse.IdentityReader
		gatehouse.IdentityWriter
	}
	// policyFacts reads the input of a policy's judgement.
	policyFacts interface {
		gatehouse.Clock
		gatehouse.PolicyReader
		gatehouse.IdentityReader
	}
	// vetoFacts is policyFacts, and also reads what a reversal undoes.
	vetoFacts interface {
		policyFacts
		gatehouse.ActionReader
		gatehouse.PushReader
	}
	// voterFacts is policyFacts, and also locks voters.
	voterFacts interface {
		policyFacts
		gatehouse.IdentityWriter
	}
	// pushFacts reads pushes and their actions.
	pushFacts interface {
		gatehouse.Clock
		gatehouse.ActionReader
		gatehouse.PushReader
	}
	// objectReader reads actions, runs and principals, to check who may read an object.
	objectReader interface {
		gatehouse.ActionReader
		gatehouse.IdentityReader
		gatehouse.RunReader
	}
	// ringReader finds the keys of the ring that are active now.
	ringReader interface {
		gatehouse.Clock
		gatehouse.RingReader
	}
	// ringWriter makes and retires keys of the ring.
	ringWriter interface {
		ringReader
		gatehouse.RingWriter
	}
)
