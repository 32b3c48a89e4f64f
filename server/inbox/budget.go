package inbox

import "context"

// What one page may draw. A piece costs the reader's browser some
// microseconds and the server a few hundred bytes, so this is about ten
// megabytes and half a second of a processor.
const (
	pagePieces  = 300_000
	valuePieces = 4 // what one value of a tree costs beside the pieces of its text
)

// budget is what is left of it. What the budget leaves out is counted
// on the page, and what is not shown can't be approved there. A budget
// of nil has no end.
type budget struct {
	ctx  context.Context
	left int
}

func newBudget(ctx context.Context, pieces int) *budget { return &budget{ctx: ctx, left: pieces} }

// lookAfter is after how many pieces the context is looked at: whoever
// has left wants no more of them.
const lookAfter = 1024

// spend takes pieces out of the budget; false when there are no more,
// or nobody waits for the page any longer.
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

// spent reports whether nothing is left.
func (b *budget) spent() bool { return b != nil && b.left <= 0 }
