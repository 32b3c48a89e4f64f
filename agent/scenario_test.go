package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/resolve"
)

// scenario is a conversation that a test writes down line by line:
//
//	model "a?" 1=pay({"n":1}) | "ok"    the model's turns; "/" starts another message of the turn, "fails" is an
//	                                    error, "thought" is reasoning, and r=hosted, s=data and w=consent are
//	                                    questions of its service
//	tools pay! look theirs?             pay needs approval, theirs is run by the caller
//	with supersede keeps                supersede, wrap, dotnet or limit (one turn) of LoopConfig;
//	                                    keeps: the service keeps the history
//	decide ask r within=1m              what the decider says from now on: allow, ask or deny, and the rules
//	later 1m                            moves the clock
//	> "hello" +ficc_1 | =5:"done"       one run: text, +id approves, -id:"why" rejects, ~id:{"n":2} edits, %id
//	                                    approves another call; =id:json is the result of a caller's tool, () is
//	                                    an empty message and "|" starts another one
//
// and what each run must lead to, compared as a whole:
//
//	asks, open      ids of the requests in the response, and of those that are open in the thread
//	refused         answers that were refused, and why
//	why             a part of what the first refusal says
//	told, sent      the messages of the response, and those that the model was given in its last turn
//	joined          what sent shows, with neighbouring messages of one role joined
//	pairs           the hosted requests and answers that the model was given in its last turn
//	kept            the messages in the thread
//	conversation    its id in the response, in the thread and in the options of the model's last turn
//	offered         the tools that the model was offered in its last turn
//	harmless        ids of the requests in the response that need no confirmation
//	expires         how long the first request of the response is open
//	ran             the calls that have run so far
//	turns           how many turns the model has had
//	events          the events recorded since the last such line
//	error           a part of the run's error; any other error fails the scenario
type scenario struct {
	runner
	reloads bool // each run is in a separate process
	model   *talker
	cfg     LoopConfig
	tools   []Tool
	runs    counted
	decider *changing
	clock   *clock
	journal *journal
	thread  *Thread
	shown   map[string]content.InputRequest // every request, by id
	resp    *Response
	err     error
}

// playScenarios plays each scenario with Run and with Stream, both in one process and with the
// thread stored and loaded before each run.
func playScenarios(t *testing.T, scenarios map[string]string) {
	t.Helper()
	for name, text := range scenarios {
		for _, reloads := range []bool{false, true} {
			bothWaysOf(t, fmt.Sprintf("%s, reloads %v", name, reloads), func(t runner) {
				s := &scenario{
					runner:  t,
					reloads: reloads,
					model:   talk(t),
					journal: &journal{},
					clock:   newClock(),
					thread:  NewThread("t"),
					shown:   map[string]content.InputRequest{},
				}
				s.cfg = LoopConfig{Audit: s.journal.take, Now: s.clock.now}
				s.play(text)
			})
		}
	}
}

func (s *scenario) play(text string) {
	s.Helper()
	text = strings.NewReplacer("\n\t\t\t/ ", " / ", // continuation of a long line
		"GONE", textSuperseded, "STOPPED", textStopped, "LIMIT", textLimit, "EXPIRED", textExpired).Replace(text)
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if s.err != nil && verb != "error" {
			s.Fatalf("before %q: %v", line, s.err)
		}
		if verb != "" && !s.step(verb, rest) {
			s.expect(verb, rest)
		}
	}
	if s.err != nil {
		s.Fatal(s.err)
	}
}

// step handles the lines that do something.
func (s *scenario) step(verb, rest string) bool {
	words := fields(rest)
	switch verb {
	case "model":
		for _, turn := range split(words, "|") {
			s.model.turns = append(s.model.turns, s.turn(turn))
		}
	case "tools":
		s.tools = nil
		for _, name := range words {
			s.tools = append(s.tools, s.tool(name))
		}
	case "with":
		for _, option := range words {
			s.option(option)
		}
	case "decide":
		s.decide(words)
	case "later":
		s.clock.at = s.clock.at.Add(sure(time.ParseDuration(rest)))
	case ">":
		if s.reloads {
			s.thread = reload(s, s.thread)
		}
		var in []*content.Message
		for _, m := range split(words, "|") {
			in = append(in, s.message(m))
		}
		s.resp, s.err = s.try(chat(s.model, s.cfg, nil, s.tools...), s.thread, in...)
		if s.resp == nil {
			s.resp = &Response{}
		}
		for _, q := range s.resp.UserInputRequests() {
			s.shown[q.InputRequestID()] = q
		}
	default:
		return false
	}

	return true
}

