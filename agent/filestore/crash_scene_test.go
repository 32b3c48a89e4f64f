package filestore

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// refusedLine is the number of the call that is always rejected.
const refusedLine = "6"

// scene is one thread that is run to its end, with as many processes as that takes.
type scene struct {
	t       *testing.T
	life    // of each process
	store   *Store
	service *service
	// strike decides when to kill a process that has reached a gate: immediately, some time
	// after it was released, or never.
	strike strike
	// again sends the same answers again if there was no reply, even if they have been applied.
	again bool

	gates, lives, kills int
	allowed             map[string]bool   // lines that may have been written by now
	cut                 map[string]bool   // lines that were being written when a process was killed at a gate
	refs                map[string]string // references of the holder, by line
	replies             map[string]int    // people's replies to questions, by line
	before              []content.Content // answers that got no reply
}

type strike func(gate int, point string) time.Duration

// Results of a strike.
const (
	never = time.Duration(-1)
	now   = time.Duration(0)
)

func newScene(t *testing.T, l life, hit strike) *scene {
	t.Helper()
	dir := t.TempDir()
	l.Dir, l.Effects = filepath.Join(dir, "threads"), filepath.Join(dir, "effects")
	store := must.Get(New(l.Dir))(t)
	s := &scene{
		t:       t,
		life:    l,
		store:   store,
		strike:  hit,
		allowed: map[string]bool{},
		cut:     map[string]bool{},
		refs:    map[string]string{},
		replies: map[string]int{},
	}
	switch l.Kind {
	case "flow":
		s.allowed["1"] = true
	case "let":
		s.allowed["1"] = true
		s.allowed["2"] = true
		s.allowed["3"] = true
		s.Service, _ = newService(t)
	case "held", "questions":
		s.Service, s.service = newService(t)
	}

	return s
}

// process is one life.
type process struct {
	cmd      *exec.Cmd
	in       io.Writer
	lines    *bufio.Scanner
	problems *strings.Builder
}

func (s *scene) begin(message *content.Message) *process {
	s.t.Helper()
	l := s.life
	if message != nil {
		l.Message = sure(content.DotNet().AppendMessages(nil, []*content.Message{message}))
	}
	child := must.Get(childBinary())(s.t)
	p := &process{cmd: exec.Command(child), problems: &strings.Builder{}}
	p.cmd.Env = append(os.Environ(), childLife+"="+string(sure(json.Marshal(l))))
	p.cmd.Stderr = p.problems
	out := must.Get(p.cmd.StdoutPipe())(s.t)
	p.in = must.Get(p.cmd.StdinPipe())(s.t)
	must.Do(s.t, p.cmd.Start())
	p.lines = bufio.NewScanner(out)
	s.lives++
	return p
}

// kill ends the process with SIGKILL.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // it may have ended by itself

// letOn opens the gate. It has no effect if the process was killed there.
func (p *process) letOn() { _, _ = io.WriteString(p.in, "on\n") }

// next returns the gate at which the process waits. If the process has ended, next returns no
// gate and the result: "end", "conflict" or "killed".
func (p *process) next(t *testing.T) (gate, end string) {
	last := ""
	if p.lines.Scan() {
		last = p.lines.Text()
		if point, ok := strings.CutPrefix(last, "at "); ok {
			return point, ""
		}
	}

	err := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", last
	case errors.As(err, &exit) && !exit.Exited():
		return "", "killed"
	}

	t.Errorf("%v: %s", err, p.problems)
	return "", "failed"
}

// drive lets a process run until it ends or is killed.
func (s *scene) drive(p *process) string {
	for {
		point, end := p.next(s.t)
		if point == "" {
			if end == "killed" {
				s.kills++
			}
			return end
		}

		s.gates++
		switch after := s.strike(s.gates, point); after {
		case never:
		case now:
			p.kill()
			if n, ok := strings.CutPrefix(point, "act "); ok {
				s.cut[n] = true
			}
			if n, ok := strings.CutPrefix(point, "acted "); ok {
				s.cut[n] = true
			}
		default:
			defer time.AfterFunc(after, p.kill).Stop()
		}

		p.letOn()
	}
}

// play runs the thread to its end.
func (s *scene) play() {
	s.t.Helper()
	for s.lives < 20+s.kills {
		message, over := s.next()
		if over {
			s.check()
			return
		}
		switch end := s.drive(s.begin(message)); end {
		case "end":
			s.before = nil
		case "killed":
			if message != nil {
				s.before = message.Contents
			}
		default:
			s.t.Fatalf("a life came to: %s", end)
		}

		s.checkLines()
	}

	s.t.Fatalf("no end after %d lives", s.lives)
}

// load returns the stored thread, or nil if there is none.
func (s *scene) load() *agent.Thread {
	s.t.Helper()
	th, err := s.store.Load(s.t.Context(), threadID)
	if errors.Is(err, agent.ErrNoThread) {
		return nil
	}
	must.Do(s.t, err)
	return th
}

// next returns the user's next message, or nil if the user waits for the agent to continue.
func (s *scene) next() (message *content.Message, over bool) {
	s.t.Helper()
	th := s.load()
	if th == nil {
		return content.UserText("go"), false
	}
	open := th.Pending()
	if n := len(th.Messages); len(open) == 0 && n > 0 && th.Messages[n-1].Text() == "done" {
		return nil, true
	}
	if s.Kind == "questions" {
		s.reply(open)
		return nil, false
	}
	reply := content.NewMessage(content.User)
	for _, p := range open {
		if p.Ref != "" {
			n, approved := s.service.vote(s.t, p.Ref)
			if s.refs[n] = p.Ref; approved {
				s.allowed[n] = true
			}
			continue
		}

		answer, n := s.answer(p.Request)
		if n != "" {
			s.allowed[n] = true
		}
		reply.Contents = append(reply.Contents, answer)
	}

	if s.again && s.before != nil && isAnswer(s.before[0]) {
		reply.Contents = append(s.before, reply.Contents...)
	}
	if len(reply.Contents) == 0 {
		return nil, false
	}
	return reply, false
}

