package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// A file of pins is one JSON object:
//
//	{"assent_mcp_pins": 1, "servers": {ALIAS: {
//	  "server": {"command":…,"args":[…],"cwd":…,"env":[…]} or {"origin":…,"path":…},
//	  "tools": [{"digest": "sha256:…", "by": "operator", "definition": {…}}]}}}
//
// Members that are not known are kept.
const (
	pinFormat  = "assent_mcp_pins"
	pinVersion = "1"
	maxPins    = 64 << 20 // bytes
)

// Text returns the file of pins. It is indented so that people can read and compare it in a
// repository. Invisible characters are written as escapes.
func (p *Pins) Text() ([]byte, error) {
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name(pinFormat).Verbatim([]byte(pinVersion))
		w.Name("servers").Object(func(w *jsonmsg.Writer) {
			for i := range p.Servers {
				w.Name(p.Servers[i].Alias).Object(p.Servers[i].write)
			}
		})
		more(w, p.extra)
	})
	if err != nil {
		return nil, fmt.Errorf("write the pins: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fmt.Errorf("write the pins: %w", err)
	}
	return []byte(safetext.JSON(out.String()) + "\n"), nil
}

func (p *Pinned) write(w *jsonmsg.Writer) {
	server, err := p.Server.Text()
	w.Fail(err)
	w.Name("server").Verbatim(server)
	w.Name("tools").List(len(p.Tools), func(w *jsonmsg.Writer, i int) {
		w.Object(func(w *jsonmsg.Writer) {
			w.Member("digest", p.Tools[i].Digest)
			w.Member("by", string(p.Tools[i].By))
			w.Name("definition").Verbatim(p.Tools[i].Definition)
			more(w, p.Tools[i].extra)
		})
	})
	more(w, p.extra)
}

func more(w *jsonmsg.Writer, extra []jsonmsg.Member) {
	for _, m := range extra {
		w.Name(m.Name).Verbatim(m.Raw)
	}
}

// ReadPins parses a file of pins. Errors begin with the place. A file with any error is refused as
// a whole, because then it is unknown what was accepted.
func ReadPins(file string, text []byte) (*Pins, error) {
	if _, err := jsonmsg.Check(text, value.Limits{MaxBytes: maxPins}); err != nil {
		var unsound *value.Error
		if errors.As(err, &unsound) && unsound.Line > 0 {
			return nil, fmt.Errorf(
				"%s:%d:%d: no file of pins: %s",
				file,
				unsound.Line,
				unsound.Column,
				unsound.Detail,
			)
		}

		return nil, fmt.Errorf("%s: no file of pins: %w", file, err)
	}

	r := &pinReader{src: text}
	pins := r.pins(text)
	if r.problem != "" {
		line, column := jsonmsg.Place(text, r.path)
		return nil, fmt.Errorf("%s:%d:%d: %s", file, line, column, r.problem)
	}
	return pins, nil
}

// pinReader keeps the first problem and goes on.
type pinReader struct {
	src     []byte
	path    []string
	problem string
}

func (r *pinReader) wrong(path []string, format string, args ...any) {
	if r.problem != "" {
		return
	}
	r.path, r.problem = slices.Clone(path), fmt.Sprintf(format, args...)
	if where := jsonmsg.Path(path); where != "" {
		r.problem = safetext.Line(where) + ": " + r.problem
	}
}

// split separates the known members of an object from the others.
func (r *pinReader) split(
	raw []byte, path []string, known ...string,
) (found map[string][]byte, extra []jsonmsg.Member) {
	found = map[string][]byte{}
	if !jsonmsg.IsObject(raw) {
		r.wrong(path, "expected an object, found %s", jsonmsg.Describe(raw))
		return found, nil
	}
	for _, m := range jsonmsg.Members(raw) {
		if slices.Contains(known, m.Name) {
			found[m.Name] = m.Raw
		} else {
			extra = append(extra, m)
		}
	}

	return found, extra
}

func below(path []string, name string) []string { return append(slices.Clone(path), name) }

// pins reads a whole file. It keeps unknown members, so that they survive when the file is written
// back.
func (r *pinReader) pins(raw []byte) *Pins {
	found, extra := r.split(raw, nil, pinFormat, "servers")
	p := &Pins{extra: extra}
	switch version, given := found[pinFormat]; {
	case !given:
		r.wrong(nil, "expected a file of pins, with %q: 1", pinFormat)
	case string(version) != pinVersion:
		r.wrong([]string{pinFormat}, "expected 1, the one format that is known here, found %s", version)
	}

	servers, given := found["servers"]
	if !given {
		r.wrong(nil, "expected servers")
		return p
	}
	if !jsonmsg.IsObject(servers) {
		r.wrong([]string{"servers"}, "expected an object, found %s", jsonmsg.Describe(servers))
		return p
	}
	for _, m := range jsonmsg.Members(servers) {
		p.Servers = append(p.Servers, r.server(m.Name, m.Raw, []string{"servers", m.Name}))
	}
	slices.SortStableFunc(p.Servers, func(a, b Pinned) int { return compare(a.Alias, b.Alias) })
	return p
}

