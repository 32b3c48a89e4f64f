package rapcall

import (
	"bufio"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/rap/runtime"
)

// rapTerminal asks the user of this terminal one question at a time.
type rapTerminal struct {
	term.Printer
	flags rapCallFlags
	at    string        // where the tool is to answer
	mu    sync.Mutex    // held while something is asked
	lines <-chan string // the lines that the person types; closed without a terminal

	told  sync.Mutex
	asked []rapExchange
}

// rapExchange is one question of the tool and the answer to it.
type rapExchange struct {
	Prompt   string   `json:"prompt"`
	Choices  []string `json:"choices"`
	Default  int      `json:"default"`
	State    string   `json:"state"`
	Selected *int     `json:"selected,omitempty"`
}

func (a command) rapTerminal(ctx context.Context, f rapCallFlags) *rapTerminal {
	p := term.Printer{W: a.Err, Color: a.ErrTerminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"}
	return &rapTerminal{Printer: p, flags: f, lines: a.typed(ctx)}
}

// typed returns the lines that a person types. The channel is closed if the input is no terminal.
func (a command) typed(ctx context.Context) <-chan string {
	lines := make(chan string)
	if !a.InTerminal {
		close(lines)
		return lines
	}
	go func() {
		defer close(lines)
		in := bufio.NewScanner(a.In)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// ask implements hold.AskFunc. It prints the verified facts first, then the tool's text.
func (t *rapTerminal) ask(ctx context.Context, q hold.Question) hold.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Printf("%s asks about the call %s %s\n", q.Server, q.Call.Tool, string(q.Call.Args))
	t.Printf("the tool says:\n")
	for line := range strings.Lines(q.Prompt) {
		// the runtime has already escaped what does not print
		t.Printf("  | %s\n", term.Ready(strings.TrimRight(line, "\r\n")))
	}
	for i, label := range q.Choices {
		t.label(i, label, i == q.Default)
	}
	answer := t.picked(ctx, q)
	x := rapExchange{
		Prompt:  q.Prompt,
		Choices: q.Choices,
		Default: q.Default,
		State:   string(answer.State),
	}
	if answer.State == hold.Chosen || answer.State == hold.Dismissed {
		x.Selected = &answer.Selected
	}
	t.told.Lock()
	defer t.told.Unlock()
	t.asked = append(t.asked, x)
	return answer
}

// label prints the mark of the default before the label. After it, a label could imitate the mark.
func (t *rapTerminal) label(i int, label string, standard bool) {
	mark := " "
	if standard {
		mark = "*"
	}
	if label == "" {
		label = "(empty)"
	}
	t.Printf("%s [%d] %s\n", mark, i, term.Ready(label))
}

// picked returns the answer of the flag, or the one that the person types. Without a person there
// is no answer.
func (t *rapTerminal) picked(ctx context.Context, q hold.Question) hold.Answer {
	if text := t.flags.answer; text != "" {
		if answer, ok := readChoice(text, q); ok {
			return answer
		}
		t.Printf("--answer %s is none of these: nothing is answered\n", text)
		return hold.Answer{State: hold.Cancelled, Reason: "no such choice"}
	}

	for {
		t.Printf("your choice, or dismiss, which picks [%d]: ", q.Default)
		line, ok := t.line(ctx)
		if !ok {
			return hold.Answer{State: hold.Cancelled, Reason: "nobody was there to answer"}
		}
		if answer, ok := readChoice(line, q); ok {
			return answer
		}
		t.Printf("expected a number from 0 to %d, or dismiss\n", len(q.Choices)-1)
	}
}

// line waits for a line or for the end of the question.
func (t *rapTerminal) line(ctx context.Context) (string, bool) {
	select {
	case line, more := <-t.lines:
		if !more {
			t.Printf("\nnobody is here to answer (--answer says it beforehand)\n")
		}
		return strings.TrimSpace(line), more
	case <-ctx.Done():
		t.Printf("\nnobody needs an answer any more\n")
		return "", false
	}
}

// readChoice accepts an index or dismiss. Anything else is no answer.
func readChoice(text string, q hold.Question) (hold.Answer, bool) {
	if text == "dismiss" {
		return hold.Answer{State: hold.Dismissed, Selected: q.Default, By: "you"}, true
	}

	n, err := strconv.Atoi(text)
	return hold.Answer{
		State:    hold.Chosen,
		Selected: n,
		By:       "you",
	}, err == nil && text == strconv.Itoa(n) && n >= 0 && n < len(q.Choices)
}

// isAnswer reports whether a text may be the answer to a question. An empty text means that the
// person is asked.
func isAnswer(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || text == "dismiss" || err == nil && n >= 0 && text == strconv.Itoa(n)
}

// expects lists the operations if the requested one is not offered, and prints how long the call
// may take if a person is watching.
func (t *rapTerminal) expects(operation string, offers []runtime.Offer) {
	names := make([]string, len(offers))
	for i, o := range offers {
		names[i] = o.Name
	}
	if !slices.Contains(names, operation) {
		t.Printf("the tool server offers no %s, but %s\n", operation, strings.Join(names, ", "))
	} else if t.Color {
		t.Printf("%s\n", term.Dim.Of("waiting for the tool, at most "+t.flags.within.String()))
	}
}

// approve implements hold.ApproveFunc for calls that the agent's file requires to be approved before they
// are sent.
func (t *rapTerminal) approve(ctx context.Context, v hold.Verdict) hold.Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Printf("%s wants this call approved: %s %s\n", t.flags.Agent, v.Call.Tool, string(v.Call.Args))
	if v.Message != "" {
		t.Printf("  %s\n", term.Ready(v.Message))
	}
	for {
		t.Printf("let it go out? yes or no: ")
		switch line, ok := t.line(ctx); {
		case !ok:
			return hold.Held{State: hold.Cancelled, Reason: "nobody was there to approve it"}
		case line == "yes":
			return hold.Held{State: hold.Approved, By: "you"}
		case line == "no":
			return hold.Held{State: hold.Denied, By: "you", Reason: "denied at the terminal"}
		}
	}
}

// exchanges returns the questions so far.
func (t *rapTerminal) exchanges() []rapExchange {
	t.told.Lock()
	defer t.told.Unlock()
	return append([]rapExchange{}, t.asked...)
}
