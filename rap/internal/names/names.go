// Package names derives the keys of a runtime's threads and calls in its store, and the ids
// that are sent to tool servers.
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

// Namer derives ids of threads and calls. Each asker has a namespace of its own: equal ids of
// two askers are different things, both here and at the tool server. The result is the same
// after a restart.
type Namer struct {
	key []byte
	raw bool // send the asker's ids unchanged
}

// New returns the namer of a runtime's namespace. Its key is derived from that of the records.
// A raw namer sends ids unchanged, which is right for a runtime with a single asker.
func New(key []byte, namespace string, raw bool) (Namer, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "assent rap names "+namespace, sha256.Size)
	if err != nil {
		return Namer{}, fmt.Errorf("make the key of names: %w", err)
	}

	return Namer{key: derived, raw: raw}, nil
}

// Thread returns the key prefix of the records of an asker's thread. It is a digest, because
// ids are opaque, may have any length, and should not be readable in a backup.
func (n Namer) Thread(who approval.Asker, thread string) string {
	return n.digest("thread", who.Own(thread))
}

// Call returns the key of a call's record.
func (n Namer) Call(who approval.Asker, thread, id string) string {
	place := n.Thread(who, thread)

	return place + "/" + n.digest("call", place+"/"+id)
}

// Person returns the key prefix of the records for a person of the directory.
func (n Namer) Person(id string) string { return n.digest("person", id) }

func (n Namer) digest(kind, text string) string {
	sum := hmac.New(sha256.New, n.key)
	sum.Write([]byte(kind + "\x00" + text)) // never fails

	return hex.EncodeToString(sum.Sum(nil))
}

// ThreadOf returns the part of a call's key that all calls of its thread share.
func ThreadOf(key string) string {
	thread, _, _ := strings.Cut(key, "/")

	return thread
}

// Root returns the root thread, which is the session of a thread. ancestors begins with the
// root.
func Root(thread string, ancestors []string) string {
	if len(ancestors) > 0 {
		return ancestors[0]
	}

	return thread
}

// Sent has the ids of a call at its tool server. They are stored with the call, so that they
// never change.
type Sent struct {
	Group     string   `json:"group"`
	ID        string   `json:"id"`
	Ancestors []string `json:"ancestors,omitempty"`
}

// shownDigits is the number of hexadecimal digits of a digest in an id: 128 bits.
const shownDigits = 32

// Sent returns the ids with which a call is sent.
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

// Group returns the id with which a thread is sent.
func (n Namer) Group(who approval.Asker, thread string) string {
	if n.raw {
		return thread
	}

	return "thread_" + n.Thread(who, thread)[:shownDigits]
}

// NewToken returns a secret of 256 bits for a URL, and the hash by which it is looked up.
func NewToken() (token, hash string) {
	token = rand.Text() + rand.Text()

	return token, durable.Hash(token)
}

// Sealing returns the sealing of the records of a namespace.
func Sealing(records store.Records, namespace string, key []byte) durable.Sealing {
	return durable.Sealing{
		Records:   records,
		Namespace: namespace,
		Key:       key,
		Purpose:   "assent rap ",
	}
}
