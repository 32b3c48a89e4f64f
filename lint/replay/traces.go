package replay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// names maps the tool names that a model uses to targets of the agent.
type names struct {
	tools   map[string]bool
	servers []string            // longest first
	listed  map[string][]string // servers by the tools of their allow-lists
}

func namesOf(a *schema.Agent) *names {
	n := &names{tools: map[string]bool{}, listed: map[string][]string{}}
	for i := range a.ActionSpace.LocalTools {
		n.tools[a.ActionSpace.LocalTools[i].Alias] = true
	}
	for i := range a.ActionSpace.MCPServers {
		s := &a.ActionSpace.MCPServers[i]
		n.servers = append(n.servers, s.Alias)
		if s.AllowedTools == nil {
			continue
		}
		for _, t := range *s.AllowedTools {
			if !slices.Contains(n.listed[t.Name], s.Alias) {
				n.listed[t.Name] = append(n.listed[t.Name], s.Alias)
			}
		}
	}

	slices.SortFunc(n.servers, func(a, b string) int { return len(b) - len(a) })
	return n
}

// call returns the call for a name. A name that the agent doesn't declare becomes a local tool,
// which is denied like any undeclared tool.
func (n *names) call(name string) *resolve.Call {
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		return n.remote(rest)
	}
	for _, alias := range []string{name, strings.ToLower(name), snake(name)} {
		if n.tools[alias] {
			return &resolve.Call{Kind: resolve.Tool, Tool: alias}
		}
	}
	if servers := n.listed[name]; len(servers) == 1 {
		return &resolve.Call{Kind: resolve.MCPTool, Server: servers[0], Tool: name}
	}

	return &resolve.Call{Kind: resolve.Tool, Tool: name}
}

// remote reads server__tool. It tries the declared servers before it splits at the first two
// underscores, since a server's name may contain them.
func (n *names) remote(name string) *resolve.Call {
	server, tool, _ := strings.Cut(name, "__")
	for _, alias := range n.servers {
		if rest, ok := strings.CutPrefix(name, alias+"__"); ok {
			server, tool = alias, rest
			break
		}
	}

	return &resolve.Call{Kind: resolve.MCPTool, Server: server, Tool: tool}
}

// snake writes WebFetch as web_fetch.
func snake(name string) string {
	var out []byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			if i > 0 && (name[i-1] < 'A' || 'Z' < name[i-1]) {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}

		out = append(out, c)
	}

	return string(out)
}

// transcript reads a line of a Claude Code transcript: each tool_use block of a message is a
// call.
func (n *names) transcript(f *frame, to []entry) []entry {
	fail := func(err error) []entry { return append(to, entry{line: f.line, err: err}) }
	var stamp, message []byte
	for m, err := range value.SplitObject(f.text) {
		if err != nil {
			return fail(err)
		}
		switch m.Key {
		case "timestamp":
			stamp = m.Raw
		case "message":
			message = m.Raw
		}
	}

	content, err := contentOf(message)
	if err != nil {
		return fail(err)
	}
	if content == nil {
		return append(to, entry{line: f.line})
	}
	var when time.Time
	if stamp != nil {
		if when, err = timeValue(stamp); err != nil {
			return fail(fmt.Errorf("timestamp: %w", err))
		}
	}
	return n.blocks(f, content, when, to)
}

// contentOf returns the list of blocks of a message, or nil.
func contentOf(message []byte) ([]byte, error) {
	if len(message) == 0 || message[0] != '{' {
		return nil, nil
	}
	for m, err := range value.SplitObject(message) {
		if err != nil {
			return nil, fmt.Errorf("message: %w", err)
		}
		if m.Key == "content" && m.Raw[0] == '[' {
			return m.Raw, nil
		}
	}

	return nil, nil
}

func (n *names) blocks(f *frame, content []byte, when time.Time, to []entry) []entry {
	found := false
	for block, err := range value.SplitArray(content) {
		e := entry{line: f.line, when: when, err: err}
		if err == nil {
			e.call, e.err = n.use(block)
		}
		if e.call != nil || e.err != nil {
			found = true
			to = append(to, e)
		}
	}

	if !found {
		to = append(to, entry{line: f.line})
	}
	return to
}

// use reads a block. It returns nil if the block is not a tool use.
func (n *names) use(block []byte) (*resolve.Call, error) {
	if len(block) == 0 || block[0] != '{' {
		return nil, nil
	}
	fields := map[string][]byte{}
	for m, err := range value.SplitObject(block) {
		if err != nil {
			return nil, err
		}
		if fields[m.Key] != nil {
			return nil, fmt.Errorf("the field %s stands twice in a block", m.Key)
		}
		fields[m.Key] = m.Raw
	}

	if string(fields["type"]) != `"tool_use"` {
		return nil, nil
	}
	name, err := value.Parse(fields["name"], value.Limits{})
	if err != nil || name.Kind != value.String || name.Text == "" {
		return nil, errors.New("a tool_use without the name of a tool")
	}
	return called(n.call(name.Text), fields["input"])
}

