package catalog

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

func list(definitions ...[]byte) []*Tool {
	var out []*Tool
	for _, raw := range definitions {
		out = append(out, Read(raw))
	}
	return out
}

// states lists the states of tools, for example "a offered, b withheld tool-changed".
func states(j Judgement) string {
	var out []string
	for _, v := range j.Tools {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Tool.Name, v.State, v.Rule)))
	}
	return strings.Join(out, ", ")
}

// TestFirstSight: a tool that has not been accepted is recorded, or withheld until it is pinned.
func TestFirstSight(t *testing.T) {
	tools := list(plainTool("a", ""), plainTool("b", ""))
	pins := &Pins{}
	trusted := Judge(pins, "files", files(), tools, Settings{})
	if got := states(trusted); got != "a offered tool-first-sight, b offered tool-first-sight" {
		t.Error(got)
	}
	if len(pins.Servers) != 0 || len(trusted.Record) != 2 || trusted.Record[0].By != ByFirstSight {
		t.Error("judging pinned something, or recorded nothing")
	}
	trusted.Keep(pins)
	if got := states(Judge(pins, "files", files(), tools, Settings{})); got != "a offered, b offered" {
		t.Error(got)
	}

	required := Settings{First: Required}
	pins = &Pins{}
	held := Judge(pins, "files", files(), tools, required)
	if got := states(held); got != "a withheld tool-not-pinned, b withheld tool-not-pinned" || len(held.Record) > 0 {
		t.Error(got)
	}
	if reason := held.Tools[0].Reason; reason != textNotPinned {
		t.Error(reason)
	}
	pin := must.Get(NewPin(files(), tools[0], nil))(t)
	pins.Add("files", files(), []Pin{pin}, Instead)
	after := Judge(pins, "files", files(), tools, required)
	if got := states(after); got != "a offered, b withheld tool-not-pinned" {
		t.Error(got)
	}
	if after.Tools[0].Digest != pin.Digest || pin.By != ByOperator {
		t.Error("the digest of the binding is not that of the pin")
	}
}

// TestADefinitionThatChanged: it is held back, asked about or accepted.
func TestADefinitionThatChanged(t *testing.T) {
	pins := &Pins{}
	before := Judge(
		pins,
		"files",
		files(),
		list(plainTool("a", `,"description":"Reads."`), plainTool("b", "")),
		Settings{},
	)
	before.Keep(pins)
	now := list(plainTool("a", `,"description":"Deletes."`), plainTool("b", ""))
	for on, want := range map[OnChange]string{
		"":           "a withheld tool-changed, b offered",
		HoldChange:   "a withheld tool-changed, b offered",
		AskChange:    "a asks tool-changed, b offered",
		AcceptChange: "a offered tool-changed, b offered",
		"nonsense":   "a withheld tool-changed, b offered",
	} {
		j := Judge(pins, "files", files(), now, Settings{OnChange: on})
		if got := states(j); got != want {
			t.Errorf("%s: %s", on, got)
		}
		v := j.Tools[0]
		if got := fmt.Sprint(v.Changes); got != `[description: was "Reads.", is "Deletes."]` {
			t.Errorf("%s: %s", on, got)
		}
		if v.State != Offered && v.Reason != textChanged || v.Digest == before.Tools[0].Digest {
			t.Errorf("%s: %s", on, v.Reason)
		}
		if on != AcceptChange {
			continue
		}
		own := pins.Clone()
		j.Keep(own)
		again := Judge(own, "files", files(), now, Settings{})
		if got := states(again); got != "a offered, b offered" || own.Of("files").Of("a")[0].By != ByOnChange {
			t.Errorf("after it was accepted: %s", got)
		}
	}

	if got := states(Judge(pins, "files", files(), now[1:], Settings{})); got != "b offered" {
		t.Error(got)
	}
	gone := Judge(pins, "files", files(), now[1:], Settings{})
	if got := fmt.Sprint(gone.Gone); got != "[a]" || rules(gone.Findings) != "tool-gone a" {
		t.Error(got, rules(gone.Findings))
	}
}

