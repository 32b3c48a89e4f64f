package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// AuditTo writes events as lines of JSON, one write for each line. It
// may be shared by any number of loops.
func AuditTo(w io.Writer) Audit {
	var mu sync.Mutex
	return func(_ context.Context, e Event) error {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		return nil
	}
}