// reply lets people answer one of the open questions and not the others, so that the process
// continues with only some of the answers.
func (s *scene) reply(open []agent.Pending) {
	s.t.Helper()
	for _, p := range open {
		if p.Ref == "" { // the process was killed before it could put the question
			continue
		}
		n, replied := s.service.reply(s.t, p.Ref)
		if !replied {
			continue
		}
		if s.replies[n]++; s.replies[n] == 2 {
			s.allowed[n] = true
		}

		return
	}
}

func isAnswer(c content.Content) bool {
	_, ok := c.(content.InputResponse)
	return ok
}

// answer returns the user's answer to a request, and the line that may be written afterwards.
func (s *scene) answer(q content.InputRequest) (answer content.InputResponse, line string) {
	switch q := q.(type) {
	case *content.ToolApprovalRequest:
		n := lineOf(q.Call.Args())
		switch {
		case n == refusedLine:
			return q.CreateRejection("no"), ""
		case q.Call.ToolName() == "flow":
			return q.CreateApproval(""), "1"
		case q.Call.ToolName() == "pay":
			return q.CreateApproval(""), n
		}

		return q.CreateApproval(""), ""
	case *content.TextApprovalRequest:
		if s.Kind == "chat" {
			return q.CreateApproval(""), "3"
		}
		return q.CreateApproval(""), "2"
	case *content.StructuredInputRequest:
		answer := must.Get(q.CreateResponse(json.RawMessage(`{"name":"Ann"}`)))(s.t)
		return answer, "3"
	}

	s.t.Fatalf("asked a %T", q)
	return nil, ""
}

// lines counts the written lines.
func (s *scene) lines() map[string]int {
	s.t.Helper()
	text, err := os.ReadFile(s.Effects)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	out := map[string]int{}
	for n := range strings.Lines(string(text)) {
		out[strings.TrimSpace(n)]++
	}
	return out
}

// checkLines compares the written lines with the allowed ones.
func (s *scene) checkLines() {
	s.t.Helper()
	for n, times := range s.lines() {
		if times > 1 || !s.allowed[n] {
			s.t.Errorf("line %s was written %d times, allowed: %v", n, times, s.allowed[n])
		}
		if ref := s.refs[n]; s.Kind == "held" && !s.service.used(s.t, ref) {
			s.t.Errorf("line %s was written and the run of %s was not taken", n, ref)
		}
	}
}

// check compares what the model, or the user of a flow, got as results with the work that was done.
func (s *scene) check() {
	s.t.Helper()
	s.checkLines()
	th := s.load()
	results, err := readHistory(th.Messages)
	if err != nil {
		s.t.Error(err)
	}
	if s.Kind == "flow" {
		results = saidOf(th)
	}
	done := s.lines()
	switch s.Kind {
	case "nested", "nested flow":
		s.checkDeputy(results, done)
		return
	}
	for n := range s.allowed {
		told := results[callID(n)]
		ran := told == "paid" && done[n] == 1 && !s.cut[n]
		if !ran && !strings.Contains(told, "not known") {
			s.t.Errorf("call %s, done %d times, cut off %v: the model was told %q", n, done[n], s.cut[n], told)
		}
	}

	if s.Kind == "questions" {
		s.checkQuestions(results)
	}
	if told := results[callID(refusedLine)]; (s.Kind == "chat" || s.Kind == "held") &&
		(!strings.Contains(told, "rejected") || done[refusedLine] > 0) {
		s.t.Errorf("the rejected call: %q, done %d times", told, done[refusedLine])
	}
}

// saidOf reads the flow's messages about its steps.
func saidOf(th *agent.Thread) map[string]string {
	out := map[string]string{}
	for _, m := range th.Messages {
		if n, told, ok := strings.Cut(m.Text(), " "); ok && m.Role == content.Assistant {
			out[callID(n)] = told
		}
	}
	return out
}

// checkDeputy compares the result of the outer call with what its inner calls did.
func (s *scene) checkDeputy(results map[string]string, done map[string]int) {
	s.t.Helper()
	told := results[callID("bank")] + results[callID("flow")]
	ran := told != "" && len(done) == 3 && len(s.cut) == 0
	if !ran && !strings.Contains(told, "not known") {
		s.t.Errorf("done %v, cut off %v: the model was told %q", done, s.cut, told)
	}
}

// checkQuestions checks that each question was put once, and that both questions of each call
// that acted were answered. A call that was lost before it asked must be reported as lost.
func (s *scene) checkQuestions(results map[string]string) {
	s.t.Helper()
	asked, answered := s.service.asked(s.t)
	for key, n := range asked {
		if n != 1 {
			s.t.Errorf("%q was asked %d times", key, n)
		}
	}
	for _, n := range []string{"1", "2", "3"} {
		both := answered[n+" "+sureAsked] == 1 && answered[n+" "+whoAsked] == 1
		told := results[callID(n)]
		if told == "paid" && !both || told != "paid" && !strings.Contains(told, "not known") {
			s.t.Errorf("call %s, answered %v: the model was told %q", n, answered, told)
		}
	}
}
