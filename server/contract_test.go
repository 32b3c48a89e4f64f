package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/server/openapi"
)

// contract is openapi.yaml, decoded.
type contract struct {
	doc     map[string]any
	mux     *http.ServeMux // knows which operation a request is for
	byName  map[string]operation
	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

func theContract() *contract { return loadContract() }

var loadContract = sync.OnceValue(func() *contract {
	doc, findings := yamldoc.Parse("openapi.yaml", []byte(openapi.Document()), yamldoc.Limits{})
	if doc == nil {
		panic(fmt.Sprint(findings))
	}
	text, err := json.Marshal(doc.Root.Any())
	if err != nil {
		panic(err)
	}
	c := &contract{
		schemas: map[string]*jsonschema.Schema{},
		mux:     http.NewServeMux(),
		byName:  map[string]operation{},
	}
	if err := json.Unmarshal(text, &c.doc); err != nil {
		panic(err)
	}
	for _, o := range c.operations() {
		c.byName[o.pattern()] = o
		c.mux.Handle(o.pattern(), http.NotFoundHandler())
	}
	return c
})

// at walks the document by keys and follows references.
func (c *contract) at(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = c.resolve(m[k])
	}
	return v
}

func (c *contract) resolve(v any) any {
	m, _ := v.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return c.at(c.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return v
}

// operation is one method at one path.
type operation struct {
	path, method string
	def          map[string]any
}

func (o operation) pattern() string { return o.method + " " + o.path }

func (c *contract) operations() []operation {
	var out []operation
	paths := c.doc["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for method, def := range paths[path].(map[string]any) {
			if method != "parameters" {
				out = append(out, operation{path, strings.ToUpper(method), def.(map[string]any)})
			}
		}
	}

	return out
}

// find returns the operation of a request.
func (c *contract) find(method, path string) (operation, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, "http://x"+path, nil)
	if err != nil {
		return operation{}, false
	}
	_, pattern := c.mux.Handler(req)
	o, ok := c.byName[pattern]
	return o, ok
}

// schema compiles a schema from the document.
func (c *contract) schema(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(map[string]any{"allOf": []any{schema}, "components": c.doc["components"]})
	must(t, err)
	key, err := json.Marshal(schema)
	must(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[string(key)]; s != nil {
		return s
	}
	s, err := jsonschema.Compile("openapi", text)
	must(t, err)
	c.schemas[string(key)] = s
	return s
}

// holdToContract fails the test if openapi.yaml does not allow an answer.
func holdToContract(t *testing.T, method, path string, a *answer) {
	t.Helper()
	c := theContract()
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if a.status >= 400 && media == "application/problem+json" {
		validate(t, c.schema(t, map[string]any{"$ref": "#/components/schemas/Problem"}), a, method+" "+path)
	}
	o, ok := c.find(method, path)
	if !ok {
		return // no operation, so the answer is a 404 or a 405
	}
	response, ok := c.at(o.def["responses"], strconv.Itoa(a.status)).(map[string]any)
	if !ok {
		t.Errorf("%s %s answers %d, which openapi.yaml does not know: %s", method, path, a.status, a.text)
		return
	}
	content, _ := response["content"].(map[string]any)
	body, ok := content[media].(map[string]any)
	if content != nil && !ok {
		t.Errorf(
			"%s %s answers %d with type %q, expected one of %v",
			method,
			path,
			a.status,
			media,
			slices.Collect(maps.Keys(content)),
		)
		return
	}

	promised, _ := c.at(response, "headers").(map[string]any)
	for name := range promised {
		if name != "Retry-After" && a.header.Get(name) == "" {
			t.Errorf("%s %s answers %d without the header %s", method, path, a.status, name)
		}
	}
	if strings.HasSuffix(media, "json") && method != http.MethodHead {
		validate(t, c.schema(t, body["schema"]), a, method+" "+path)
	}
}

func validate(t *testing.T, s *jsonschema.Schema, a *answer, what string) {
	t.Helper()
	if a.text == "" {
		return // HEAD
	}
	d := json.NewDecoder(strings.NewReader(a.text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("%s: %v: %s", what, err, a.text)
		return
	}
	for _, f := range s.Validate(v) {
		t.Errorf(
			"%s answers what openapi.yaml does not promise: %s: %s; expected %s\n%s",
			what,
			strings.Join(f.Path, "."),
			f.Message,
			f.Expected,
			a.text,
		)
	}
}
