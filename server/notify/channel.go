package notify

import (
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/store"
)

// Channel is a way to notify people and programs of requests, and possibly for people to answer
// them.
type Channel struct {
	Name    string // first part of its targets' names, and of the address to which it posts answers
	Answers bool   // people answer here: votes carry its name, so clients of the API can't use this name
	SignIns bool   // it notifies each person of the sign-ins that tools ask of them (Route.SignIn)
	// Register describes the address to which the channel posts answers, for programs and in
	// words. It is zero if there is none.
	Register Registered
	Settings *Settings // a tenant's configuration of the channel; nil if there is none
}

// Registered describes the purpose of an address.
type Registered struct{ For, Words string }

// Settings describes the configuration of a channel for a tenant.
type Settings struct {
	Field  string                    // below `notify`
	Schema []byte                    // schema of the field, with the $defs that it needs; Route is the $def "route"
	Checks map[string]document.Check // checks for these $defs

	// New returns a pointer into which the field is read. Receivers returns the receivers that
	// such a value configures.
	New       func() any
	Receivers func(place any) []Receiver
}

// NewSettings returns Settings that are read into a T. receivers returns the receivers of a T,
// which is the zero value if nothing is configured.
func NewSettings[T any](field string, schema []byte, receivers func(T) []Receiver) *Settings {
	return &Settings{
		Field:     field,
		Schema:    schema,
		New:       func() any { return new(T) },
		Receivers: func(place any) []Receiver { return receivers(*place.(*T)) },
	}
}

// Receiver is notified of a tenant's requests through a channel.
type Receiver struct {
	Key   string // distinguishes the tenant's receivers if the channel may have several
	Route Route  // events that it gets; Target and Tenants are set later
	// Check reads the secrets that the settings name.
	Check func(Secrets) []error
	// Open makes the sender. The sender may also be an http.Handler, which accepts answers and
	// must authenticate the requests itself. It may have a method Wait, which returns when its
	// work has ended.
	Open func(Host) (Sender, error)
}

// Secrets reads the secret in a file.
type Secrets func(file string) (string, error)

// Host is the service that a sender belongs to.
type Host struct {
	Tenant  string
	Inbox   string // its public address
	Secrets Secrets
	Service *approval.Service
	People  approval.Directory
	Store   store.Store
	SignIns signin.Book // people that tools ask to sign in; nil if there are none
	Warn    func(error) // called for failures after the caller got its response
}
