package dispatch

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// verdict is the consequence of a failed call.
type verdict string

const (
	verdictRetry   verdict = "retry"
	verdictFailed  verdict = "failed"
	verdictUnknown verdict = "unknown"
)

// judge decides about a failed call. clean says that every earlier attempt is
// proven to be without effect, spent that no attempt is left.
//
//	            A, B                        C
//	not_sent    retry                       retry
//	transient   retry                       end, since the one call was made
//	ambiguous   retry                       unknown
//	terminal    end                         end
//
// "end", and a retry without attempts left, is failed when all attempts are
// proven to be without effect, else unknown. A spent ambiguous call is unknown.
func judge(class connector.Class, kind connector.Kind, clean, spent bool) verdict {
	end := verdictUnknown
	switch kind {
	case connector.Terminal:
		if clean {
			end = verdictFailed
		}
		return end
	case connector.NotSent, connector.Transient:
		if clean {
			end = verdictFailed
		}
		if spent || once(class) && (kind == connector.Transient || !clean) {
			return end
		}
		return verdictRetry
	default:
		if once(class) || spent {
			return end
		}
		return verdictRetry
	}
}

// once reports whether a class allows only one automatic call; true for an
// unknown class.
func once(c connector.Class) bool { return c != connector.ClassA && c != connector.ClassB }

// The sources of receipts; see [gatehouse.Receipt]. sourceCheck marks an
// attempt that ended before its call because the target could not be checked.
const (
	sourceCall     = "call"
	sourceCheck    = "check"
	sourceReceipt  = "receipt"
	sourceReadBack = "read_back"
	sourceOperator = "operator"
)

// receiptOutcome returns the receipt outcome of a failed call.
func receiptOutcome(k connector.Kind) gatehouse.ReceiptOutcome {
	switch k {
	case connector.NotSent:
		return gatehouse.ReceiptNotSent
	case connector.Transient:
		return gatehouse.ReceiptTransient
	case connector.Terminal:
		return gatehouse.ReceiptTerminal
	}
	return gatehouse.ReceiptAmbiguous
}
