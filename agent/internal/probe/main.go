// Command probe lets scripts of other languages drive assent's
// packages. It answers one JSON line with another one, until its input
// ends. "probe agui" and "probe a2a" serve an agent instead, and "probe
// remote URL TEXT" has an agent call a remote one.
//
// A line names what to do in "do":
//
//	carry    {"shapes": [...], "content": …}            decode in the first, pass through the others, encode
//	answer   {"shapes": [...], "content": …, "how": …}  carry a request through, answer it, and carry the answer back
//	status   {"shapes": [...], "content": …}            the status of an A2A task that asks
//	answers  {"shapes": [...], "content": …, "message": …}  what an A2A message answers to that task
//	interruptions  {"content": …}                       what a saved RunState of OpenAI's Agents SDK waits for
//	consent  {"shapes": [...], "content": …}            the host of a sign-in that a service wants
//	verify   {"secret": …, "headers": {…}, "body": …}   a webhook message
//
// An answer is {"out": …} or {"error": …}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/runstate"
	"github.com/assent-dev/assent/server/notify/webhook"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case slices.Equal(args, []string{"agui"}) || slices.Equal(args, []string{"a2a"}):
		return serveAgent(args[0], out)
	case len(args) == 3 && args[0] == "remote":
		return callRemote(args[1], args[2], out)
	case len(args) > 0:
		return fmt.Errorf("expected no arguments, agui, a2a, or remote URL TEXT")
	}

	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		answer, err := do(lines.Bytes())
		if err := reply(out, answer, err); err != nil {
			return err
		}
	}

	return lines.Err()
}

// reply writes one line. HTML is not escaped, so that texts come back
// as they went.
func reply(out io.Writer, answer json.RawMessage, failed error) error {
	line := map[string]any{"out": answer}
	if failed != nil {
		line = map[string]any{"error": failed.Error()}
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(line)
}

// request is one line.
type request struct {
	Do      string
	Shapes  []string
	Content json.RawMessage
	How     string          // approve, reject, always, always_arguments or edit
	Reason  string          // of an answer
	Args    json.RawMessage // of an edit
	Message json.RawMessage
	Secret  string
	Headers map[string]string
	Body    string
}

func do(line []byte) (json.RawMessage, error) {
	var r request
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("the line: %w", err)
	}
	switch r.Do {
	case "carry":
		c, err := r.read()
		if err != nil {
			return nil, err
		}
		return codecs()[r.Shapes[len(r.Shapes)-1]].AppendContent(nil, c)
	case "answer":
		return r.answer()
	case "status":
		return r.status()
	case "answers":
		return r.answers()
	case "interruptions":
		return interruptions(r.Content)
	case "consent":
		c, err := r.read()
		if err != nil {
			return nil, err
		}
		consent, ok := content.ConsentOf(c)
		if !ok {
			return nil, fmt.Errorf("expected a consent, found a %T", c)
		}
		return json.Marshal(consent.Host)
	case "verify":
		header := http.Header{}
		for name, text := range r.Headers {
			header.Set(name, text)
		}
		return json.RawMessage("true"), webhook.Verify(r.Secret, header, []byte(r.Body), time.Now(), 5*time.Minute)
	}

	return nil, fmt.Errorf("nothing is known of %q", r.Do)
}

// interruptions writes the requests in .NET's shape.
func interruptions(state []byte) (json.RawMessage, error) {
	all, err := runstate.Read(state)
	if err != nil {
		return nil, err
	}
	out := []json.RawMessage{}
	for _, q := range all {
		raw, err := content.DotNet().AppendContent(nil, q)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}

	return json.Marshal(out)
}

func codecs() map[string]content.Codec {
	return map[string]content.Codec{
		"dotnet": content.DotNet(),
		"python": content.Python(),
		"go":     content.GoFramework(),
	}
}

// read reads the content in the first shape and carries it through the
// others.
func (r *request) read() (content.Content, error) {
	if len(r.Shapes) == 0 {
		return nil, fmt.Errorf("expected shapes")
	}
	return carry(nil, r.Content, r.Shapes)
}

// carry writes a content in each shape and reads it again. Without a
// content it begins with the text.
func carry(c content.Content, text []byte, shapes []string) (content.Content, error) {
	for i, name := range shapes {
		codec, ok := codecs()[name]
		if !ok {
			return nil, fmt.Errorf("no shape is called %q", name)
		}
		var err error
		if c != nil || i > 0 {
			if text, err = codec.AppendContent(nil, c); err != nil {
				return nil, fmt.Errorf("write %s: %w", name, err)
			}
		}
		if c, err = codec.DecodeContent(text); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}

	return c, nil
}

func (r *request) answer() (json.RawMessage, error) {
	c, err := r.read()
	if err != nil {
		return nil, err
	}
	q, ok := c.(*content.ToolApprovalRequest)
	if !ok {
		return nil, fmt.Errorf("expected an approval request, found a %T", c)
	}
	var a *content.ToolApprovalResponse
	switch r.How {
	case "approve":
		a = q.CreateApproval(r.Reason)
	case "reject":
		a = q.CreateRejection(r.Reason)
	case "always":
		a = q.CreateAlwaysApprove(content.AlwaysTool, r.Reason)
	case "always_arguments":
		a = q.CreateAlwaysApprove(content.AlwaysArguments, r.Reason)
	case "edit":
		if a, err = q.CreateEdit(r.Args, r.Reason); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("nobody answers %q", r.How)
	}

	back := slices.Clone(r.Shapes)
	slices.Reverse(back)
	if c, err = carry(a, nil, back); err != nil {
		return nil, err
	}
	return codecs()[r.Shapes[0]].AppendContent(nil, c)
}

// asked returns a task that asks what the content asks.
func (r *request) asked() (a2a.Asked, error) {
	c, err := r.read()
	if err != nil {
		return a2a.Asked{}, err
	}
	q, ok := c.(content.InputRequest)
	if !ok {
		return a2a.Asked{}, fmt.Errorf("expected a request, found a %T", c)
	}
	return a2a.Asked{
		TaskID:    "task-1",
		ContextID: "context-1",
		Requests:  []content.InputRequest{q},
	}, nil
}

func (r *request) status() (json.RawMessage, error) {
	a, err := r.asked()
	if err != nil {
		return nil, err
	}
	status, err := a.Status("message-1")
	if err != nil {
		return nil, err
	}
	return json.Marshal(a2a.Task{ID: a.TaskID, ContextID: a.ContextID, Status: *status})
}

func (r *request) answers() (json.RawMessage, error) {
	a, err := r.asked()
	if err != nil {
		return nil, err
	}
	m, err := a2a.DecodeMessage(r.Message)
	if err != nil {
		return nil, err
	}
	all, err := a.Answers(m)
	if err != nil {
		return nil, err
	}
	return content.DotNet().AppendContent(nil, all[0])
}
