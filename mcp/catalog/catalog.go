// Package catalog evaluates the tools of upstream MCP servers: it parses their definitions,
// computes the digests that go into the bindings of calls, compares definitions with the accepted
// ones, sanitises texts for clients, and assigns the names by which clients call tools.
//
// It works only on its inputs: lists that were read, pins and settings. It uses no network, no
// clock and no files. Package mcp/pinfile keeps pins in a file.
package catalog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// The limits of what is read from a server.
const (
	maxTool  = 1 << 20  // bytes of a definition
	maxView  = 64 << 10 // bytes of a definition that a client is shown
	maxName  = 1_000    // bytes
	maxText  = 4_096    // characters of one text
	maxDepth = 100
)

// limits bounds one definition.
func limits() value.Limits { return value.Limits{MaxBytes: maxTool, MaxDepth: maxDepth} }

// Support is a tool's support for calls as tasks of 2025-11-25.
type Support string

// The values of Support. It is empty if the tool doesn't set it.
const (
	TaskForbidden Support = "forbidden"
	TaskOptional  Support = "optional"
	TaskRequired  Support = "required"
)

// Tool is one tool as its server defined it. It is immutable.
type Tool struct {
	Raw                      []byte // the definition, byte for byte
	Name, Title, Description string // as received
	// Annotations are the hints for resolve.Call; a hint that the
	// server doesn't give is missing.
	Annotations map[string]bool
	InputSchema []byte   // as received
	Declared    []string // arguments that InputSchema declares, for resolve.Call
	TaskSupport Support
	Headers     []Header // arguments that go into HTTP headers too

	// Problem is the reason why the tool may not be offered even if it is pinned. It is empty for a
	// valid tool. Rule is the id of the violated rule.
	Problem string
	Rule    string

	// Findings lists what was removed from the tool's texts, and what readers of them should know.
	Findings []Finding

	clean []byte       // Raw with its texts made safe
	name  jsonmsg.Span // of the name's value in clean
	texts []string     // its texts made safe, for warnings
}

// Read parses one element of the list of tools/list. It keeps raw, which the caller must not
// change. A definition that can't be parsed becomes a tool with a Problem.
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

// refuse records the first problem of a tool.
func (t *Tool) refuse(rule, problem string) *Tool {
	if t.Problem == "" {
		t.Rule, t.Problem = rule, problem
	}
	return t
}

// known returns the members of a definition that the protocol defines.
func known() []string {
	return []string{
		"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta",
	}
}

// fields reads the members of a definition. It returns a problem, or an empty string.
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
	t.Declared = resolve.DeclaredIn(t.InputSchema)
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

// hintNames returns the annotation hints of MCP.
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

// misspelt returns a problem if a member's name differs from a known one only in case, because some
// readers would treat it as the known one.
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

// nameProblem returns the reason why a tool can't have a name.
func nameProblem(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("its name has %d bytes, at most %d are read", len(name), maxName)
	}
	if i := strings.IndexFunc(name, safetext.Hidden); i >= 0 {
		return fmt.Sprintf("its name holds a character that isn't shown, %U", []rune(name[i:])[0])
	}
	return ""
}

// View returns the definition as a client sees it under an advertised name: the received bytes with
// only the unsafe texts and the name replaced. A tool with a Problem has none.
func (t *Tool) View(advertised string) []byte {
	if t.Problem != "" {
		return nil
	}
	out := make([]byte, 0, len(t.clean)+len(advertised))
	out = append(out, t.clean[:t.name.From]...)
	out = jsonmsg.AppendString(out, advertised)
	return append(out, t.clean[t.name.To:]...)
}

// Page returns the URI of the resource that clients show for the tool (MCP Apps). It is empty if
// there is none.
func (t *Tool) Page() string {
	meta := jsonmsg.Get(t.Raw, "_meta")
	raw := jsonmsg.Get(jsonmsg.Get(meta, "ui"), "resourceUri")
	if raw == nil {
		raw = jsonmsg.Get(meta, "ui/resourceUri") // of its first version
	}
	uri, _ := jsonmsg.ReadString(raw)
	return uri
}

// Changed reports whether clients see different texts than the server sent.
func (t *Tool) Changed() bool { return string(t.clean) != string(t.Raw) }

// maxTools limits how many tools of one server are read.
const maxTools = 10_000

// ReadList reads the elements of all pages of a list. Tools whose definition is byte for byte the
// same as in before are reused.
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
