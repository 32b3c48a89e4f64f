package notify

import (
	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/store"
)

// Channel is a way by which people and programs hear of requests, and
// by which people may answer them.
type Channel struct {
	Name    string // first part of the names of its targets, and of the address that it posts answers to
	Answers bool   // people answer here: votes carry its name, so no client may give it as its own
	SignIns bool   // it tells people, each alone, of what tools ask them to sign in to (Route.SignIn)
	// Register is what an operator calls the address that it posts
	// answers to, for programs and in words; zero: it posts none.
	Register Registered
	Settings *Settings // what a tenant says of it; nil: nothing
}

// Registered is what an address is for.
type Registered struct{ For, Words string }

// Settings are what the configuration of a tenant says of a channel.
type Settings struct {
	Field  string                    // below `notify`
	Schema []byte                    // of the field, with the $defs that it needs; Route is the $def "route"
	Checks map[string]document.Check // of these $defs

	// New makes a place to read the field into, a pointer; Receivers
	// are those that such a place says.
	New       func() any
	Receivers func(place any) []Receiver
}

// NewSettings are settings that are read into a T, which says who the
// receivers are. Where nothing is said it is zero.
func NewSettings[T any](field string, schema []byte, receivers func(T) []Receiver) *Settings {
	return &Settings{
		Field:     field,
		Schema:    schema,
		New:       func() any { return new(T) },
		Receivers: func(place any) []Receiver { return receivers(*place.(*T)) },
	}
}

// Receiver is one that hears of a tenant's requests through a channel.
type Receiver struct {
	Key   string // tells it from others of the tenant, where the channel may have several
	Route Route  // what it hears of; Target and Tenants are known without it
	// Check reads what the settings name.
	Check func(Secrets) []error
	// Open makes the sender. It may be an http.Handler too, which takes
	// answers and checks by itself who posts them, and have a method
	// Wait, which returns when it has ended what it works at.
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
	SignIns signin.Book // what tools ask people to sign in to; nil: nothing
	Warn    func(error) // hears of what failed behind the back of whoever was answered
}
