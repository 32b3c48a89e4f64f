package gateway

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
)

// Endpoint wraps the HTTP/JSON endpoint at to.URL as an operation. Each run posts the arguments
// once, unchanged; the response body is the outcome. to.Timeout limits the duration and
// to.MaxBody the size of the response.
func Endpoint(op rap.Operation, to peer.Config) (rap.Operation, error) {
	p, err := peer.New(to)
	if err == nil {
		err = p.Check(to.URL)
	}
	if err != nil {
		return rap.Operation{}, fmt.Errorf("endpoint of %s: %w", op.Name, err)
	}
	op.Run = func(ctx context.Context, job rap.Job) (rap.Outcome, error) {
		answer, err := p.Exchange(ctx, to.URL, job.Arguments)
		if err != nil {
			return rap.Outcome{}, endpointError(err)
		}
		if !utf8.Valid(answer) {
			return rap.Outcome{}, &rap.PublicError{
				Text: "the operation ran, but its endpoint's answer is not text",
			}
		}
		return rap.Outcome{Text: string(answer)}, nil
	}
	return op, nil
}

// endpointError adds the text for the runtime: the status of the response, or that the outcome
// is unknown.
func endpointError(err error) error {
	if status, ok := errors.AsType[*peer.StatusError](err); ok {
		text := fmt.Sprintf("the operation's endpoint answered %d", status.Code)
		return errors.Join(err, &rap.PublicError{Text: text})
	}
	const lost = "no answer of the operation's endpoint could be read; the outcome is unknown"
	return errors.Join(err, &rap.PublicError{Text: lost})
}
