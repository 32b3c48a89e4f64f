package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

const agentText = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
constraints: {governance_policies: [{policy_ref: acme.trades}]}
action_space:
  local_tools:
    - {alias: quote}
    - {alias: trade, approval: {condition: {args_match: {amount: {gt: 100}}}}}
    - {alias: wire}
    - {alias: web_fetch}
  mcp_servers:
    - {alias: files, approval: true}
    - {alias: my__files, allowed_tools: [list]}
`

const policyText = `schema_version: "1.0.0"
policy_ref: acme.trades
rules:
  - id: large
    match: {targets: [trade]}
    approval: {condition: {args_match: {amount: {gt: 1000}}}}
    require: {stages: [{group: risk, people: 1}], arguments: {redact: [account]}}
  - {id: never, match: {targets: [wire]}, deny: Treasury moves cash.}
`

// compiled makes a plan from texts, after replacements.
func compiled(t testing.TB, replace ...string) (*resolve.Plan, *schema.Agent) {
	t.Helper()
	swap := strings.NewReplacer(replace...)
	agent, findings := schema.Parse("desk.agf.yaml", []byte(swap.Replace(agentText)))
	if agent == nil {
		t.Fatal(findings)
	}
	p, findings := policy.Parse("trades.policy.yaml", []byte(swap.Replace(policyText)))
	if p == nil {
		t.Fatal(findings)
	}
	set, _ := policy.NewSet(p)
	plan, err := resolve.Compile(agent, set, resolve.Options{})
	must.Do(t, err)
	return plan, agent
}

// loosened returns the plan with higher limits.
func loosened(t testing.TB) (*resolve.Plan, *schema.Agent) {
	return compiled(t, "gt: 100}", "gt: 2000}", "gt: 1000}", "gt: 2000}", "approval: true", "approval: false")
}

// outcome is the result of a replay.
type outcome struct {
	text   string
	report *Report
	bad    []string
	err    error
}

// replayed runs a replay over inputs, which are named "a", "b" and so on.
func replayed(t testing.TB, format string, opt Options, inputs ...string) outcome {
	t.Helper()
	var out bytes.Buffer
	var done outcome
	printer, err := NewPrinter(format, &out)
	must.Do(t, err)
	opt.Bad = func(file string, line int, err error) {
		done.bad = append(done.bad, fmt.Sprintf("%s:%d: %v", file, line, err))
	}
	r := New(opt, printer)
	for i, in := range inputs {
		if done.err = r.Read(string(rune('a'+i)), strings.NewReader(in)); done.err != nil {
			return done
		}
	}
	done.report, done.err = r.Close()
	done.text = out.String()
	return done
}

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	must.Do(t, err)
	return string(text)
}

// TestGolden writes each kind of record in each format: a ledger with the recorded outcomes,
// the others against a second plan.
func TestGolden(t *testing.T) {
	now, agent := loosened(t)
	before, _ := compiled(t)
	for _, tt := range []struct {
		name   string
		old    *resolve.Plan
		inputs []string
	}{
		{"ledger", nil, []string{file(t, "ledger.jsonl")}},
		{"ledger-plans", before, []string{file(t, "ledger.jsonl")}},
		{"traces", before, []string{file(t, "claude.jsonl"), file(t, "otel.json")}},
		{"calls", before, []string{strings.Join(callLines(), "\n")}},
		{"alone", nil, []string{strings.Join(callLines(), "\n")}},
	} {
		for _, format := range Formats() {
			got := replayed(t, format, Options{Agent: agent, New: now, Old: tt.old}, tt.inputs...)
			if got.err != nil || got.bad != nil {
				t.Fatalf("%s: %v %v", tt.name, got.err, got.bad)
			}
			golden.Equal(t, tt.name+"."+format, got.text)
		}
	}
}

// callLines are calls with hostile texts, with and without a time.
func callLines() []string {
	return []string{
		`{"kind":"tool","tool":"trade","args":{"amount":500,"note":"| **x** </td> ` + "```" + ` @all \u202e` + "\u202e" + `"}}`,
		`{"time":"2026-11-20T08:00:00Z","kind":"tool","tool":"trade","args":{"amount":1500,"account":"DE-9"}}`,
		``,
		`{"kind":"tool","tool":"trade","args":{"amount":99999},"time":"2026-11-21T23:59:59+02:00"}`,
		`{"kind":"tool","tool":"a|b` + "`" + `<i>@me","args":{}}`,
		`{"kind":"mcp_tool","server":"files","tool":"rm","args":{"path":"/"}}`,
	}
}