// called sets the arguments of a call, which must be an object.
func called(c *resolve.Call, args []byte) (*resolve.Call, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("the arguments of %s are not recorded, so the call can't be decided again", c.Target())
	}
	if args[0] != '{' {
		return nil, fmt.Errorf("the arguments of %s are no object", c.Target())
	}
	c.Args = args
	return c, nil
}

// document reads one OpenTelemetry export: each span with a tool name is a call.
func (n *names) document(f *frame, to []entry) []entry {
	before := len(to)
	err := each(f.text, "resourceSpans", func(resource []byte) error {
		return each(resource, "scopeSpans", func(scope []byte) error {
			return each(scope, "spans", func(span []byte) error {
				e := entry{line: f.at(span)}
				if e.call, e.when, e.err = n.span(span); e.call != nil || e.err != nil {
					to = append(to, e)
				}
				return nil
			})
		})
	})
	if err != nil {
		to = append(to, entry{line: f.line, err: err})
	}
	if len(to) == before {
		to = append(to, entry{line: f.line})
	}
	return to
}

// each calls do for the items of one field of an object.
func each(object []byte, field string, do func(item []byte) error) error {
	for m, err := range value.SplitObject(object) {
		if err != nil {
			return err
		}
		if m.Key != field {
			continue
		}
		for item, err := range value.SplitArray(m.Raw) {
			if err == nil {
				err = do(item)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", field, err)
			}
		}
	}

	return nil
}

// span reads one span. It returns no call if the span doesn't run a tool.
func (n *names) span(raw []byte) (*resolve.Call, time.Time, error) {
	var name, args, start value.Value
	for m, err := range value.SplitObject(raw) {
		if err == nil {
			switch m.Key {
			case "startTimeUnixNano":
				start, err = value.Parse(m.Raw, value.Limits{})
			case "attributes":
				name, args, err = attributes(m.Raw)
			}
		}

		if err != nil {
			return nil, time.Time{}, err
		}
	}

	if name.Text == "" {
		return nil, time.Time{}, nil
	}
	when, err := nanoseconds(start)
	if err != nil {
		return nil, when, err
	}
	call, err := called(n.call(name.Text), argumentsOf(args))
	return call, when, err
}

// attributes finds the name of a tool and its arguments.
func attributes(raw []byte) (name, args value.Value, err error) {
	for item, err := range value.SplitArray(raw) {
		if err != nil {
			return name, args, err
		}
		v, err := value.Parse(item, value.Limits{MaxBytes: maxLine})
		if err != nil {
			return name, args, err
		}
		switch text(v, "key") {
		case "gen_ai.tool.name":
			name, _ = v.Get("value", "stringValue")
		case "gen_ai.tool.call.arguments":
			args, _ = v.Get("value")
		}
	}

	return name, args, nil
}

// argumentsOf returns the JSON of arguments, which are recorded as a string or as a structure.
func argumentsOf(v value.Value) []byte {
	if s, ok := v.Get("stringValue"); ok {
		return []byte(strings.TrimSpace(s.Text))
	}
	if _, ok := v.Get("kvlistValue"); ok {
		return plain(v).AppendJSON(nil)
	}
	return nil
}

// plain converts an OTLP AnyValue to the value that it represents.
func plain(v value.Value) value.Value {
	if len(v.Members) != 1 {
		return value.Value{Kind: value.Null}
	}
	is := v.Members[0].Value
	switch v.Members[0].Key {
	case "intValue", "doubleValue": // integers may be strings
		if n, err := value.ParseNum(is.Text); is.Kind == value.String && err == nil {
			return value.Value{Kind: value.Number, Num: n}
		}
		return is
	case "arrayValue":
		out := value.Value{Kind: value.Array}
		items, _ := is.Get("values")
		for _, item := range items.Items {
			out.Items = append(out.Items, plain(item))
		}
		return out
	case "kvlistValue":
		out := value.Value{Kind: value.Object}
		items, _ := is.Get("values")
		for _, item := range items.Items {
			of, _ := item.Get("value")
			out.Members = append(out.Members, value.Member{Key: text(item, "key"), Value: plain(of)})
		}

		return out
	default:
		return is
	}
}

// nanoseconds reads an OTLP time, which is a number or a string.
func nanoseconds(v value.Value) (time.Time, error) {
	digits := v.Text
	switch v.Kind {
	case value.Absent:
		return time.Time{}, nil
	case value.Number:
		digits = v.Num.Canonical()
	}

	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}, errors.New("startTimeUnixNano is no number of nanoseconds")
	}
	if n == 0 {
		return time.Time{}, nil // OTLP uses 0 for an unknown time
	}
	return inRange(time.Unix(0, n).UTC())
}