// TestAnotherServer: if another server appears under the alias of an accepted one, none of its
// tools are offered, not even new ones.
func TestAnotherServer(t *testing.T) {
	pins := &Pins{}
	first := Judge(pins, "files", files(), list(plainTool("a", "")), Settings{})
	first.Keep(pins)
	other := files()
	other.Args = []string{"-y", "evil"}
	j := Judge(pins, "files", other, list(plainTool("a", ""), plainTool("new", "")), Settings{})
	if got := states(j); got != "a withheld tool-changed, new withheld tool-changed" {
		t.Error(got)
	}
	if got := fmt.Sprint(j.Tools[1].Changes); got != `[server.args[1]: was "files", is "evil"]` ||
		j.Tools[0].Reason != textServer {
		t.Error(got)
	}

	pins.Add("files", other, []Pin{must.Get(NewPin(other, j.Tools[1].Tool, nil))(t)}, Instead)
	again := Judge(pins, "files", other, list(plainTool("a", ""), plainTool("new", "")), Settings{First: Required})
	if got := states(again); got != "a withheld tool-not-pinned, new offered" {
		t.Error("pins of another server stay:", got)
	}
}

// TestSeveralDefinitions: a tool that its server defines differently
// for clients with other capabilities has several pins.
func TestSeveralDefinitions(t *testing.T) {
	one := Read(plainTool("a", ""))
	two := Read(plainTool("a", `,"title":"2"`))
	three := Read(plainTool("a", `,"title":"3"`))
	pin := func(tool *Tool) []Pin { return []Pin{must.Get(NewPin(files(), tool, nil))(t)} }
	pins := &Pins{}
	pins.Add("files", files(), pin(one), Instead)
	pins.Add("files", files(), pin(two), Beside)
	pins.Add("files", files(), pin(two), Beside)
	for tool, want := range map[*Tool]string{one: "a offered", two: "a offered", three: "a withheld tool-changed"} {
		if got := states(Judge(pins, "files", files(), []*Tool{tool}, Settings{})); got != want {
			t.Error(got)
		}
	}
	pins.Add("files", files(), pin(three), Instead)
	if got := len(pins.Of("files").Tools); got != 1 {
		t.Error(got)
	}
}

// TestJudgeWithholds: a tool with a problem is withheld. With HoldText a tool with hidden text is
// withheld, even if it was accepted at first sight, until an operator accepts it.
func TestJudgeWithholds(t *testing.T) {
	hidden := plainTool("h", `,"description":"x\u202e"`)
	tools := list(
		plainTool("a", ""), plainTool("a", `,"title":"2"`), plainTool("assent__x", ""), plainTool("resources/read", ""),
		plainTool("Prompts/Get", ""), []byte(`{"name":"n","name":"n"}`), hidden,
	)
	j := Judge(&Pins{}, "files", files(), tools, Settings{})
	want := "a withheld tool-twice, a withheld tool-twice, assent__x withheld tool-reserved, " +
		"resources/read withheld tool-reserved, Prompts/Get withheld tool-reserved, withheld tool-not-strict, " +
		"h offered tool-first-sight"
	if got := strings.ReplaceAll(states(j), "  ", " "); got != want {
		t.Error(got)
	}
	if len(j.Record) != 1 || !strings.Contains(rules(j.Findings), "text-hidden h") {
		t.Error(len(j.Record), rules(j.Findings))
	}

	hold := Settings{OnText: HoldText}
	pins := &Pins{}
	j.Keep(pins)
	if got := states(Judge(pins, "files", files(), tools[6:], hold)); got != "h withheld text-hidden" {
		t.Error("accepted at first sight:", got)
	}
	pins.Add("files", files(), []Pin{must.Get(NewPin(files(), tools[6], nil))(t)}, Instead)
	if got := states(Judge(pins, "files", files(), tools[6:], hold)); got != "h offered" {
		t.Error("accepted by an operator:", got)
	}
	if _, err := NewPin(files(), tools[5], nil); err == nil {
		t.Error("a tool that can't be read was pinned")
	}
}

// TestAServerWithoutIdentity: it offers nothing.
func TestAServerWithoutIdentity(t *testing.T) {
	broken := Server{Command: "\xff"}
	j := Judge(&Pins{}, "files", broken, list(plainTool("a", "")), Settings{})
	if got := states(j); got != "a withheld tool-not-strict" || len(j.Record) > 0 {
		t.Error(got)
	}
	if _, err := NewPin(broken, Read(plainTool("a", "")), nil); err == nil || DiffServers(broken, files()) != nil {
		t.Error("its tool was pinned:", err)
	}
	if broken.Equal(broken) {
		t.Error("two servers that can't be told apart are the same")
	}
	pins := &Pins{Servers: []Pinned{{Alias: "a", Server: broken}}}
	if _, err := pins.Text(); err == nil {
		t.Error("it was written")
	}
}

