package hold

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestPlain is how long a key may be that is sent as it is.
const longestPlain = 100

// plain makes of any key one that every channel carries.
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

// questionKey keeps the keys of questions apart from those of
// approvals, in a form that every channel carries.
func questionKey(key string) string { return "question-" + digest([]byte(key)) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

// allowed is a call that was allowed without asking: which one, and
// under which key.
type allowed struct{ digest, key string }

// What begins a reference that names no request: of an allowed call,
// and of a question that was never put to people, whose reason follows.
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