// server reads the pins of one server. A digest that doesn't match its definition is an error,
// because it was edited by hand.
func (r *pinReader) server(alias string, raw []byte, path []string) Pinned {
	found, extra := r.split(raw, path, "server", "tools")
	s := Pinned{Alias: alias, extra: extra}
	if _, given := found["server"]; !given {
		r.wrong(path, "expected server, which says what the tools were accepted of")
		return s
	}
	s.Server = r.identity(found["server"], below(path, "server"))
	tools, path := found["tools"], below(path, "tools")
	if jsonmsg.Describe(tools) != "an array" {
		r.wrong(path, "expected an array of accepted definitions, found %s", jsonmsg.Describe(tools))
		return s
	}

	i := 0
	for item, err := range value.SplitArray(tools) {
		at := below(path, strconv.Itoa(i))
		if err != nil || r.problem != "" {
			break // it was checked
		}
		if pin := r.pin(s.Server, item, at); s.accepted(pin) {
			r.wrong(at, "this definition of %q was accepted already", pin.Name)
		} else {
			s.Tools = append(s.Tools, pin)
		}
		i++
	}

	s.sort()
	return s
}

func (p *Pinned) accepted(pin Pin) bool {
	return slices.ContainsFunc(p.Tools, func(o Pin) bool { return o.Digest == pin.Digest })
}

func (p *Pinned) sort() {
	slices.SortStableFunc(p.Tools, func(a, b Pin) int {
		if a.Name != b.Name {
			return compare(a.Name, b.Name)
		}
		return compare(a.Digest, b.Digest)
	})
}

// pin reads an accepted definition, whose digest must match. A file that was merged or edited by
// hand then can't accept a definition that was never reviewed.
func (r *pinReader) pin(server Server, raw []byte, path []string) Pin {
	found, extra := r.split(raw, path, "digest", "by", "definition")
	by, _ := jsonmsg.ReadString(found["by"])
	pin := Pin{Definition: found["definition"], By: By(by), extra: extra}
	if !slices.Contains([]By{ByOperator, ByFirstSight, ByOnChange}, pin.By) {
		r.wrong(below(path, "by"), "expected operator, first_sight or on_change, which say how it was accepted")
	}

	t := Read(pin.Definition)
	if t.Problem != "" && t.Rule != RuleNotMended && t.Rule != RuleLarge {
		r.wrong(below(path, "definition"), "expected the definition of a tool: %s", t.Problem)
		return pin
	}
	pin.Name = t.Name
	sum, err := server.Digest(pin.Definition, nil)
	if err != nil {
		r.wrong(path, "%s", err)
		return pin
	}
	pin.Digest, _ = jsonmsg.ReadString(found["digest"])
	if pin.Digest != sum {
		r.wrong(
			below(path, "digest"),
			"expected %s, the digest of this definition and server; after a change by hand accept the tool anew with "+
				"assent mcp pin",
			sum,
		)
	}

	return pin
}

// identity reads a server.
func (r *pinReader) identity(raw []byte, path []string) Server {
	found, extra := r.split(raw, path, "command", "args", "cwd", "env", "sha256", "origin", "path", "query")
	for _, m := range extra {
		r.wrong(below(path, m.Name), "not known here: it would have to be part of the digest")
	}

	text := func(name string) string {
		s, sound := jsonmsg.ReadString(found[name])
		if !sound && found[name] != nil {
			r.wrong(below(path, name), "expected a string, found %s", jsonmsg.Describe(found[name]))
		}

		return s
	}
	s := Server{
		Command: text("command"),
		Args:    r.texts(found["args"], below(path, "args")),
		Dir:     text("cwd"),
		Env:     r.texts(found["env"], below(path, "env")),
		Binary:  text("sha256"),
		Origin:  text("origin"),
		Path:    text("path"),
		Query:   text("query"),
	}
	if (s.Command == "") == (s.Origin == "") {
		r.wrong(path, "expected either command or origin")
	}
	return s
}

func (r *pinReader) texts(raw []byte, path []string) []string {
	if raw == nil {
		return nil
	}
	var out []string
	if err := json.Unmarshal(raw, &out); err != nil {
		r.wrong(path, "expected a list of strings")
	}
	return out
}
