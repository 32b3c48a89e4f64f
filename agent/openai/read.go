package openai

import (
	"errors"
	"math"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// object is an object of an answer.
type object = jsonmsg.Fields

// read parses a text, which must be an object that all parsers read in the same way.
func read(src []byte) object { return jsonmsg.Read(src, jsonmsg.Limits()) }

// number returns an integer, or 0 if it is missing.
func number(o object, key string) int64 { return o.Int(key, math.MinInt64, math.MaxInt64) }

// head contains the members that every piece of an answer has.
type head struct{ id, model string }

func (h *head) begin(o object) {
	keep(&h.id, o.Text("id"))
	keep(&h.model, o.Text("model"))
}

func (h *head) update(contents ...content.Content) *agent.Update {
	return &agent.Update{
		Role:      content.Assistant,
		MessageID: h.id,
		ID:        h.id,
		Model:     h.model,
		Contents:  contents,
	}
}

func usage(u object, input, output string) *content.Usage {
	return &content.Usage{
		Input:  number(u, input),
		Output: number(u, output),
		Total:  number(u, "total_tokens"),
	}
}

// badMessage converts an error in an answer or a request to a *content.BadError.
func badMessage(err error) error {
	problem := jsonmsg.Problem(err)
	var unsound *value.Error
	switch {
	case errors.As(err, new(*content.BadError)):
		return err
	case errors.As(err, &unsound) && problem != nil:
		return &content.BadError{
			Code:   content.BadJSON,
			Where:  problem.Path,
			Detail: unsound.Error(),
			Err:    err,
		}
	case unsound != nil:
		return &content.BadError{Code: content.BadJSON, Detail: unsound.Error(), Err: err}
	case problem != nil:
		return &content.BadError{
			Code:   content.BadShape,
			Where:  problem.Path,
			Detail: problem.Detail(),
		}
	}

	return err
}

// request writes a request and checks that all parsers read it in the same way. It may have
// duplicate members because of the caller's additional members.
func request(fill func(*jsonmsg.Writer)) ([]byte, error) {
	out, err := jsonmsg.Object(fill)
	if err == nil {
		_, err = jsonmsg.Check(out, jsonmsg.Limits())
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// splice writes the members of an object that the caller provided as JSON.
func splice(w *jsonmsg.Writer, where string, src []byte) {
	if len(src) == 0 {
		return
	}
	if kind, err := jsonmsg.Check(src, jsonmsg.Limits()); err != nil || kind != value.Object {
		w.Fail(&content.BadError{
			Code:   content.BadShape,
			Where:  where,
			Detail: "expected an object",
			Err:    err,
		})
		return
	}

	w.Splice(src)
}
