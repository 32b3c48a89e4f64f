package resolve

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// TestTextsThatChangedShowNothing checks that a message shows nothing of a document that the caller
// changed before the document is read for the message.
func TestTextsThatChangedShowNothing(t *testing.T) {
	text := []byte(`{"a":1}` + strings.Repeat(" ", smallText))
	d, err := read(text, value.DefaultLimits())
	if err != nil || d.value().Kind != value.Object {
		t.Fatal(d, err)
	}
	text[0] = '['
	if got := d.value(); got.Kind != value.Absent {
		t.Errorf("got %v", got)
	}
}
