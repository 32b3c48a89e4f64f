package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/wait"
	"github.com/assent-dev/assent/mcp/wire"
)

// program is the server's process.
type program struct {
	dir      string
	raw      io.Writer // takes whole lines
	out      *wire.Pipe
	open     sync.WaitGroup
	followed sync.Map // _meta of notifications, by URI
	polled   atomic.Int64
	asked    sync.Map // channels of answers to our questions, by their ids
}

// lines passes each write on immediately.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(line)
}

func serve(dir string) error {
	got, err := appendTo(dir, "got")
	if err != nil {
		return err
	}
	said, err := appendTo(dir, "said")
	if err != nil {
		return err
	}
	if err := begun(dir); err != nil {
		return err
	}
	raw := &lines{to: io.MultiWriter(said, os.Stdout)}
	p := &program{dir: dir, raw: raw, out: wire.NewPipe(raw)}
	in := wire.NewLines(io.TeeReader(os.Stdin, got), 32<<20)
	for first := true; ; first = false {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			p.open.Wait()
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.take(line, first); err != nil {
			return err
		}
	}
}

func appendTo(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// begun records that a process was started, with its arguments.
func begun(dir string) error {
	starts, err := appendTo(dir, "starts")
	if err != nil {
		return err
	}
	defer starts.Close()
	if _, err := fmt.Fprintln(starts, os.Getpid()); err != nil {
		return err
	}
	return errors.Join(note(dir, "args", os.Args[1:]), note(dir, "environ", os.Environ()))
}

// note keeps texts for the test.
func note(dir, name string, texts []string) error {
	text, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), text, 0o600)
}

func (p *program) script() (s Script, err error) {
	text, err := os.ReadFile(filepath.Join(p.dir, "script"))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (p *program) take(line []byte, first bool) error {
	s, err := p.script()
	if err != nil {
		return err
	}
	m, bad := wire.Parse(line, wire.Limits())
	switch {
	case bad != nil:
		return bad
	case s.Era == "first" && first && m.Method != "initialize":
		os.Exit(3)
	case m.Kind() == wire.Response:
		if answer, is := p.asked.Load(m.ID.Text()); is {
			answer.(chan []byte) <- line
		}
	case m.Kind() == wire.Request:
		p.open.Go(func() { p.answer(&s, &m) })
	}

	return nil
}

func (p *program) say(m *wire.Message, result string) {
	_ = p.out.Write(wire.Answer(m.ID, json.RawMessage(result), nil)) // the client may have gone
}

func (p *program) answer(s *Script, m *wire.Message) {
	switch {
	case m.Method == "server/discover" && s.Era == "deaf":
	case m.Method == "server/discover" && s.Era == "modern":
		p.say(m, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":`+offered(s, `{}`)+
			`,"ttlMs":0,"cacheScope":"private"}`)
	case m.Method == "initialize" && s.Era != "modern":
		p.say(m, `{"protocolVersion":"2025-11-25","capabilities":`+offered(s, `{"listChanged":true}`)+
			`,"serverInfo":`+cmp.Or(s.Info, `{"name":"recorder","version":"1"}`)+`}`)
	case s.News && p.news(s, m):
	case s.Lists != nil && p.listed(s, m):
	case m.Method == "tasks/get" || m.Method == "tasks/result" || m.Method == "tasks/cancel":
		p.task(s, m)
	case m.Method == "tools/list":
		p.list(s, m)
	case m.Method == wire.MethodCall:
		p.call(s, m)
	case m.Method == wire.MethodRead || m.Method == wire.MethodPrompt:
		p.say(m, `{"contents":[],"messages":[]}`)
	default:
		_ = p.out.Write(wire.Answer(m.ID, nil, wire.Fail(wire.CodeMethodNotFound, "unknown method")))
	}
}

// offered returns the capabilities of a server.
func offered(s *Script, tools string) string {
	if s.Lists != nil {
		tools += `,"prompts":{},"completions":{},"resources":{"subscribe":` + strconv.FormatBool(s.News) + `}`
	}
	switch {
	case s.Lists != nil && s.News:
		return `{"tools":` + tools + `,"logging":{}}`
	case !s.News:
		return `{"tools":` + tools + `}`
	}
	return `{"tools":` + tools + `,"resources":{"subscribe":true},"logging":{}}`
}

// listed answers from the script's lists, and reports whether it did.
func (p *program) listed(s *Script, m *wire.Message) bool {
	text, has := s.Lists[m.Method]
	if has && text != "" {
		p.say(m, strings.ReplaceAll(text, "PARAMS", string(m.Params)))
	}
	return has
}

// news handles requests about notifications, and reports whether it was one.
func (p *program) news(s *Script, m *wire.Message) bool {
	legacy := s.Era != "modern"
	uri, _ := jsonmsg.ReadString(jsonmsg.Get(m.Params, "uri"))
	switch {
	case m.Method == wire.MethodLevel && legacy:
	case m.Method == "resources/subscribe" && legacy:
		p.followed.Store(uri, "")
	case m.Method == "resources/unsubscribe" && legacy:
		p.followed.Delete(uri)
	case m.Method == "subscriptions/listen" && !legacy:
		p.listen(m)
		return true // the answer would end it
	default:
		return false
	}

	p.say(m, "{}")
	return true
}

func (p *program) listen(m *wire.Message) {
	f := jsonmsg.Read(jsonmsg.Get(m.Params, "notifications"), wire.Limits())
	for path, raw := range f.Elements("resourceSubscriptions", 10) {
		uri, _ := f.String(path, raw)
		p.followed.Store(uri, `,"_meta":{"`+wire.KeySubscription+`":`+m.ID.Text()+`}`)
	}
}

func (p *program) tells() {
	p.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"quiet"}}`)
	p.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"disk",` +
		`"data":{"note":"lo\u001b[2Jud"}}}`)
	p.updated("file:///other", "")
	p.followed.Range(func(uri, meta any) bool {
		p.updated(uri.(string), meta.(string))
		return true
	})
}