// TestDenialsThatWouldGoUnasked tests the main purpose of replaying a ledger.
func TestDenialsThatWouldGoUnasked(t *testing.T) {
	now, agent := loosened(t)
	before, _ := compiled(t)
	got := replayed(t, "json", Options{Agent: agent, New: now}, file(t, "ledger.jsonl"))
	// 500 was denied and would run; 5000 was denied and is still asked about.
	if r := got.report; r.Denials != 2 || r.DenialsUnasked != 1 || r.Compared != "record" ||
		r.Matrix.Ask.Allow != 3 || r.Matrix.Allow.Allow != 2 || r.Matrix.Deny.Deny != 2 {
		t.Errorf("%+v\n%s", r, got.text)
	}
	if !strings.Contains(got.text, `"account":"(hidden by policy)"`) || strings.Contains(got.text, "DE-1") {
		t.Errorf("what the policy hides is shown\n%s", got.text)
	}
	same := replayed(t, "json", Options{Agent: agent, New: before}, file(t, "ledger.jsonl"))
	if r := same.report; r.Denials != 2 || r.DenialsUnasked != 0 || r.Unasked != 0 || r.Matrix.Ask.Ask != 4 {
		t.Errorf("%+v\n%s", r, same.text)
	}
}

// TestLateDenialsCountAndEditsDoNot checks that a denial before the call runs counts, and that
// an approver's edit doesn't count as a call of the agent.
func TestLateDenialsCountAndEditsDoNot(t *testing.T) {
	now, agent := loosened(t)
	entry := func(i int, kind, facts, args string) string {
		sealed, openings := `{}`, `{}`
		if args != "" {
			sealed, openings = `{\"args\":\"sha256:0\"}`, `{"args":{"salt":"","value":"`+args+`"}}`
		}
		return fmt.Sprintf(
			`{"index":%d,"hash":"","leaf":"{\"facts\":{\"agent\":\"desk\",\"target\":\"tool trade\"%s},\"sealed\":%s,`+
				`\"subject\":\"r\",\"time\":\"2026-11-22T00:00:00Z\",\"type\":\"%s\"}","openings":%s}`+"\n",
			i, facts, sealed, kind, openings)
	}
	head := `{"format":"assent-ledger/1"}` + "\n"
	for name, tt := range map[string]struct {
		text                    string
		calls, denials, unasked int
		bad                     string
	}{
		"late": {head + entry(0, "request_opened", "", `{\"amount\":500}`) + entry(1, "request_approved", "", "") +
			entry(2, "request_expired", `,\"cause\":\"late_deny\"`, "") + `{"entries":3}`, 1, 1, 1, ""},
		"expired": {head + entry(0, "request_opened", "", `{\"amount\":500}`) +
			entry(1, "request_expired", `,\"cause\":\"deadline\"`, "") + entry(2, "request_denied", "", "") +
			`{"entries":3}`, 1, 0, 0, ""},
		"edited up": {head + entry(0, "request_opened", "", `{\"amount\":500}`) +
			entry(1, "request_edited", "", `{\"amount\":9000}`) + entry(2, "request_denied", "", "") +
			`{"entries":3}`, 1, 1, 0, ""},
		"edited down": {head + entry(0, "request_opened", "", `{\"amount\":9000}`) +
			entry(1, "request_edited", "", `{\"amount\":5}`) + entry(2, "request_denied", "", "") +
			`{"entries":3}`, 1, 1, 1, ""},
		"a question": {head + entry(0, "request_opened", `,\"question\":true`, `{\"amount\":500}`) +
			entry(1, "request_denied", "", "") + `{"entries":2}`, 0, 0, 0, ""},
		"frozen": {
			head + entry(0, "call_denied", `,\"why\":\"frozen\"`, `{\"amount\":5}`) + `{"entries":1}`, 1, 0, 0, "",
		},
		"redacted": {
			head + strings.Replace(entry(0, "request_opened", "", `x`), `{"args":{"salt":"","value":"x"}}`, `{}`, 1) +
				entry(1, "request_denied", "", "") + `{"entries":2}`, 0, 0, 0,
			"a:2: its arguments were redacted, so the call can't be decided again",
		},
		"too long": {
			head + strings.Replace(strings.Replace(entry(0, "call_allowed", "", `x`), `\"args\"`, `\"args_digest\"`, 1),
				`{"args":{`, `{"args_digest":{`, 1) + `{"entries":1}`, 0, 0, 0,
			"a:2: its arguments were too long to be kept (ledger.keep_arguments), so the call can't be decided again",
		},
		"truncated": {
			head + entry(0, "call_allowed", "", `{}`), 1, 0, 0,
			"a:3: the export is truncated: its last line is missing",
		},
		"cut in a line": {head + entry(0, "call_allowed", "", `{}`)[:40], 0, 0, 0, "a:2: column "},
		"dropped": {
			head + entry(0, "call_allowed", "", `{}`) + entry(2, "call_allowed", "", `{}`) + `{"entries":3}`, 2, 0, 0,
			"a:3: found entry 2 in the place of entry 1",
		},
		"miscounted": {
			head + entry(0, "call_allowed", "", `{}`) + `{"entries":3}`, 1, 0, 0,
			"a:3: the export says that it has 3 entries, but 1 were read",
		},
		"continued": {head + `{"entries":0}` + "\n" + entry(0, "call_allowed", "", `{}`), 1, 0, 0,
			"a:3: unexpected line behind the last one of the export"},
		"no target": {
			head + strings.Replace(entry(0, "call_allowed", "", `{}`), "tool trade", "tools trade", 1) +
				`{"entries":1}`, 0, 0, 0, `a:2: "tools trade" is no target of a call`,
		},
		"another version": {`{"format":"assent-ledger/2"}` + "\n" + `{"entries":0}`, 0, 0, 0,
			"a:1: not an export of the format assent-ledger/1"},
		"another agent": {
			head + strings.Replace(entry(0, "call_allowed", "", `{}`), "desk", "d2", 1) + `{"entries":1}`, 0, 0, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := replayed(t, "json", Options{Agent: agent, New: now}, tt.text)
			r := got.report
			if got.err != nil || r.Calls != tt.calls || r.Denials != tt.denials || r.DenialsUnasked != tt.unasked {
				t.Errorf("calls %d, denials %d, unasked %d, %v\n%v", r.Calls, r.Denials, r.DenialsUnasked, got.err, got.bad)
			}
			first := strings.Join(got.bad, "\n")
			if (tt.bad == "") != (first == "") || !strings.HasPrefix(first, tt.bad) {
				t.Errorf("said %q, expected %q", first, tt.bad)
			}
		})
	}
}

