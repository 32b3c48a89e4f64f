// Package gateway is a RAP tool server that wraps operations. Its plan
// decides about each call. Where people must be asked it asks them
// through the calling runtime (user_choice), through our own approvers,
// or both. What was approved runs once.
//
// Every call is one sealed record in a store. Any number of processes
// may share the work, and none of it is lost in a crash.
package gateway

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
)

// GatewayConfig says what a Gateway wraps and whom it asks.
type Config struct {
	rap.Common
	Name        string // of the toolset
	Description string
	PublicURL   string // base under which runtimes reach ServeHTTP; the only source of endpoint and response_url
	Operations  []rap.Operation
	// MCPServer has the plan treat the operations as tools of that MCP
	// server, for names that no local tool can have; "": as local
	// tools.
	MCPServer string
	// Closed is told, in a goroutine of its own, that a caller closed a
	// thread (UpstreamServer.CloseThread); nil: nobody is.
	Closed  func(ctx context.Context, who approval.Asker, thread string) error
	Callers []Caller
	// Ask is whom the rules' questions go to; "" is AskApprovers where
	// there is a Desk, and AskUser where there is none.
	Ask    Whom
	Grants SessionGrants
	// Within is how long a question waits for its answer before the
	// call ends with an error; 10m. Part of the documented contract.
	Within time.Duration
	// RunWithin is how long an operation may take; 10m.
	RunWithin time.Duration
	// SubscriptionWithin is how long the events after a result are
	// passed on; 24h. Then the subscription is ended.
	SubscriptionWithin time.Duration

	MaxBody   int64 // of a request; 1 MiB
	MaxOpen   int   // calls of one caller that have not ended; 20,000
	MaxThread int   // of one thread; 1,000
	Rate      int   // invocations of one caller in a second; 1,000
}

// Whom says who is asked where the plan asks.
type Whom string

// Who is asked. A runtime answers what it is asked itself, and nobody
// can report whether its user saw the question: AskUser is for runtimes
// that are trusted with that. Where policies name groups or more than
// one person, the runtime's user alone can't answer, and AskUser ends
// such calls with an error.
const (
	AskUser      Whom = "user"      // the calling runtime, which shows it to its user, by user_choice
	AskApprovers Whom = "approvers" // our own approvers, at the Desk
	AskBoth      Whom = "both"      // our approvers first, then the runtime's user
)

// SessionGrants lets users allow an operation for their session. The
// rules' own bounds (policy.Grants) hold beside these.
type SessionGrants struct {
	Offer    bool
	For      time.Duration // 1h
	Uses     int           // 100
	Children bool          // threads below the session's root share it
}

// Caller is a runtime that may call.
type Caller struct {
	Name string
	// Person is whose runtime it is, as the directory names them; ""
	// when it is nobody's. They don't approve its calls.
	Person string
	// TokenHash is the hex SHA-256 of its bearer token. "" lets in
	// whoever connects from this machine, whose thread_ancestors are
	// not believed.
	TokenHash string
	// Callbacks says where its callback URLs may point (Allow), and how
	// we show ourselves there (Token).
	Callbacks peer.Config
	// AnswersSigned wants the runtime's token at response URLs too,
	// beside the secret in them.
	AnswersSigned bool
}
