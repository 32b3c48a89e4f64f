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

// read begins with a whole text, which must be an object that everybody
// reads alike.
func read(src []byte) object { return jsonmsg.Read(src, jsonmsg.Limits()) }

// number is an integer, 0 when it is absent.
func number(o object, key string) int64 { return o.Int(key, math.MinInt64, math.MaxInt64) }

// head is what every piece of an answer says.
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

// badMessage is what is wrong with an answer or a request, as a
// *content.BadError.
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

// request writes a whole request, which everybody must be able to read alike:
// members may stand twice by the caller's own.
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

// splice writes the members of an object that the caller has as JSON.
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
