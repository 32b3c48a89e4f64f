package hold

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestPlain is the length up to which a plain key is sent unchanged.
const longestPlain = 100

// plain returns the key unchanged if every channel can carry it, or else its digest.
func plain(key string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("_.-", r)
	}
	if len(key) <= longestPlain && !strings.ContainsFunc(key, odd) {
		return key
	}

	return "sha256:" + digest([]byte(key))
}

// questionKey returns the key of a question in a form that every channel can carry. The prefix
// makes it different from the keys of approvals.
func questionKey(key string) string { return "question-" + digest([]byte(key)) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

// allowed identifies a call that was allowed without asking people, and its key.
type allowed struct{ digest, key string }

// The prefixes of references that belong to no request: for an allowed call, and for a question
// that was refused before people saw it, followed by the reason.
const (
	allowedPrefix = "let:"
	deniedPrefix  = "denied:"
)

func (a allowed) ref() string { return allowedPrefix + a.digest + ":" + a.key }

func parseAllowed(ref string) (allowed, bool) {
	rest, ok := strings.CutPrefix(ref, allowedPrefix)
	if !ok {
		return allowed{}, false
	}
	sum, key, ok := strings.Cut(rest, ":")

	return allowed{sum, key}, ok && key != ""
}
