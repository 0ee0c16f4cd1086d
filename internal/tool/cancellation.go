package tool

import "time"

// Cancellation says of a call that somebody has cancelled it, or that its time was over, and how it ended.
type Cancellation struct {
	By      Canceler      `json:"requested_by"`
	At      time.Time     `json:"requested_at"`
	Reason  string        `json:"reason,omitempty"` // as it was given, cut
	Outcome CancelOutcome `json:"outcome"`
}

// Canceler is who has cancelled a call.
type Canceler string

const (
	// notifications/cancelled, or a person at a command of this program
	CanceledByClient Canceler = "client"
	// on 2026-07-28 over HTTP that is how a client cancels; a lost connection looks the same
	CanceledByClosedStream Canceler = "closed_stream"
	CanceledByLostClient   Canceler = "connection_lost" // the client is gone, and has cancelled nothing
	CanceledBySessionEnd   Canceler = "session_ended"
	CanceledByHubStop      Canceler = "hub_stopping"
	CanceledByTimeout      Canceler = "timeout"
	CanceledBySibling      Canceler = "sibling" // another call of the same batch has failed
	CanceledByHub          Canceler = "hub"     // the tool is not offered any more, say
)

// CancelOutcome says how a cancelled call ended.
type CancelOutcome string

const (
	OutcomeNotBegun CancelOutcome = "not_begun" // nothing that can have an effect had begun
	// its tool had ended by then, or ended as if nobody had cancelled the call
	OutcomeEndedAnyway CancelOutcome = "ended_anyway"
	OutcomeUnknown     CancelOutcome = "unknown" // it may have taken effect
)

// CanceledBy returns the failure of a call that by has cancelled at this moment. It is the cause
// with which the call's context ends. message says what happened, and what to do.
func CanceledBy(by Canceler, reason, message string) *Failure {
	return &Failure{Class: ClassCanceled, Message: message, Cancel: &Cancellation{By: by, At: time.Now().UTC(),
		Reason: reason}}
}