// TestWrongEntriesAreNamed checks that invalid entries are reported with their line, and that
// the others are counted.
func TestWrongEntriesAreNamed(t *testing.T) {
	now, agent := compiled(t)
	good := `{"kind":"tool","tool":"quote"}` + "\n"
	use := `{"type":"tool_use","name":"quote","input":{}}`
	said := func(content string) string {
		return `{"type":"assistant","message":{"content":` + content + `}}` + "\n"
	}
	span := func(attributes string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[` + "\n" + `{"attributes":[` + attributes + `]}]}]}]}` + "\n"
	}
	name := `{"key":"gen_ai.tool.name","value":{"stringValue":"quote"}}`
	args := `,{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{}"}}`
	for _, tt := range []struct {
		from  Form
		text  string
		calls int
		bad   string
	}{
		{Detect, good + "nonsense\n" + good, 2, "a:2: column 1: expected an object"},
		{Detect, good + `{"kind":"tool","tool":"quote","args":{"a`, 1, "a:2: column "},
		{Detect, good + `{"kind":"tool","tool":"quote","tim":1}`, 1, `a:2: tim: unknown field`},
		{Detect, good + `{"kind":"tool","tool":"quote","time":1}`, 1, "a:2: time: expected a text with a time"},
		{Detect, good + `{"kind":"tool","tool":"quote","time":"noon"}`, 1, "a:2: time: expected a time such as"},
		{Detect, good + `{"kind":"tool","tool":"quote","time":"0001-01-01T00:00:00Z"}`, 1, "a:2: time: the year 1"},
		{Detect, good + `{"time":"2026-01-01T00:00:00Z","kind":"tool","time":"2026-01-01T00:00:00Z"}`, 1,
			"a:2: time: the field stands twice"},
		{Detect, good + `{"time":"2026-01-01T00:00:00Z",`, 1, "a:2: column "},
		{Detect, good + `{"kind":"tool","tool":"quote","args":{"x":"` + strings.Repeat("x", maxLine) + `"}}` + "\n" + good, 2,
			"a:2: the line is longer than 16 MiB"},
		{Detect, said("["+use+"]") + said(`[{"type":"tool_use","input":{}}]`), 1, "a:2: a tool_use without"},
		{Detect, said("["+use+"]") + said(`[{"type":"tool_use","name":"quote"}]`), 1,
			"a:2: the arguments of tool quote are not recorded"},
		{Detect, said("["+use+"]") + said(`[{"type":"tool_use","name":"quote","input":[]}]`), 1,
			"a:2: the arguments of tool quote are no object"},
		{Detect, said("["+use+"]") + said(`[{"type":"tool_use","type":"text","name":"quote","input":{}}]`), 1,
			"a:2: the field type stands twice"},
		{Detect, said("["+use+"]") + `{"type":"assistant","message":{"content":[`, 1, "a:2: column "},
		{ClaudeCode, said("["+use+`,1]`) + said(`[`+use+`,]`), 2, "a:2: column "},
		{ClaudeCode, `{"type":"assistant","timestamp":1,"message":{"content":[` + use + `]}}`, 0, "a:1: timestamp: "},
		{ClaudeCode, `{"type":"assistant","message":{"content":"x",}}`, 0, "a:1: message: column "},
		{ClaudeCode, said(`[{"type":"tool_use",}]`), 0, "a:1: column "},
		{Detect, span(name+args) + span(name), 1, "a:4: the arguments of tool quote are not recorded"},
		{Detect, span(name+args) + `{"resourceSpans":[`, 1, "a:3: the document is truncated"},
		{Detect, span(name+args) + "garbage\n" + span(name+args), 2, "a:3: expected a JSON object with resourceSpans"},
		{Detect, span(name+args) + "garbage", 1, "a:3: expected a JSON object with resourceSpans"},
		{Detect, span(name+args) + `{"resourceSpans":{}}`, 1, "a:3: resourceSpans: line 1"},
		{Detect, span(name+args) + `{"resourceSpans":[1]}`, 1, "a:3: resourceSpans: line 1"},
		{OTel, span(name + args + `,{"a":1,"a":2}`), 0, "a:2: line 1"},
		{OTel, span(name + args + `,`), 0, "a:2: line 1"},
		{OTel, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"x","attributes":[` + name + args +
			`]}]}]}]}`, 0, "a:1: startTimeUnixNano is no number"},
		{OTel, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"0","attributes":[` + name +
			`,{"key":"gen_ai.tool.call.arguments","value":{"intValue":1}}]}]}]}]}`, 0, "a:1: the arguments of tool quote"},
		{OTel, `{"x":"` + strings.Repeat("x", maxDocument) + `"}` + span(name+args), 1,
			"a:1: the document is longer than"},
		{Ledger, `{"index":1.5}`, 0, "a:1: no line of an export: index: expected a whole number"},
		{Ledger, `{"index":0,"leaf":"x"}`, 0, "a:1: leaf: column "},
		{Ledger, `{"index":0,"leaf":"{\"type\":\"call_allowed\",\"facts\":{\"agent\":\"desk\"}}"}`, 0,
			"a:1: time: expected a time"},
	} {
		got := replayed(t, "json", Options{Agent: agent, New: now, From: tt.from}, tt.text)
		if got.err != nil || got.report.Calls != tt.calls || len(got.bad) == 0 ||
			!strings.HasPrefix(got.bad[0], tt.bad) || got.report.Bad != len(got.bad) {
			t.Errorf("%.200s: %d calls, %q, %v, expected %q", tt.text, got.report.Calls, got.bad, got.err, tt.bad)
		}
	}
}

