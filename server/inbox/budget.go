package inbox

import "context"

// Limits for the drawing of one page. A piece costs the reader's browser some microseconds and the
// server a few hundred bytes, so the limit is about two megabytes and a quarter of a second of processor
// time.
const (
	pagePieces  = 60_000
	valuePieces = 4 // cost of one value in a tree, in addition to the pieces of its text
)

// budget counts the pieces that may still be drawn. The page shows how much was left out because of
// it, and a call that is not fully shown can't be approved there. A nil budget is unlimited.
type budget struct {
	ctx  context.Context
	left int
}

func newBudget(ctx context.Context, pieces int) *budget { return &budget{ctx: ctx, left: pieces} }

// lookAfter is the number of pieces after which the context is checked, so that drawing stops if
// the reader has left.
const lookAfter = 1024

// spend takes pieces out of the budget. It returns false if the budget is used up or the reader has
// left.
func (b *budget) spend(pieces int) bool {
	if b == nil {
		return true
	}
	before := b.left
	if b.left -= pieces; b.left > 0 && b.left/lookAfter != before/lookAfter && b.ctx.Err() != nil {
		b.left = 0
	}
	return b.left > 0
}

// spent reports whether the budget is used up.
func (b *budget) spent() bool { return b != nil && b.left <= 0 }