// expect compares one result of a run.
func (s *scenario) expect(verb, want string) {
	s.Helper()
	got := ""
	switch verb {
	case "asks":
		got = idsOf(s.resp.UserInputRequests())
	case "open":
		var open []content.InputRequest
		for _, p := range s.thread.Pending() {
			open = append(open, p.Request)
		}
		got = idsOf(open)
	case "refused":
		got = refusals(s.resp)
	case "told":
		got = inLine(tell(s.resp.Messages))
	case "sent":
		got = inLine(s.model.last())
	case "joined":
		got = inLine(tell(coalesced(s.model.seen[len(s.model.seen)-1])))
	case "pairs":
		got = hosted(s.model.seen[len(s.model.seen)-1])
	case "kept":
		got = inLine(tell(s.thread.Messages))
	case "ran":
		var ran []string
		for _, call := range slices.Sorted(maps.Keys(s.runs.runs)) {
			ran = append(ran, slices.Repeat([]string{call}, s.runs.runs[call])...)
		}
		got = strings.Join(ran, " ")
	case "conversation":
		used := s.model.options[len(s.model.options)-1].ConversationID
		got = strings.Join([]string{s.resp.ConversationID, s.thread.ConversationID, used}, " ")
	case "offered":
		var names []string
		for _, tool := range s.model.options[len(s.model.options)-1].Tools {
			names = append(names, tool.Definition().Name)
		}
		got = strings.Join(names, " ")
	case "harmless":
		for q := range content.All[*content.ToolApprovalRequest](s.resp.Messages) {
			if q.NoConfirmation {
				got += " " + q.RequestID
			}
		}
		got = strings.TrimSpace(got)
	case "expires":
		got = content.NoteOf(s.resp.UserInputRequests()[0]).Expires.Sub(s.clock.at).String()
	case "turns":
		got = strconv.Itoa(len(s.model.seen))
	case "events":
		got = strings.ReplaceAll(strings.TrimSpace(s.journal.tell()), "\n", "; ")
		s.journal.events = nil
	case "why":
		if len(s.resp.Refused) == 0 || !strings.Contains(s.resp.Refused[0].Detail, want) {
			s.Errorf("refused %+v, want %q", s.resp.Refused, want)
		}
		return
	case "error":
		if s.err == nil || !strings.Contains(s.err.Error(), want) {
			s.Fatalf("the error is %v, want %q", s.err, want)
		}
		s.err = nil
		return
	default:
		s.Fatalf("there is no line %q", verb)
	}

	if got != want {
		s.Errorf("%s:\n got %s\nwant %s", verb, got, want)
	}
}

// turn parses a turn of the model.
func (s *scenario) turn(words []string) func([]*content.Message, *Options) ([]*content.Message, error) {
	if slices.Equal(words, []string{"fails"}) {
		return fails
	}
	var messages []*content.Message
	for _, part := range split(words, "/") {
		m := content.NewMessage(content.Assistant)
		for _, word := range part {
			m.Contents = append(m.Contents, s.said(word))
		}
		messages = append(messages, m)
	}
	return saidAll(messages...)
}

func (s *scenario) said(word string) content.Content {
	id, what, _ := strings.Cut(word, "=")
	name, args, isCall := strings.Cut(strings.TrimSuffix(what, ")"), "(")
	switch {
	case word[0] == '"':
		return text(sure(strconv.Unquote(word)))
	case isCall:
		return call(id, name, args)
	case what == "hosted":
		return mcpRequest(id)
	case what == "data":
		return &content.StructuredInputRequest{RequestID: id}
	case what == "consent":
		return &content.TextApprovalRequest{RequestID: id}
	case word == "thought":
		return &content.Reasoning{Text: "hm", Protected: "seal"}
	}

	s.Fatalf("the model can't say %q", word)
	return nil
}

