package resolve

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/value"
)

// TestTextsThatChangedShowNothing: a document is read a second time for
// a message, and whoever changed it meanwhile gets none of it into the
// message.
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
