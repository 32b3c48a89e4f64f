package a2a

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// A remote task asks for data by a small schema that would take for
// ever: it is refused instead of read.
func TestCostlySchemaOfAPeer(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&schema, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	schema.WriteString(`"a40":{}}}`)
	data := `{"$type":"structuredInputRequest","requestId":"r","text":"?","schema":` + schema.String() + `}`
	task, err := DecodeTask(
		[]byte(
			`{"id":"t","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m","role":"ROLE_AGENT",` +
				`"parts":[{"data":` + data +
				`,"mediaType":"` + RequestMediaType + `"}]}}}`,
		),
	)
	must.Do(t, err)
	_, err = task.Questions() // without a limit this would not return
	if bad, ok := errors.AsType[*Error](err); !ok || bad.Code != BadRequest {
		t.Error(err)
	}
}