func (p *program) updated(uri, meta string) {
	p.line(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"` + meta + `}}`)
}

func (p *program) list(s *Script, m *wire.Message) {
	tools, err := json.Marshal(s.Tools)
	if err != nil || len(s.Tools) == 0 {
		tools = []byte("[]")
	}
	p.say(m, `{"tools":`+string(tools)+`}`)
}

func (p *program) call(s *Script, m *wire.Message) {
	call, bad := wire.ReadCall(m.Params)
	if bad != nil {
		_ = p.out.Write(wire.Answer(m.ID, nil, bad))
		return
	}
	if s.Does[call.Name] == Task {
		p.becomesTask(s, m)
		return
	}
	if s.Does[call.Name] == Question {
		p.question(s, m, call)
		return
	}
	if p.behave(s.Does[call.Name], call) {
		return
	}
	if text, has := s.Errors[call.Name]; has {
		p.line(`{"jsonrpc":"2.0","id":` + m.ID.Text() + `,"error":` + text + `}`)
		return
	}
	text, has := s.Answers[call.Name]
	if !has {
		text = `{"content":[{"type":"text","text":"done"}],"isError":false}`
	}
	p.line(`{"jsonrpc":"2.0","id":` + m.ID.Text() + `,"result":` + text + `}`)
}

// line writes a line unchanged, valid or not.
func (p *program) line(text string) {
	_, _ = io.WriteString(p.raw, text+"\n") // the client may have gone
}

// behave does what the script defines for a tool, and reports whether there is no answer.
func (p *program) behave(how string, call *wire.Call) (silent bool) {
	switch how {
	case Crash:
		os.Exit(4)
	case Hang:
		return true
	case Hold:
		p.untilReleased()
	case Progress:
		p.progress(call, 3)
	case Asks:
		p.asks()
	case Noise:
		fmt.Fprintf(os.Stderr, "\x1b[2J{\"jsonrpc\":\"2.0\"}\r\nsecond\x00line\n")
	case Tells:
		p.tells()
	case Flood:
		p.flood(call)
	case Changed:
		p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}

	return false
}

// theirTask are the members of a task of this server.
const theirTask = `"taskId":"theirs","createdAt":"2026-11-22T17:00:00Z","lastUpdatedAt":"2026-11-22T17:00:00Z",` +
	`"ttl":1000,"pollInterval":10,"ttlMs":1000,"pollIntervalMs":10,`

func (p *program) becomesTask(s *Script, m *wire.Message) {
	if s.Era == "modern" {
		p.say(m, `{"resultType":"task",`+theirTask+`"status":"working"}`)
		return
	}
	p.say(m, `{"task":{`+theirTask+`"status":"working"}}`)
}

// task returns the status of the task. It is done when it has been requested twice, or as the
// script says.
func (p *program) task(s *Script, m *wire.Message) {
	const result = `{"content":[{"type":"text","text":"done"}]}`
	status := "working"
	if p.polled.Add(1) > 1 {
		status = cmp.Or(s.TaskEnds, "completed")
	}
	switch {
	case m.Method == "tasks/result":
		p.say(m, result)
	case m.Method == "tasks/get" && s.Era == "modern" && status == "completed":
		p.say(m, `{"resultType":"complete",`+theirTask+`"status":"completed","result":`+result+`}`)
	case m.Method == "tasks/get" && s.Era == "modern" && status == "failed":
		p.say(m, `{"resultType":"complete",`+theirTask+`"status":"failed","error":{"code":-32000,"message":"broken"}}`)
	default:
		p.say(m, `{`+theirTask+`"status":"`+status+`"}`)
	}
}

// question asks the script's question, and returns the client's answer.
func (p *program) question(s *Script, m *wire.Message, call *wire.Call) {
	switch {
	case s.Era != "modern":
		id := "q" + m.ID.Text()
		answer := make(chan []byte, 1)
		p.asked.Store(`"`+id+`"`, answer)
		p.line(`{"jsonrpc":"2.0","id":"` + id + `",` + s.Asks[1:])
		p.told(m, string(<-answer))
	case call.Responses == nil:
		p.say(m, `{"resultType":"input_required","inputRequests":{"q":`+s.Asks+`},"requestState":"their own"}`)
	default:
		p.told(m, call.State+" "+string(call.Responses))
	}
}

// told answers a call with a text.
func (p *program) told(m *wire.Message, text string) {
	quoted, _ := json.Marshal(text) // a text can always be written
	p.say(m, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (p *program) untilReleased() {
	for {
		if _, err := os.Stat(filepath.Join(p.dir, "released")); err == nil {
			return
		}
		_ = wait.Pause(context.Background(), 2*time.Millisecond)
	}
}

func (p *program) progress(call *wire.Call, n int) {
	for i := range n {
		params, err := wire.Progress{Token: call.Meta.Progress, Progress: float64(i + 1)}.Params()
		if err == nil && !call.Meta.Progress.IsZero() {
			_ = p.out.Write(&wire.Message{Method: "notifications/progress", Params: params})
		}
	}
}

// asks asks the client everything that a server of 2025-11-25 may ask.
func (p *program) asks() {
	for i, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
		_ = p.out.Write(&wire.Message{
			ID:     wire.Number(int64(i + 1)),
			Method: method,
			Params: json.RawMessage(`{"message":"Approve?","requestedSchema":{"type":"object","properties":{}}}`),
		})
	}
}

func (p *program) flood(call *wire.Call) {
	const many = 10_000
	p.progress(call, many)
	for range many {
		p.line(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		p.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
}