// TestFormsThatCanNotBeTold checks that an unknown form is an error, not a guess.
func TestFormsThatCanNotBeTold(t *testing.T) {
	now, agent := compiled(t)
	got := replayed(t, "text", Options{Agent: agent, New: now}, "x\n{\"a\":1}\n")
	if got.err == nil || !strings.Contains(got.err.Error(), "its form can't be told") {
		t.Error(got.err)
	}
	if got := replayed(t, "text", Options{Agent: agent, New: now}, " \n"); got.err != nil || got.report.Calls != 0 {
		t.Error(got.err)
	}
	if _, err := NewPrinter("yaml", io.Discard); err == nil || !strings.Contains(err.Error(), "text, json, markdown") {
		t.Error(err)
	}
}

// broken fails to read, or to write.
type broken struct{ after string }

func (b *broken) Read(p []byte) (int, error) {
	n := copy(p, b.after)
	if b.after = b.after[n:]; n > 0 {
		return n, nil
	}
	return 0, errors.New("the disk is gone")
}

func (*broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is gone") }

// TestBrokenStreams checks that a replay ends with the error of its input or output.
func TestBrokenStreams(t *testing.T) {
	now, agent := loosened(t)
	before, _ := compiled(t)
	line := `{"kind":"tool","tool":"trade","args":{"amount":500}}` + "\n"
	for _, format := range Formats() {
		out, _ := NewPrinter(format, io.Discard)
		for _, text := range []string{"", strings.Repeat(line, 10_000)} {
			r := New(Options{Agent: agent, New: now}, out)
			if err := r.Read("x", &broken{text}); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
				t.Errorf("%s: %v", format, err)
			}
		}

		out, _ = NewPrinter(format, &broken{})
		r := New(Options{Agent: agent, New: now, Old: before, Workers: 4}, out)
		if err := r.Read("x", strings.NewReader(strings.Repeat(line, 100_000))); err == nil {
			t.Errorf("%s: writing a call failed, and nobody heard", format)
		}
		if _, err := New(Options{Agent: agent, New: now}, out).Close(); err == nil {
			t.Errorf("%s: writing the report failed, and nobody heard", format)
		}
	}
}

