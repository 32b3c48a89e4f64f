// Package permit lets a tool check for itself that people approved the
// call that it got. A server of assent signs a permit when a runtime
// takes the one run of an approved call; the runtime hands it to the
// tool, and the tool holds the call against it.
//
// A permit is a JWT in the compact form of RFC 7515, signed with
// Ed25519 (RFC 8037). It is for one tool (its audience), for one call
// (the target, and the digest of the arguments), for a few minutes, and
// for one run.
package permit

import "time"

// Type is the `typ` of a permit's header, so that no other token that
// somebody signs with the same key is one (RFC 8725 §3.11).
const Type = "assent-permit+jwt"

// Header is the header of an HTTP request that carries a permit to a
// tool.
const Header = "Assent-Permit"

// KeysPath is where the public keys of an issuer are, below its URL.
const KeysPath = "/.well-known/jwks.json"

// How long permits live.
const (
	DefaultLifetime = 5 * time.Minute
	MinLifetime     = 10 * time.Second
	MaxLifetime     = time.Hour
)

// Permit is what a permit says.
type Permit struct {
	Issuer    string // URL of the tenant's permits
	Audience  string // the tool, by the name that its configuration gives it
	Agent     string // whose call it is
	Request   string // id of the request that people approved; one request gives one permit
	Binding   string // digest of the approved call, as the ledger has it
	Target    string // such as "tool trade" or "mcp_tool broker/sell"
	Arguments string // digest of the arguments that may run, as of Digest
	Principal string // for whom the call is made; "" when the runtime didn't say
	Issued    time.Time
	Expires   time.Time
}
