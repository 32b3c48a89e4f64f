package agent

import (
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/content"
)

// batch is one turn of the model of which a call waits for the user.
type batch struct{ items []*item }

// item is one call of a batch.
type item struct{ state json.RawMessage }

// closedRequest remembers how a request ended, so that a late answer is told so.
type closedRequest struct{ ID, How string }

// Pending is an open request.
type Pending struct {
	Request content.InputRequest
	Since   time.Time
	Ref     string // of the holder; "" without one
}

// Pending returns the open requests, oldest first.
func (t *Thread) Pending() []Pending { return nil }
