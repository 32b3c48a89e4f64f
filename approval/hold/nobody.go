package hold

import "context"

// Nobody returns Requests for an asker that can't ask. Every method returns why, and nothing is
// allowed.
func Nobody(why error) Requests { return nobody{why} }

type nobody struct{ why error }

func (n nobody) Open(context.Context, string, Verdict) (Held, error) {
	return Held{}, n.why
}

func (n nobody) Look(context.Context, string) (Held, error) { return Held{}, n.why }

func (n nobody) Claim(context.Context, string, string, Verdict) error { return n.why }

func (n nobody) Cancel(context.Context, string, string) error { return n.why }

func (n nobody) Ask(context.Context, string, Question) (string, error) { return "", n.why }

func (n nobody) Answer(context.Context, string) (Answer, error) { return Answer{}, n.why }
