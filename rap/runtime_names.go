package rap

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/approval"
)

// namer places threads and calls in the store, and gives them the names under which tool servers know them. Askers choose names for themselves
// alone: two that choose the same one mean two things, here and at the tool server. The same names come out after a restart.
type namer struct {
	key []byte
	raw bool // names go out as the asker chose them
}

func newNamer(cfg *RuntimeConfig) (namer, error) {
	key, err := hkdf.Key(sha256.New, cfg.Key, nil, "assent rap names "+cfg.Room, sha256.Size)
	if err != nil {
		return namer{}, fmt.Errorf("make the key of names: %w", err)
	}

	return namer{key: key, raw: cfg.Only != (approval.Asker{})}, nil
}

// thread is where the records of an asker's thread are kept. It holds no name: those are opaque, of any length, and nobody's to read in a backup.
func (n namer) thread(who approval.Asker, thread string) string {
	return n.digest("thread", who.Own(thread))
}

// call is where the record of a call is kept.
func (n namer) call(who approval.Asker, thread, id string) string {
	place := n.thread(who, thread)

	return place + "/" + n.digest("call", place+"/"+id)
}

func (n namer) digest(kind, text string) string {
	sum := hmac.New(sha256.New, n.key)
	sum.Write([]byte(kind + "\x00" + text)) // never fails

	return hex.EncodeToString(sum.Sum(nil))
}

// threadOf is the part of a call's key that all calls of its thread have.
func threadOf(key string) string {
	thread, _, _ := strings.Cut(key, "/")

	return thread
}

// wireNames are the names under which a tool server knows a call. They are kept with it: what was sent stays what it was sent as.
type wireNames struct {
	Group     string   `json:"group"`
	ID        string   `json:"id"`
	Ancestors []string `json:"ancestors,omitempty"`
}

// sent are the names under which a call goes out.
func (n namer) sent(who approval.Asker, in *Invocation) wireNames {
	if n.raw {
		return wireNames{Group: in.Thread, ID: in.ID, Ancestors: in.Ancestors}
	}

	const shown = 32 // hexadecimal digits: 128 bits
	_, call, _ := strings.Cut(n.call(who, in.Thread, in.ID), "/")
	out := wireNames{Group: n.group(who, in.Thread), ID: "call_" + call[:shown]}
	for _, a := range in.Ancestors {
		out.Ancestors = append(out.Ancestors, n.group(who, a))
	}

	return out
}

// group is the name under which a thread goes out.
func (n namer) group(who approval.Asker, thread string) string {
	if n.raw {
		return thread
	}

	const shown = 32
	return "thread_" + n.thread(who, thread)[:shown]
}
