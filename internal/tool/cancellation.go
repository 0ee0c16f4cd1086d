package tool

import "time"

// Cancellation holds the four facts of a call that somebody has cancelled, or whose time was over: what was known of
// cancellation at the tool's server, the request, what became of it on its way, and how the call ended.
type Cancellation struct {
	Support  CancelSupport  `json:"declared_support"`
	By       Canceler       `json:"requested_by"`
	At       time.Time      `json:"requested_at"`
	Reason   string         `json:"reason,omitempty"` // as it was given, cut
	Delivery CancelDelivery `json:"delivery"`
	Outcome  CancelOutcome  `json:"outcome"`
}

// CancelSupport says how a cancellation reaches a tool. Whether a server of MCP obeys it is nowhere declared.
type CancelSupport string

const (
	SupportNotification CancelSupport = "notification"  // notifications/cancelled, which a server may ignore
	SupportClosedStream CancelSupport = "closed_stream" // on 2026-07-28 over HTTP: the request's stream is closed
	SupportHub          CancelSupport = "hub"           // the tool runs within the hub, which ends it
	SupportUnknown      CancelSupport = "unknown"       // the server had no connection
)

// Canceler is who has cancelled a call.
type Canceler string

const (
	CanceledByClient       Canceler = "client"          // notifications/cancelled, or a person at a command of this program
	CanceledByClosedStream Canceler = "closed_stream"   // on 2026-07-28 over HTTP that is how a client cancels; a lost connection looks the same
	CanceledByLostClient   Canceler = "connection_lost" // the client is gone, and has cancelled nothing
	CanceledBySessionEnd   Canceler = "session_ended"
	CanceledByHubStop      Canceler = "hub_stopping"
	CanceledByTimeout      Canceler = "timeout"
	CanceledBySibling      Canceler = "sibling" // another call of the same batch has failed
	CanceledByHub          Canceler = "hub"     // the tool is not offered any more, say
)

// CancelDelivery says what is known of a cancellation on its way to the server.
type CancelDelivery string

const (
	DeliverySent         CancelDelivery = "sent"         // it has left the hub
	DeliveryAcknowledged CancelDelivery = "acknowledged" // the server has answered the call after it
	DeliveryUnknown      CancelDelivery = "unknown"      // it could not be sent, or nobody knows
	DeliveryNotNeeded    CancelDelivery = "not_needed"   // nothing of the call was running at the server, or it was let finish
)

// CancelOutcome says how a cancelled call ended.
type CancelOutcome string

const (
	OutcomeBeforeEffect   CancelOutcome = "stopped_before_effect"
	OutcomeStoppedPartly  CancelOutcome = "stopped_partly" // on the way: part of its effect may be there
	OutcomeFinishedAnyway CancelOutcome = "finished_anyway"
	OutcomeUnknown        CancelOutcome = "unknown"
)

// CanceledBy returns the failure of a call that by has cancelled at this moment. It is the cause with which the call's context
// ends. message says what happened, and what to do.
func CanceledBy(by Canceler, reason, message string) *Failure {
	return &Failure{Class: ClassCanceled, Message: message, Cancel: &Cancellation{By: by, At: time.Now().UTC(), Reason: reason}}
}