// TestWorkersChangeNothing checks that one worker and eight give the same bytes.
func TestWorkersChangeNothing(t *testing.T) {
	now, agent := loosened(t)
	before, _ := compiled(t)
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `{"kind":"tool","tool":"trade","args":{"amount":%d}}`+"\n", i)
		if i%977 == 0 {
			many.WriteString("broken\n")
		}
	}

	opt := Options{Agent: agent, New: now, Old: before}
	want := replayed(t, "json", opt, many.String(), file(t, "ledger.jsonl"))
	opt.Workers = 8
	got := replayed(t, "json", opt, many.String(), file(t, "ledger.jsonl"))
	if got.text != want.text || strings.Join(got.bad, "\n") != strings.Join(want.bad, "\n") {
		t.Error("the answer depends on the workers")
	}
	if want.report.Unasked != 1900+3 || want.report.Bad != 21 || want.report.Listed != want.report.Unasked+1 {
		t.Errorf("%+v", want.report)
	}
}

// TestNamesBeyondTheBoundAreCountedTogether checks that callers can't fill the memory with
// names.
func TestNamesBeyondTheBoundAreCountedTogether(t *testing.T) {
	now, agent := compiled(t)
	var many strings.Builder
	for i := range mostTargets + 5 {
		fmt.Fprintf(&many, `{"kind":"tool","tool":"t%d"}`+"\n", i)
	}
	got := replayed(t, "text", Options{Agent: agent, New: now}, many.String())
	first := got.report.Targets[0]
	if len(got.report.Targets) != mostTargets+1 || first.Target != "" || first.Calls != 5 ||
		!strings.Contains(got.text, "all other targets") {
		t.Errorf("%d targets, the first %+v", len(got.report.Targets), first)
	}
	tally := newTally(Options{New: now}, nil)
	for i := range mostRules + 5 {
		tally.rule(ruleKey{rule: fmt.Sprint(i + 1)}).Old++
		tally.group(fmt.Sprint(i)).Old.Total++
	}
	if len(tally.rules) != mostRules+1 || tally.rules[ruleKey{}].Old != 5 ||
		len(tally.groups) != mostGroups+1 || tally.groups["(other groups)"].Old.Total != 5 {
		t.Error("rules or groups grow without a bound")
	}
}