func (s *scenario) tool(word string) Tool {
	name := strings.TrimRight(word, "!?")
	run := s.runs.tool(name)
	if name == "halt" {
		run = halting(name)
	}
	switch strings.TrimPrefix(word, name) {
	case "":
		return run
	case "!":
		return RequireApproval(run)
	case "?":
		return declaredTool(name)
	case "?!":
		return markedDeclared{declaredTool(name)}
	}

	s.Fatalf("there is no tool %q", word)
	return nil
}

func (s *scenario) option(word string) {
	switch word {
	case "supersede":
		s.cfg.OnNewMessage = Supersede
	case "wrap":
		s.cfg.WrapSiblings = true
	case "dotnet":
		s.cfg.DotNetOrder = true
	case "limit":
		s.cfg.MaxTurns = 1
	case "keeps":
		s.model.keeps = "conv"
	default:
		s.Fatalf("there is no option %q", word)
	}
}

func (s *scenario) decide(words []string) {
	if s.decider == nil {
		s.decider = &changing{}
		s.cfg.Decider = s.decider
	}
	outcome := map[string]resolve.Outcome{"allow": resolve.Allow, "ask": resolve.Ask, "deny": resolve.Deny}[words[0]]
	within := time.Duration(0)
	rules := slices.DeleteFunc(words[1:], func(word string) bool {
		limit, ok := strings.CutPrefix(word, "within=")
		if ok {
			within = sure(time.ParseDuration(limit))
		}
		return ok
	})
	s.decider.verdict = outcomeOf(outcome, rules...)
	if within > 0 {
		s.decider.verdict = required(s.decider.verdict, within)
	}
}

func (s *scenario) message(words []string) *content.Message {
	m := content.NewMessage(content.User)
	for _, word := range words {
		id, rest, _ := strings.Cut(word[1:], ":")
		switch word[0] {
		case '"':
			m.Contents = append(m.Contents, text(sure(strconv.Unquote(word))))
		case '=':
			m.Role = content.ToolRole
			m.Contents = append(m.Contents, &content.FunctionResult{CallID: id, Result: json.RawMessage(rest)})
		case '(':
		default:
			m.Contents = append(m.Contents, s.answer(word[0], id, rest))
		}
	}

	return m
}

// answer makes an answer to a request that was shown, or to one that never was.
func (s *scenario) answer(how byte, id, rest string) content.Content {
	switch q := s.shown[id].(type) {
	case *content.TextApprovalRequest:
		return q.CreateApproval("")
	case *content.ToolApprovalRequest:
		switch how {
		case '+':
			return q.CreateApproval("")
		case '-':
			reason, _ := strconv.Unquote(rest)
			return q.CreateRejection(reason)
		case '~':
			return sure(q.CreateEdit(json.RawMessage(rest), ""))
		case '%':
			a := q.CreateApproval("")
			a.Call = call(q.Call.ID(), q.Call.ToolName(), `{}`)
			if c, ok := q.Call.(*content.MCPCall); ok {
				other := *c
				other.Arguments = json.RawMessage(`{}`)
				a.Call = &other
			}
			return a
		}
	}
	if s.shown[id] != nil {
		s.Fatalf("there is no answer %q to %s", how, id)
	}

	return &content.ToolApprovalResponse{RequestID: id, Approved: true}
}

func idsOf(requests []content.InputRequest) string {
	var ids []string
	for _, q := range requests {
		ids = append(ids, q.InputRequestID())
	}
	return strings.Join(ids, " ")
}

func inLine(told string) string { return strings.ReplaceAll(strings.TrimSpace(told), "\n", " / ") }

// fields splits a line at spaces outside of quotes.
func fields(line string) []string {
	var out []string
	quoted, word := false, ""
	for i, r := range line + " " {
		if r == '"' && (i == 0 || line[i-1] != '\\') {
			quoted = !quoted
		}
		if r != ' ' || quoted {
			word += string(r)
			continue
		}
		if word != "" {
			out = append(out, word)
		}
		word = ""
	}
	return out
}

// split cuts words at a separator. It returns no parts for no words.
func split(words []string, at string) [][]string {
	if len(words) == 0 {
		return nil
	}
	parts := [][]string{nil}
	for _, word := range words {
		if word == at {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], word)
	}
	return parts
}
