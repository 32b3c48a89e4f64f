package desk

import (
	"context"

	"github.com/assent-dev/assent/approval/hold"
)

// nobody is the desk of an asker that can't ask: everything fails, and nothing is let through.
type nobody struct{ why error }

func (n nobody) Open(context.Context, string, hold.Verdict) (hold.Held, error) {
	return hold.Held{}, n.why
}

func (n nobody) Look(context.Context, string) (hold.Held, error) { return hold.Held{}, n.why }

func (n nobody) Claim(context.Context, string, string, hold.Verdict) error { return n.why }

func (n nobody) Cancel(context.Context, string, string) error { return n.why }

func (n nobody) Ask(context.Context, string, hold.Question) (string, error) { return "", n.why }

func (n nobody) Answer(context.Context, string) (hold.Answer, error) { return hold.Answer{}, n.why }
