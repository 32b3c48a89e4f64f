package desk

import (
	"context"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
)

// nobody is the desk of an asker that can't ask: everything fails, and nothing is let through.
type nobody struct{ why error }

func (n nobody) Open(context.Context, string, hold.Verdict) (hold.Held, error) {
	return hold.Held{}, n.why
}

func (n nobody) Look(context.Context, string) (hold.Held, error) { return hold.Held{}, n.why }

func (n nobody) Claim(context.Context, string, string, hold.Verdict) error { return n.why }

func (n nobody) Cancel(context.Context, string, string) error { return n.why }

func (n nobody) Ask(context.Context, string, rap.Question) (string, error) { return "", n.why }

func (n nobody) Answer(context.Context, string) (rap.Answer, error) { return rap.Answer{}, n.why }
