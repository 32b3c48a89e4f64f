package inbox

import (
	"bytes"
	"context"
	"time"

	"github.com/assent-dev/assent/server/quota"
)

// turnWait is the time that a page waits for its turn before the reader must try again.
const turnWait = 10 * time.Second

// The memory that a page may use, in bytes: a fixed part for its pieces and the rendered page, and
// for each byte of its requests a factor for the stored document, its texts and their trees.
const (
	pageWeight = 16 << 20
	byteWeight = 16
)

func (v *visit) who() quota.Who { return quota.Who{Tenant: v.Tenant, Caller: "person " + v.Person.ID} }

// inTurn renders a page when it is the visitor's turn, so that one person's pages don't keep others
// from working.
func inTurn[Pages ~struct{ *visit }](page func(Pages) error) func(*visit) error {
	return func(v *visit) (err error) {
		if v.turn, err = v.Shares.Turns.Take(v.ctx(), v.who(), 1, turnWait); err != nil {
			return err
		}
		return page(Pages{v})
	}
}

// roomFor reserves memory for the requests of a page before they are read.
func (v *visit) roomFor(size int64) (err error) {
	v.memory.Return()
	v.memory, err = v.Shares.Memory.Take(v.ctx(), v.who(), pageWeight+byteWeight*size, turnWait)
	return err
}

// roomForRequest reserves memory for one request. If the request does not exist, reading it will
// return the error.
func (v requestPages) roomForRequest(id string) error {
	heads, err := v.Store.Heads(v.ctx(), v.Tenant, []string{id})
	if err != nil {
		return err
	}
	return v.roomFor(heads[id].Bytes)
}

func (v *visit) giveBack() {
	v.turn.Return()
	v.memory.Return()
}

// tooMuch returns what a visitor can do about a share that is used up.
func tooMuch(full *quota.FullError) string {
	if full.Whose == "caller" {
		return "You have as many pages open, or being made, as one person may. Close some, and try again in a moment."
	}
	return "Others keep this service busy. Nothing was decided. Try again in a moment."
}

// attended is a page that is rendered for a reader. Rendering stops if the reader has left.
type attended struct {
	bytes.Buffer
	ctx    context.Context
	writes int
}

// Write appends to the page.
func (a *attended) Write(text []byte) (int, error) {
	if a.writes++; a.writes%lookAfter == 0 {
		if err := a.ctx.Err(); err != nil {
			return 0, err
		}
	}
	return a.Buffer.Write(text)
}
