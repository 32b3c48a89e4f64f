package approval

import (
	"bytes"
	"encoding/json"
)

// EditNote returns one line for the model, with the information that a person changed its call and
// the arguments that ran. All clients use this line.
func EditNote(args []byte) string {
	if bytes.ContainsAny(args, "\n\r\u0085\u2028\u2029") {
		var line bytes.Buffer
		if json.Compact(&line, args) == nil {
			args = line.Bytes()
		}
	}
	return "A person changed this call before it ran. It ran with: " + string(args)
}