// TestFindingsAreOneLine: this holds for any content.
func TestFindingsAreOneLine(t *testing.T) {
	tool := Read(plainTool("a", `,"description":"x\u001b[2J\u202e\ny"`))
	if len(tool.Findings) != 1 || !tool.Changed() || Read(plainTool("a", "")).Changed() {
		t.Fatal(tool.Findings)
	}
	f := tool.Findings[0]
	f.Server = "fi\nles"
	want := `fi\u{a}les/a: description: 1 bidi control, 1 control character taken out of ` +
		`“x\u{1b}[2J\u{202e}\u{a}y” [text-hidden]`
	if f.String() != want {
		t.Error(f.String())
	}
}

func TestSettingsCheck(t *testing.T) {
	must.Do(t, Settings{First: Required, OnChange: AskChange, OnText: HoldText}.Check())
	must.Do(t, Settings{}.Check())
	for _, s := range []Settings{{First: "trust"}, {OnChange: "allow"}, {OnText: "keep"}} {
		if s.Check() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// TestPinText: reading and writing a file of pins preserves unknown members and hidden characters.
func TestPinText(t *testing.T) {
	pins := &Pins{}
	remote := must.Get(AtURL("https://tools.example/mcp"))(t)
	tools := list(
		plainTool("b", `,"description":"x\u202ey `+"\u200b"+`","n":1.50,"title":"a/<b>&"`),
		plainTool("a", ""),
	)
	for _, tool := range tools {
		pins.Add("web", remote, []Pin{must.Get(NewPin(remote, tool, nil))(t)}, Instead)
		pins.Add("files", files(), []Pin{must.Get(NewPin(files(), tool, nil))(t)}, Instead)
	}
	text := must.Get(pins.Text())(t)
	golden.Equal(t, "pins.json", string(text))

	with := strings.Replace(string(text), `"servers": {`, `"owner": "ops", "servers": {`, 1)
	with = strings.Replace(with, `"tools": [`, `"note": 1.0, "tools": [`, 1)
	with = strings.Replace(with, `"digest"`, `"why": ["x"], "digest"`, 1)
	read := must.Get(ReadPins("pins.json", []byte(with)))(t)
	must.Do(t, nil)
	read.Add("files", files(), []Pin{must.Get(NewPin(files(), tools[1], nil))(t)}, Instead)
	again := string(must.Get(read.Text())(t))
	for _, kept := range []string{`"owner": "ops"`, `"note": 1.0`, `"why": [`} {
		if strings.Count(again, kept) != 1 {
			t.Errorf("%s is gone:\n%s", kept, again)
		}
	}
	if got := states(Judge(read, "web", remote, tools, Settings{First: Required})); got != "b offered, a offered" {
		t.Error(got)
	}
}

// TestPinsOfThePage: the file in docs/contracts/mcp.md is valid.
func TestPinsOfThePage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/contracts/mcp.md"))(t))
	text := "{\n  \"assent_mcp_pins\"" + between(page, "```json\n{\n  \"assent_mcp_pins\"", "```")
	pins := must.Get(ReadPins("mcp.md", []byte(text)))(t)
	if got := len(pins.Of("files").Of("a")); got != 1 {
		t.Error(got)
	}
}

// TestSentencesOfThePage: the sentences that calls are answered with are documented on the page.
func TestSentencesOfThePage(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../docs/contracts/mcp.md"))(t))
	for _, text := range []string{textNotPinned, textChanged, textServer, textTwice, textReserved, textOnText} {
		if !strings.Contains(page, "| "+text+" |") {
			t.Errorf("the page lacks: %s", text)
		}
	}
}

// TestReadPinsRefuses: a file with any error is refused, with the place.
func TestReadPinsRefuses(t *testing.T) {
	text := string(must.Get(os.ReadFile("testdata/pins.json"))(t))
	for _, c := range []struct{ old, fresh, want string }{
		{text, "", "p:1:1: no file of pins"},
		{text, `{"servers":{}}`, "p:1:1: expected a file of pins"},
		{text, `[]`, "p:1:1: expected an object, found an array"},
		{`"assent_mcp_pins": 1`, `"assent_mcp_pins": 2`, "p:2:22: assent_mcp_pins: expected 1"},
		{`"cwd"`, `"command"`, "p:11:9: no file of pins: duplicate key"},
		{`"command": "npx"`, `"command": "evil"`, "servers.files.tools[0].digest: expected sha256:"},
		{`"command": "npx"`, `"command": 7`, "p:6:20: servers.files.server.command: expected a string, found a number"},
		{`"command": "npx"`, `"x": "npx"`, "servers.files.server.x: not known here"},
		{`"x\u202ey `, `"x `, "tools[1].digest: expected sha256:"},
		{`"args": [`, `"args": [7,`, "servers.files.server.args: expected a list of strings"},
		{`"by": "operator"`, `"by": "me"`, "servers.files.tools[0].by: expected operator"},
		{`"inputSchema": {`, `"inputschema": {`, "servers.files.tools[0].definition: expected the definition of a tool"},
		{`"tools": [`, `"tools": {}, "t": [`, "servers.files.tools: expected an array"},
		{`"server": {`, `"s": {`, "servers.files: expected server"},
		{`"origin"`, `"query"`, "servers.web.server: expected either command or origin"},
		{`"servers": {`, `"servers": 3, "s": {`, "servers: expected an object, found a number"},
		{`"servers": {`, `"s": {`, "p:1:1: expected servers"},
	} {
		broken := strings.Replace(text, c.old, c.fresh, 1)
		_, err := ReadPins("p", []byte(broken))
		if err == nil || broken == text || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "p:") {
			t.Errorf("%.40s: %v, expected %s", c.fresh, err, c.want)
		}
	}

	twice := strings.Replace(text, `"tools": [`, `"tools": [`+between(text, `"tools": [`, "\n      ]")+",", 1)
	if _, err := ReadPins("p", []byte(twice)); err == nil ||
		!strings.Contains(err.Error(), "tools[2]: this definition") {
		t.Error(err)
	}
}

