package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

// Limits of what one request may bring in addition to its answer.
const (
	mostMessages = 100     // of progress, and of a log
	mostBytes    = 8 << 10 // of one of them
	mostRounds   = 8       // of questions before an answer
)

// during holds the callbacks for messages that arrive while a request is open.
type during struct {
	progress func(wire.Progress)
	ask      func(context.Context, string, json.RawMessage) (json.RawMessage, *wire.Error)
	logged   func(json.RawMessage)
	counts   *counts
	work     bool // what a log may tell of: no list, and no news
}

// works returns the methods for which a server works on behalf of a client.
func works() []string {
	return []string{wire.MethodCall, wire.MethodRead, wire.MethodPrompt, "completion/complete"}
}

type counts struct {
	mu             sync.Mutex
	reports, lines int
}

func duringOf(r *Request) during {
	return during{
		progress: r.Progress,
		ask:      r.Ask,
		logged:   r.Logged,
		counts:   &counts{},
		work:     slices.Contains(works(), r.Method),
	}
}

// another counts a message. It returns false if there were too many or it is too long.
func (c *counts) another(n *int, params []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	return *n <= mostMessages && len(params) <= mostBytes
}

func (d *during) report(params []byte, p wire.Progress) {
	if d.progress != nil && d.counts.another(&d.counts.reports, params) {
		d.progress(p)
	}
}

func (d *during) log(params json.RawMessage) {
	if d.logged != nil && d.counts.another(&d.counts.lines, params) {
		d.logged(params)
	}
}

// asked answers a request of the server.
func (d *during) asked(ctx context.Context, m *wire.Message) *wire.Message {
	if m.Method == "ping" || d.ask == nil {
		return refusal(m)
	}
	result, err := d.ask(ctx, m.Method, m.Params)
	return wire.Answer(m.ID, result, err)
}

// refusal refuses a request of the server, except a ping, which is always answered.
func refusal(m *wire.Message) *wire.Message {
	if m.Method == "ping" {
		return wire.Answer(m.ID, []byte("{}"), nil)
	}
	return wire.Answer(m.ID, nil, wire.Fail(wire.CodeMethodNotFound, "this client takes no such requests"))
}

// asks reports whether an answer is a question for the caller.
func asks(r *Request, out Answer) bool {
	return r.Ask != nil && out.Error == nil && wire.ResultType(out.Result) == wire.InputRequired
}

// answerRound asks the questions of a result, and returns the params of the next request.
func answerRound(ctx context.Context, r *Request, result []byte) (json.RawMessage, error) {
	f := jsonmsg.Read(result, wire.Limits())
	asked := f.Object("inputRequests").Members()
	answers, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, q := range asked {
			method, _ := jsonmsg.ReadString(jsonmsg.Get(q.Raw, "method"))
			answer, bad := r.Ask(ctx, method, jsonmsg.Get(q.Raw, "params"))
			if bad == nil {
				w.Name(q.Name).Verbatim(answer)
			}
		}
	})
	if err = cmpErr(f.Err(), err); err != nil {
		return nil, fmt.Errorf("%w: what the server asks can't be read: %w", ErrUnknown, err)
	}
	_, params := jsonmsg.Take(r.Params, "inputResponses")
	_, params = jsonmsg.Take(params, "requestState")
	if len(asked) > 0 {
		params = jsonmsg.Put(params, "inputResponses", answers)
	}
	if state := jsonmsg.Get(result, "requestState"); state != nil {
		params = jsonmsg.Put(params, "requestState", state)
	}
	return params, nil
}

func cmpErr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// params returns the params of a request with the _meta that it needs.
func (s *Server) params(r *Request, id wire.ID, modern bool) ([]byte, error) {
	meta := r.Meta
	if modern {
		meta.Version = wire.V20260728
		meta.Capabilities = s.cfg.Capabilities
		if r.Capabilities != nil {
			meta.Capabilities = r.Capabilities
		}
		meta.ClientInfo = s.info()
	}

	if r.Progress != nil {
		meta.Progress = id
	}
	if meta.IsEmpty() {
		return r.Params, nil
	}

	text, err := meta.Append(nil)
	if err != nil {
		return nil, err
	}
	params := r.Params
	if len(params) == 0 {
		params = []byte("{}")
	}
	return jsonmsg.Put(params, "_meta", text), nil
}
