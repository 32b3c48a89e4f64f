package wire

import (
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// maxID is the largest integer that every reader has exactly.
const maxID = 1 << 53

// maxIDText bounds the text of an id, in bytes.
const maxIDText = 1024

// ID is the id of a request: a string or an integer, as it was written.
// The zero ID is none. Two IDs are equal where their texts are; Key says
// whether they mean the same.
type ID struct{ text string }

// Number is the id of an own request.
func Number(n int64) ID { return ID{text: strconv.FormatInt(n, 10)} }

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Text is the id as JSON, byte for byte as it came.
func (id ID) Text() string { return id.text }

// Key is the same for two ids that mean the same.
func (id ID) Key() string {
	if id.text == "" || id.text[0] != '"' {
		return id.text
	}
	return `"` + jsonmsg.String(id.text)
}

// ReadID reads an id or a progress token; false for what is none.
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
