// Package names places the threads and calls of a runtime in its store,
// and makes the names under which tool servers know them.
package names

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// Namer names threads and calls. Askers choose names for themselves
// alone: two that choose the same one mean two things, here and at the
// tool server. The same names come out after a restart.
type Namer struct {
	key []byte
	raw bool // names go out as the asker chose them
}

// New returns the namer of a runtime's namespace, whose key is derived
// from that of its records. A raw namer sends names as they are, which
// is right where one asker only may ask.
func New(key []byte, namespace string, raw bool) (Namer, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "assent rap names "+namespace, sha256.Size)
	if err != nil {
		return Namer{}, fmt.Errorf("make the key of names: %w", err)
	}

	return Namer{key: derived, raw: raw}, nil
}

// Thread is the key below which the records of an asker's thread are
// kept. It is a digest: names are opaque, may be of any length, and
// should not be readable in a backup.
func (n Namer) Thread(who approval.Asker, thread string) string {
	return n.digest("thread", who.Own(thread))
}

// Call is the key of the record of a call.
func (n Namer) Call(who approval.Asker, thread, id string) string {
	place := n.Thread(who, thread)

	return place + "/" + n.digest("call", place+"/"+id)
}

// Person is the key below which is kept what somebody looks up as the
// person that the directory names so.
func (n Namer) Person(id string) string { return n.digest("person", id) }

func (n Namer) digest(kind, text string) string {
	sum := hmac.New(sha256.New, n.key)
	sum.Write([]byte(kind + "\x00" + text)) // never fails

	return hex.EncodeToString(sum.Sum(nil))
}

// ThreadOf is the part of a call's key that all calls of its thread share.
func ThreadOf(key string) string {
	thread, _, _ := strings.Cut(key, "/")

	return thread
}

// Root is the thread that is the session of another one, whose
// ancestors are given from the root on.
func Root(thread string, ancestors []string) string {
	if len(ancestors) > 0 {
		return ancestors[0]
	}

	return thread
}

// Sent holds the names under which a tool server knows a call. They are
// kept with it: what was sent stays what it was sent as.
type Sent struct {
	Group     string   `json:"group"`
	ID        string   `json:"id"`
	Ancestors []string `json:"ancestors,omitempty"`
}

// shownDigits is how many hexadecimal digits of a digest a name
// carries: 128 bits.
const shownDigits = 32

// Sent returns the names under which a call goes out.
func (n Namer) Sent(who approval.Asker, thread, id string, ancestors []string) Sent {
	if n.raw {
		return Sent{Group: thread, ID: id, Ancestors: ancestors}
	}

	_, call, _ := strings.Cut(n.Call(who, thread, id), "/")
	out := Sent{Group: n.Group(who, thread), ID: "call_" + call[:shownDigits]}
	for _, a := range ancestors {
		out.Ancestors = append(out.Ancestors, n.Group(who, a))
	}

	return out
}

// Group is the name under which a thread goes out.
func (n Namer) Group(who approval.Asker, thread string) string {
	if n.raw {
		return thread
	}

	return "thread_" + n.Thread(who, thread)[:shownDigits]
}

// NewToken returns a secret of 256 bits for one URL, and its hash, by
// which it is found.
func NewToken() (token, hash string) {
	token = rand.Text() + rand.Text()

	return token, durable.Hash(token)
}

// Sealing says where the records of a namespace are, and what they are
// sealed with.
func Sealing(records store.Records, namespace string, key []byte) durable.Sealing {
	return durable.Sealing{
		Records:   records,
		Namespace: namespace,
		Key:       key,
		Purpose:   "assent rap ",
	}
}
