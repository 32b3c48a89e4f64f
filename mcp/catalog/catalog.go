// Package catalog knows the tools of upstream MCP servers: what a
// server says of each, by which digest a definition goes into a call's
// binding, which definitions people have accepted, what of their text a
// client may see, and under which name it calls them.
//
// It decides by what it is given: lists that were read, pins, settings.
// It has no network, no clock and no files, and asks nobody. Package
// mcp/pinfile keeps pins in a file.
package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// The limits of what is read of a server.
const (
	maxTool  = 1 << 20  // bytes of a definition
	maxView  = 64 << 10 // bytes of a definition that a client is shown
	maxName  = 1_000    // bytes
	maxText  = 4_096    // characters of one text
	maxDepth = 100
)

// limits bounds one definition.
func limits() value.Limits { return value.Limits{MaxBytes: maxTool, MaxDepth: maxDepth} }

// Support says whether a tool is called as a task of 2025-11-25.
type Support string

// The task support of a tool. A tool that says nothing has "".
const (
	TaskForbidden Support = "forbidden"
	TaskOptional  Support = "optional"
	TaskRequired  Support = "required"
)

// Tool is one tool as its server defined it. It doesn't change.
type Tool struct {
	Raw                      []byte // the definition, byte for byte
	Name, Title, Description string // as received
	// Annotations are the hints for resolve.Call; a hint that the
	// server doesn't give is missing.
	Annotations map[string]bool
	InputSchema []byte // as received
	TaskSupport Support
	Headers     []Header // arguments that go into HTTP headers too

	// Problem says why nobody may be offered the tool, whatever is
	// pinned: "" for a sound one. Rule is its id.
	Problem string
	Rule    string

	// Findings are what was taken out of its texts, and what readers
	// of them should know.
	Findings []Finding

	clean []byte       // Raw with its texts made safe
	name  jsonmsg.Span // of the name's value in clean
	texts []string     // its texts made safe, for warnings
}

// Read reads one element of the list of tools/list. It keeps raw, which
// must not change. What can't be read is a tool with a Problem.
func Read(raw []byte) *Tool {
	t := &Tool{Raw: raw}
	if problem := t.fields(); problem != "" {
		return t.refuse(RuleNotStrict, problem)
	}
	if problem := nameProblem(t.Name); problem != "" {
		return t.refuse(RuleName, problem)
	}
	if problem := t.headers(); problem != "" {
		return t.refuse(RuleHeader, problem)
	}
	t.sanitise()
	if problem := t.protocol(); problem != "" {
		return t.refuse(RuleProtocol, problem)
	}
	return t
}

// refuse keeps the first thing that is wrong.
func (t *Tool) refuse(rule, problem string) *Tool {
	if t.Problem == "" {
		t.Rule, t.Problem = rule, problem
	}
	return t
}

// known are the members that the protocol has.
func known() []string {
	return []string{
		"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta",
	}
}

// fields reads the members of a definition; it says what is wrong.
func (t *Tool) fields() string {
	f := jsonmsg.Read(t.Raw, limits())
	var unsound *value.Error
	if err := f.Err(); errors.As(err, &unsound) {
		return "its definition is not JSON that all readers understand alike: " + unsound.Error()
	}
	if problem := misspelt(f.Members(), known()); problem != "" {
		return problem
	}
	t.Name = f.NonEmpty("name")
	t.Title, t.Description = f.Text("title"), f.Text("description")
	annotations, execution := f.Object("annotations"), f.Object("execution")
	t.hints(annotations)
	t.InputSchema = f.Raw("inputSchema")
	if f.Err() == nil && !jsonmsg.IsObject(t.InputSchema) {
		return "inputSchema: expected an object, found " + jsonmsg.Describe(t.InputSchema)
	}
	t.TaskSupport = Support(execution.Text("taskSupport"))
	switch t.TaskSupport {
	case "", TaskForbidden, TaskOptional, TaskRequired:
	default:
		execution.Expect("taskSupport", "forbidden, optional or required")
	}

	if err := f.Err(); err != nil {
		return err.Error()
	}
	return misspelt(annotations.Members(), hintNames())
}

// hintNames are the hints of MCP.
func hintNames() []string {
	return []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
}

func (t *Tool) hints(f jsonmsg.Fields) {
	for _, name := range hintNames() {
		is := f.Bool(name)
		if is == nil {
			continue
		}
		if t.Annotations == nil {
			t.Annotations = map[string]bool{}
		}
		t.Annotations[name] = *is
	}
}

// misspelt finds a member that some readers would take for a known one.
func misspelt(members []jsonmsg.Member, known []string) string {
	for _, m := range members {
		for _, name := range known {
			if m.Name != name && strings.EqualFold(m.Name, name) {
				return fmt.Sprintf(
					"the member %q: expected %q, since some readers don't tell them apart",
					m.Name,
					name,
				)
			}
		}
	}

	return ""
}

// nameProblem says why a name can't be a tool's.
func nameProblem(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("its name has %d bytes, at most %d are read", len(name), maxName)
	}
	if i := strings.IndexFunc(name, safetext.Hidden); i >= 0 {
		return fmt.Sprintf("its name holds a character that isn't shown, %U", []rune(name[i:])[0])
	}
	return ""
}

// View is the definition as a client sees it under an advertised name:
// what was received, with safe texts, and not another byte changed. A
// tool with a Problem has none.
func (t *Tool) View(advertised string) []byte {
	if t.Problem != "" {
		return nil
	}
	out := make([]byte, 0, len(t.clean)+len(advertised))
	out = append(out, t.clean[:t.name.From]...)
	out = jsonmsg.AppendString(out, advertised)
	return append(out, t.clean[t.name.To:]...)
}

// Page is the URI of the resource that clients show for the tool
// (MCP Apps); it is empty if there is none.
func (t *Tool) Page() string {
	meta := jsonmsg.Get(t.Raw, "_meta")
	raw := jsonmsg.Get(jsonmsg.Get(meta, "ui"), "resourceUri")
	if raw == nil {
		raw = jsonmsg.Get(meta, "ui/resourceUri") // of its first version
	}
	uri, _ := jsonmsg.ReadString(raw)
	return uri
}

// Changed reports whether clients see other texts than the server sent.
func (t *Tool) Changed() bool { return string(t.clean) != string(t.Raw) }

// maxTools is how many tools of one server are read.
const maxTools = 10_000

// ReadList reads the elements of all pages of a list. Tools that were
// read before, byte for byte, are taken from there.
func ReadList[T ~[]byte](elements []T, before []*Tool) ([]*Tool, error) {
	if len(elements) > maxTools {
		return nil, fmt.Errorf(
			"%d tools are more than the %d that are read of one server",
			len(elements),
			maxTools,
		)
	}

	seen := make(map[string]*Tool, len(before))
	for _, t := range before {
		seen[string(t.Raw)] = t
	}
	out := make([]*Tool, len(elements))
	for i, raw := range elements {
		if out[i] = seen[string(raw)]; out[i] == nil {
			out[i] = Read(raw)
		}
	}

	return out, nil
}
