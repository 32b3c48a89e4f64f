// Package gateway is a RAP tool server that wraps operations. A plan decides on each call. If
// people have to approve it, the gateway asks the user of the calling runtime (user_choice),
// our own approvers, or both. An approved call runs once.
//
// Every call is one sealed record in a store. Any number of processes may share the work, and a
// crash loses none of it.
package gateway

import (
	"context"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
)

// Config configures a Gateway.
type Config struct {
	rap.Common
	Name        string // of the toolset
	Description string
	PublicURL   string // base URL of ServeHTTP for runtimes; endpoint and response_url are derived from it alone
	Operations  []rap.Operation
	// MCPServer makes the plan treat the operations as tools of this MCP server, for names that
	// local tools can't have. If it is empty, they are local tools.
	MCPServer string
	// Closed is called in a goroutine of its own after a caller closed a thread
	// (UpstreamServer.CloseThread). It may be nil.
	Closed  func(ctx context.Context, who approval.Asker, thread string) error
	Callers []Caller
	// Ask says who answers if the rules ask. The default is AskApprovers if there are People,
	// otherwise AskUser.
	Ask    Whom
	Grants SessionGrants
	// Within limits how long a question waits for its answer before the call ends with an
	// error; 10m. Part of the documented contract.
	Within time.Duration
	// RunWithin limits how long an operation may take; 10m.
	RunWithin time.Duration
	// SubscriptionWithin limits how long the events after a result are passed on; 24h. Then the
	// subscription is ended.
	SubscriptionWithin time.Duration

	MaxBody   int64 // of a request; 1 MiB
	MaxOpen   int   // unfinished calls of one caller; 20,000
	MaxThread int   // unfinished calls of one thread; 1,000
	Rate      int   // invocations of one caller per second; 1,000
}

// Whom selects the people who are asked if the plan asks.
type Whom string

// The values of Whom. A runtime itself sends the answer to a question for its user, and we
// can't verify that the user saw it: use AskUser only for runtimes that you trust to show it.
// If policies require groups or more than one person, the runtime's user alone can't approve,
// and with AskUser such calls end with an error.
const (
	AskUser      Whom = "user"      // the user of the calling runtime, by user_choice
	AskApprovers Whom = "approvers" // our own approvers, through People
	AskBoth      Whom = "both"      // first our approvers, then the runtime's user
)

// SessionGrants lets users allow an operation for their session. The limits of the rules
// (policy.Grants) apply as well.
type SessionGrants struct {
	Offer    bool
	For      time.Duration // 1h
	Uses     int           // 100
	Children bool          // threads below the thread of the grant share it
}

// Caller is a runtime that may call.
type Caller struct {
	Name string
	// Person is the owner of the runtime, as named in the directory, or empty if there is none.
	// They can't approve its calls.
	Person string
	// TokenHash is the hex SHA-256 of its bearer token. If it is empty, requests from this
	// machine need no token, and their thread_ancestors are ignored.
	TokenHash string
	// Callbacks configures where its callback URLs may point (Allow), and how we authenticate
	// there (Token).
	Callbacks peer.Config
	// AnswersSigned requires the runtime's token at response URLs, in addition to the secret in
	// the URL.
	AnswersSigned bool
}
