package catalog

import (
	"fmt"
	"math"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/pattern"
)

// The methods that list a server's resources, templates and prompts.
const (
	ListResources = "resources/list"
	ListTemplates = "resources/templates/list"
	ListPrompts   = "prompts/list"
)

// Item is a resource, a template of resources or a prompt.
type Item struct {
	ID   string // the URI, the template of URIs or the name
	Text []byte // what the server sent, with safe titles and descriptions
}

// IDMember returns the name of the member that identifies the items of a list.
func IDMember(list string) string {
	return map[string]string{ListResources: "uri", ListTemplates: "uriTemplate", ListPrompts: "name"}[list]
}

// hasScheme matches URIs that the official clients accept. The Python client refuses a list with
// any other URI.
var hasScheme = pattern.Of(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// ReadItem reads an item of a list. It returns an error if clients can't be given the item: the
// official clients validate every item, and refuse the whole list for one that violates the schema
// of the protocol.
func ReadItem(list string, raw []byte) (Item, error) {
	f := jsonmsg.Read(raw, limits())
	id := IDMember(list)
	noNulls(f, id, "name", "title", "description", "mimeType", "size", "icons", "annotations", "_meta", "arguments")
	item := Item{ID: f.NonEmpty(id)}
	f.Need("name")
	for _, text := range []string{"title", "description", "mimeType"} {
		f.Text(text)
	}
	if list == ListResources && !hasScheme().MatchString(item.ID) {
		f.Expect(id, "a URI with a scheme")
	}
	if size := f.Raw("size"); size != nil && !isWhole(size) {
		f.Expect("size", "a whole number")
	}
	for _, argument := range f.Objects("arguments") {
		noNulls(argument, "name", "title", "description", "required")
		argument.Need("name")
		argument.Text("title")
		argument.Text("description")
		argument.Bool("required")
	}
	annotated(f.Object("annotations"))
	f.Object("_meta")
	icons(f)
	if err := f.Err(); err != nil {
		return item, err
	}
	safe := Sanitise(raw)
	if safe.Problem != "" {
		return item, fmt.Errorf("it can't be shown: %s", safe.Problem)
	}
	item.Text = safe.Text
	return item, nil
}

// annotated checks the annotations of a resource.
func annotated(f jsonmsg.Fields) {
	noNulls(f, "audience", "priority", "lastModified")
	if f.Has("audience") {
		for path, raw := range f.Elements("audience", len(f.Raw("audience"))) {
			if who, _ := f.String(path, raw); who != "user" && who != "assistant" {
				f.Expect("audience", "user or assistant")
			}
		}
	}
	if priority := f.Raw("priority"); priority != nil && !isFraction(priority) {
		f.Expect("priority", "a number from 0 to 1")
	}
	f.Text("lastModified")
}

// isWhole reports whether a JSON text is a number without a fraction that every reader represents
// exactly.
func isWhole(raw []byte) bool {
	n, err := strconv.ParseFloat(string(jsonmsg.Trim(raw)), 64)
	return err == nil && n == math.Trunc(n) && math.Abs(n) <= 1<<53
}

// isFraction reports whether a JSON text is a number from 0 to 1.
func isFraction(raw []byte) bool {
	n, err := strconv.ParseFloat(string(jsonmsg.Trim(raw)), 64)
	return err == nil && n >= 0 && n <= 1
}
