package wire

import (
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// maxID is the largest integer that every reader represents exactly.
const maxID = 1 << 53

// maxIDText bounds the text of an id, in bytes.
const maxIDText = 1024

// ID is the id of a request: a string or an integer in its original spelling. The zero ID means
// that there is none. Two IDs are equal if their texts are; compare Key to see if they mean the
// same.
type ID struct{ text string }

// Number returns the id of a request of our own.
func Number(n int64) ID { return ID{text: strconv.FormatInt(n, 10)} }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Text returns the id as JSON, byte for byte as received.
func (id ID) Text() string { return id.text }

// Key returns the same text for two ids that mean the same.
func (id ID) Key() string {
	if id.text == "" || id.text[0] != '"' {
		return id.text
	}
	return `"` + jsonmsg.String(id.text)
}

// ReadID reads an id or a progress token. It returns false if the text is neither.
func ReadID(raw []byte) (ID, bool) {
	if len(raw) == 0 || len(raw) > maxIDText {
		return ID{}, false
	}
	if raw[0] == '"' {
		_, sound := jsonmsg.ReadString(raw)
		return ID{text: string(raw)}, sound
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	inside := err == nil && -maxID <= n && n <= maxID && strconv.FormatInt(n, 10) == string(raw)
	return ID{text: string(raw)}, inside
}
