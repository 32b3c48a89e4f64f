package inbox

import (
	"bytes"
	"context"
	"time"

	"github.com/assent-dev/assent/server/quota"
)

// turnWait is how long a page waits for its turn before the reader is
// told to come back.
const turnWait = 10 * time.Second

// What a page may take of the memory, in bytes: its pieces and the page
// made of them, and for each byte of the requests on it the stored
// document, its texts and their trees.
const (
	pageWeight = 16 << 20
	byteWeight = 16
)

func (v *visit) who() quota.Who { return quota.Who{Tenant: v.Tenant, Caller: "person " + v.Person.ID} }

// inTurn makes a page when it is the visitor's turn, so that one
// person's pages keep nobody else from work.
func inTurn(page func(*visit) error) func(*visit) error {
	return func(v *visit) (err error) {
		if v.turn, err = v.Shares.Turns.Take(v.ctx(), v.who(), 1, turnWait); err != nil {
			return err
		}
		return page(v)
	}
}

// roomFor takes memory for the requests of a page before they are read.
func (v *visit) roomFor(size int64) (err error) {
	v.memory.Return()
	v.memory, err = v.Shares.Memory.Take(v.ctx(), v.who(), pageWeight+byteWeight*size, turnWait)
	return err
}

// roomForRequest takes memory for one request; of one that is not there
// its reading tells.
func (v *visit) roomForRequest(id string) error {
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

// tooMuch tells a visitor what to do about a share that is used up.
func tooMuch(full *quota.FullError) string {
	if full.Whose == "caller" {
		return "You have as many pages open, or being made, as one person may. Close some, and try again in a moment."
	}
	return "Others keep this service busy. Nothing was decided. Try again in a moment."
}

// attended is a page that is made for somebody: when they have left,
// making it ends.
type attended struct {
	bytes.Buffer
	ctx    context.Context
	writes int
}

// Write adds to the page.
func (a *attended) Write(text []byte) (int, error) {
	if a.writes++; a.writes%lookAfter == 0 {
		if err := a.ctx.Err(); err != nil {
			return 0, err
		}
	}
	return a.Buffer.Write(text)
}
