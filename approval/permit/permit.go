// Package permit lets a tool verify that people approved the call that it received. An assent
// server signs a permit when a runtime claims the one run of an approved call. The runtime
// sends it to the tool, and the tool checks the call against it.
//
// A permit is a JWT in the compact form of RFC 7515, signed with Ed25519 (RFC 8037). It is
// valid for one tool (its audience), one call (the target, and the digest of the arguments), a
// few minutes, and one run.
package permit

import "time"

// Type is the `typ` of a permit's header, so that no other token signed with the same key is
// accepted as a permit (RFC 8725 §3.11).
const Type = "assent-permit+jwt"

// Header is the HTTP request header that carries a permit to a tool.
const Header = "Assent-Permit"

// KeysPath is the path of an issuer's public keys, below its URL.
const KeysPath = "/.well-known/jwks.json"

// Lifetimes of permits.
const (
	DefaultLifetime = 5 * time.Minute
	MinLifetime     = 10 * time.Second
	MaxLifetime     = time.Hour
)

// Permit has the claims of a permit.
type Permit struct {
	Issuer    string // URL of the tenant's permits
	Audience  string // the tool, by its name in the server's configuration
	Agent     string // the agent that made the call
	Request   string // id of the approved request; one request gives one permit
	Binding   string // digest of the approved call, as in the ledger
	Target    string // such as "tool trade" or "mcp_tool broker/sell"
	Arguments string // digest of the arguments that may run, from Digest
	Principal string // the person whom the call is made for; may be empty
	Issued    time.Time
	Expires   time.Time
}