// between returns the text between two others.
func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}

func FuzzReadPins(f *testing.F) {
	text := must.Get(os.ReadFile("testdata/pins.json"))(f)
	f.Add(text)
	f.Add([]byte(`{"assent_mcp_pins":1,"servers":{"a":{"server":{"origin":"x"},"tools":[]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pins, err := ReadPins("p", text)
		if err != nil {
			return
		}
		once := must.Get(pins.Text())(t)
		again := must.Get(ReadPins("p", once))(t)
		if twice := must.Get(again.Text())(t); string(once) != string(twice) {
			t.Errorf("%s\n%s", once, twice)
		}
	})
}

// TestDiff: differences in words.
func TestDiff(t *testing.T) {
	was := `{"name":"a","description":"Reads.","n":1.0,"gone":{"x":1},"list":["a","b"],"deep":{"items":[{"t":1},{"t":2}]},
		"same":["x","x"]}`
	is := `{"description":"Reads\u202e.","name":"a","n":1,"list":["b","c","d"],"deep":{"items":[{"t":1},{"t":null}]},
		"new":[true],"same":["x"]}`
	var got []string
	for _, c := range Diff([]byte(was), []byte(is)) {
		got = append(got, c.String())
	}
	want := `description: was "Reads.", is "Reads\u{202e}."
gone: removed: {"x":1}
list: removed: "a"
list: added: "c"
list: added: "d"
deep.items[1].t: was 2, is null
same: was 2 elements, is 1 elements
new: added: [true]`
	if text := strings.Join(got, "\n"); text != want {
		t.Error(text)
	}

	head := strings.Repeat("the same words ", 100)
	long := Diff([]byte(`{"d":"`+head+`old"}`), []byte(`{"d":"`+head+`new"}`))
	if text := long[0].String(); text != `d: was …ame words the same words the same words old", is …ame words the same words the same words new"` {
		t.Error(text)
	}
	if slices.ContainsFunc(Diff([]byte(was), []byte(was)), func(Change) bool { return true }) {
		t.Error("a definition differs from itself")
	}
	if Diff([]byte(`{`), []byte(`{}`)) != nil {
		t.Error("what can't be read was compared")
	}
}
