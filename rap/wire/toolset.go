package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/value"
)

// Limits of a manifest. They limit the cost of checking it to a second or two and some 200 MB
// in the worst case.
const (
	maxTools   = 256
	maxSchemas = 1 << 20 // total size of all schemas in bytes
)

// ParseToolset parses a manifest. All of it must be valid: names, endpoint, at least one tool,
// usable schemas, and annotations of the right type. Names of tools consist of [A-Za-z0-9_.-].
// Errors are *Error.
func ParseToolset(body []byte) (*Toolset, error) {
	o := document(body, "name", "description", "endpoint", "tools", "needsMigration")
	t := &Toolset{
		Name:           o.name("name"),
		Description:    o.Text("description"),
		Endpoint:       o.url("endpoint"),
		NeedsMigration: o.set("needsMigration"),
	}
	t.Tools = o.tools()
	if len(t.Tools) == 0 {
		o.Expect("tools", "at least one tool")
	}
	return read(o, t)
}

// tools reads the tools up to the first invalid one, so that no schema is compiled in vain.
func (o object) tools() []Tool {
	var out []Tool
	seen, size := map[string]bool{}, 0
	for path, raw := range o.list("tools", maxTools) {
		t := o.tool(path, raw)
		if seen[t.Name] {
			o.expect(path+".name", "a name that no other tool of the toolset has")
		}
		if size += len(t.InputSchema); size > maxSchemas {
			o.expect(path+".inputSchema", fmt.Sprintf("schemas of at most %d bytes together", maxSchemas))
		}
		seen[t.Name] = true
		if o.Err() == nil {
			t.schema = o.schema(path+".inputSchema", t.InputSchema)
		}
		if out = append(out, t); o.Err() != nil {
			break
		}
	}

	return out
}

func (o object) tool(path string, raw []byte) Tool {
	o = o.in(path, raw, "name", "description", "inputSchema", "annotations", "displayScript")
	t := Tool{
		Name:          o.name("name"),
		Description:   o.Need("description"),
		InputSchema:   o.rawObject("inputSchema"),
		Annotations:   o.annotations(),
		DisplayScript: o.Text("displayScript"),
	}
	if strings.ContainsFunc(t.Name, notInToolName) {
		o.Expect("name", "letters A to Z, digits, _, - and . only")
	}
	return t
}

func notInToolName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	return !letter && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
}

func (o object) annotations() Annotations {
	raw := o.Raw("annotations")
	if raw == nil {
		return Annotations{}
	}
	a := o.in(o.At("annotations"), raw, "requiresAuth", "readOnly", "destructive", "idempotent", "longRunning")
	return Annotations{
		RequiresAuth: a.Text("requiresAuth"),
		ReadOnly:     a.Bool("readOnly"),
		Destructive:  a.Bool("destructive"),
		Idempotent:   a.Bool("idempotent"),
		LongRunning:  a.Bool("longRunning"),
	}
}

func (o object) schema(path string, raw json.RawMessage) *jsonschema.Untrusted {
	schema, err := compile(raw)
	if err != nil {
		o.expect(path, "a JSON Schema that can be used: "+plainly(err.Error()))
	}
	return schema
}

func compile(raw json.RawMessage) (*jsonschema.Untrusted, error) {
	return jsonschema.CompileUntrusted("inputSchema.json", raw)
}

// plainly shortens an untrusted text and removes unprintable characters.
func plainly(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return s
}

// CheckArguments checks the arguments of a call against the tool's schema. The schema is
// untrusted, so the cost of compiling and checking is limited. Empty or null arguments count as
// {}. Errors contain the path, and may quote the arguments.
func (t *Tool) CheckArguments(args json.RawMessage) error {
	doc, err := decodeArguments(args)
	if err != nil {
		return err
	}
	schema := t.schema
	if schema == nil { // a Tool that was not parsed
		if schema, err = compile(t.InputSchema); err != nil {
			return fmt.Errorf("inputSchema: %w", err)
		}
	}
	failures, err := schema.Validate(doc)
	if err != nil {
		return fmt.Errorf("inputSchema: %w", err)
	}
	return argumentsError(failures)
}

func decodeArguments(args json.RawMessage) (any, error) {
	if args = jsonmsg.Trim(args); len(args) == 0 || string(args) == "null" {
		return map[string]any{}, nil
	}
	kind, err := jsonmsg.Check(args, limits)
	switch {
	case err != nil:
		return nil, &Error{"arguments", "an object that all readers understand alike" + reason(err)}
	case kind != value.Object:
		return nil, &Error{"arguments", "an object, found " + listWord(jsonmsg.Describe(args))}
	}

	decoder := json.NewDecoder(strings.NewReader(string(args)))
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return doc, nil
}

// argumentsError returns an error with the first failures, or nil if there are none.
func argumentsError(failures []jsonschema.Failure) error {
	const most = 5
	var all []string
	for _, f := range failures[:min(len(failures), most)] {
		all = append(all, sentence(f))
	}
	if more := len(failures) - most; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("arguments: %s", strings.Join(all, "; "))
}

func sentence(f jsonschema.Failure) string {
	out := plainly(f.Message)
	if f.Expected != "" {
		out += ", expected " + plainly(f.Expected)
	}
	if len(f.Path) > 0 {
		out = plainly(strings.Join(f.Path, ".")) + ": " + out
	}
	return out
}

// Digest returns "sha256:…" of the tool's name, description, schema and annotations, regardless
// of their spelling. A tool with another digest counts as another tool.
func (t *Tool) Digest() string {
	schema, err := value.Parse(t.InputSchema, value.Limits{})
	if err != nil { // a Tool that was not parsed; no valid schema is a string
		schema = text(string(t.InputSchema))
	}
	w := open(nil)
	t.Annotations.write(w)
	annotations, err := value.Parse(w.close(), value.Limits{})
	if err != nil { // impossible: the text was just written
		return ""
	}
	return value.Value{
		Kind: value.Object,
		Members: []value.Member{
			{Key: "name", Value: text(t.Name)}, {Key: "description", Value: text(t.Description)},
			{Key: "inputSchema", Value: schema}, {Key: "annotations", Value: annotations},
		},
	}.Digest().String()
}

func text(s string) value.Value {
	return value.Value{Kind: value.String, Text: strings.ToValidUTF8(s, "\ufffd")}
}

// Append appends the encoded manifest to dst.
func (t *Toolset) Append(dst []byte) []byte {
	w := open(dst)
	w.str("name", t.Name)
	w.nonEmpty("description", t.Description)
	w.str("endpoint", t.Endpoint)
	w.objects("tools", len(t.Tools), func(w writer, i int) { t.Tools[i].write(w) })
	w.set("needsMigration", t.NeedsMigration)
	return w.close()
}

func (t *Tool) write(w writer) {
	w.str("name", t.Name)
	w.str("description", t.Description)
	w.raw("inputSchema", t.InputSchema, value.Object)
	if t.Annotations != (Annotations{}) {
		w.Name("annotations").Object(func(inner *jsonmsg.Writer) { t.Annotations.write(writer{inner}) })
	}
	w.nonEmpty("displayScript", t.DisplayScript)
}

func (a Annotations) write(w writer) {
	w.nonEmpty("requiresAuth", a.RequiresAuth)
	w.flag("readOnly", a.ReadOnly)
	w.flag("destructive", a.Destructive)
	w.flag("idempotent", a.Idempotent)
	w.flag("longRunning", a.LongRunning)
}
