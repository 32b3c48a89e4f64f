package catalog

import (
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// protocol checks a definition against the type Tool in the schemas of the protocol (2024-11-05 to
// 2025-11-25), and returns what is wrong. The official TypeScript client refuses the whole list for
// one invalid definition.
func (t *Tool) protocol() string {
	f := jsonmsg.Read(t.Raw, limits())
	noNulls(f, known()...)
	if f.Err() != nil {
		return f.Err().Error()
	}
	schema(f, "inputSchema")
	if f.Has("outputSchema") {
		schema(f, "outputSchema")
	}
	annotations := f.Object("annotations")
	noNulls(annotations, append(hintNames(), "title")...)
	annotations.Text("title")
	noNulls(f.Object("execution"), "taskSupport")
	f.Object("_meta")
	icons(f)

	if err := f.Err(); err != nil {
		return err.Error()
	}
	return ""
}

// icons checks the icons of a definition.
func icons(f jsonmsg.Fields) {
	for _, icon := range f.Objects("icons") {
		noNulls(icon, "src", "mimeType", "sizes", "theme")
		icon.Need("src")
		icon.Text("mimeType")
		texts(icon, "sizes")
		if theme := icon.Text("theme"); theme != "" && theme != "light" && theme != "dark" {
			icon.Expect("theme", "light or dark")
		}
	}
}

// schema checks what the protocol requires of the JSON Schemas of arguments and results.
func schema(f jsonmsg.Fields, name string) {
	s := f.Required(name)
	noNulls(s, "properties", "required")
	if s.Text("type") != "object" {
		s.Expect("type", `"object"`)
	}
	properties := s.Object("properties")
	for _, m := range properties.Members() {
		properties.Required(m.Name)
	}
	texts(s, "required")
}

// texts checks an array of strings that may be absent.
func texts(f jsonmsg.Fields, name string) {
	if !f.Has(name) {
		return
	}
	for path, raw := range f.Elements(name, len(f.Raw(name))) {
		f.String(path, raw)
	}
}

// noNulls refuses null for members that may be absent.
func noNulls(f jsonmsg.Fields, names ...string) {
	for _, name := range names {
		if raw, given := f.Given(name); given && string(raw) == "null" {
			f.Expect(name, "no null: leave it out")
		}
	}
}