// TestListIsBounded checks that the list is limited, and that the report says how many calls it
// leaves out.
func TestListIsBounded(t *testing.T) {
	now, agent := loosened(t)
	got := replayed(t, "text", Options{Agent: agent, New: now, List: 2}, file(t, "ledger.jsonl"))
	if got.report.Listed != 2 || got.report.Unasked != 3 ||
		!strings.Contains(got.text, "2 of 4 are listed; --list 0 lists all") {
		t.Errorf("%+v\n%s", got.report, got.text)
	}
}

// endless repeats a line.
type endless struct {
	line string
	left int
	rest string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		if e.left == 0 {
			return 0, io.EOF
		}
		e.left--
		e.rest = e.line
	}

	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// TestMemoryDoesNotGrowWithTheRecord checks that the heap is the same after four times as many
// calls. It is measured between inputs, when no batch is in progress.
func TestMemoryDoesNotGrowWithTheRecord(t *testing.T) {
	now, agent := loosened(t)
	before, _ := compiled(t)
	out, _ := NewPrinter("json", io.Discard)
	r := New(Options{Agent: agent, New: now, Old: before, Workers: 2}, out)

	var sizes []uint64
	for range 4 {
		in := &endless{line: `{"kind":"tool","tool":"trade","args":{"amount":5000}}` + "\n", left: 50_000}
		must.Do(t, r.Read("x", in))
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		sizes = append(sizes, m.HeapAlloc)
	}

	if sizes[3] > sizes[0]+1<<20 {
		t.Errorf("the heap grew: %v", sizes)
	}
}

// TestOnlyAWindowOfTheRecordIsInMemory checks that reading stops after as many batches as the
// workers need, while the first batch waits to be counted.
func TestOnlyAWindowOfTheRecordIsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 2
		in := &endless{line: "a line\n", left: 1_000_000}
		src, err := open(in, Calls)
		must.Do(t, err)
		wait := make(chan struct{})
		var added int
		go func() {
			err := pipeline(src, workers, func(*batch) {}, func(b *batch) error {
				<-wait
				added += len(b.frames)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()

		synctest.Wait()
		read := src.line
		close(wait)
		synctest.Wait()

		perBatch := batchSize/len(in.line) + 1
		if most := (2*workers + 2) * perBatch; read == 0 || read > most || added != 1_000_000 {
			t.Errorf("%d lines were in memory at once, at most %d may be; %d were counted", read, most, added)
		}
	})
}

// BenchmarkReplay replays a million calls against a second plan.
func BenchmarkReplay(b *testing.B) {
	now, agent := loosened(b)
	before, _ := compiled(b)
	for b.Loop() {
		in := &endless{
			line: `{"kind":"tool","tool":"trade","args":{"amount":500,"account":"DE-9","currency":"EUR"}}` + "\n" +
				`{"kind":"tool","tool":"quote","args":{"symbol":"ACME"}}` + "\n",
			left: 500_000,
		}
		out, _ := NewPrinter("json", io.Discard)
		r := New(Options{
			Agent:   agent,
			New:     now,
			Old:     before,
			Workers: runtime.GOMAXPROCS(0),
			List:    100,
		}, out)
		must.Do(b, r.Read("x", in))
		if report, err := r.Close(); err != nil || report.Calls != 1_000_000 {
			b.Fatal(report, err)
		}
	}
}
