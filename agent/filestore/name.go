package filestore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// The prefixes keep names from being hidden files or Windows device names.
const (
	plainName  = "t-"
	hashedName = "h-"
	longest    = 120 // of an encoded id; file systems allow 255 bytes
)

var names = regexp.MustCompile(`^(t-[a-z0-9_=-]+|h-[0-9a-f]{64})$`)

// nameOf maps an id to a file name that is valid on all systems. Different ids have different
// names, even on file systems that ignore case.
func nameOf(id string) string {
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
		if b.Len() > longest {
			sum := sha256.Sum256([]byte(id))
			return hashedName + hex.EncodeToString(sum[:])
		}
	}

	return plainName + b.String()
}

func isName(name string) bool { return names.MatchString(name) }
