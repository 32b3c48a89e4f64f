package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// AuditTo writes each event as one line of JSON with a single Write. Several loops may share
// the returned Audit.
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
