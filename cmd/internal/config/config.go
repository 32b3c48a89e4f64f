package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// configReader reads a configuration file strictly: unknown fields and wrong types are findings with their place.
type configReader struct {
	file     string
	findings []diag.Finding
}

// fields says what reads each field of a mapping.
type fields map[string]func(*yamldoc.Node)

// readConfig reads a file; what is wrong goes to the error stream with its place.
func (a Reader) readConfig(file string, src []byte, read func(*configReader, *yamldoc.Node)) error {
	doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
	r := &configReader{file: file}
	if doc != nil {
		read(r, doc.Root)
	}
	r.findings = append(term.Stopping(findings), r.findings...)
	if len(r.findings) == 0 {
		return nil
	}
	diag.Stamp(r.findings, file)
	term.PrintFindings(a.Err, r.findings, map[string][]byte{file: src})
	return fmt.Errorf("the configuration %s can't be used", file)
}

func (r *configReader) wrong(n *yamldoc.Node, message, expected, nearest string) {
	r.findings = append(r.findings, diag.Finding{
		Rule: "config-invalid", Severity: diag.Error, Stops: true, Range: n.Range, Message: message, Expected: expected, Nearest: nearest,
	})
}

// mapping reads the fields of a mapping; an empty document is an empty mapping.
func (r *configReader) mapping(n *yamldoc.Node, known fields) {
	if n.Kind == yamldoc.Null {
		return
	}
	if n.Kind != yamldoc.Mapping {
		r.wrong(n, "this is "+article(n.Kind), "an object", "")
		return
	}
	names := slices.Sorted(maps.Keys(known))
	for _, f := range n.Fields {
		if read, ok := known[f.Key.Text]; ok {
			read(f.Value)
		} else {
			r.wrong(f.Key, fmt.Sprintf("no field is called %q here", f.Key.Text), "one of "+strings.Join(names, ", "), diag.Nearest(f.Key.Text, names))
		}
	}
}

func article(k yamldoc.Kind) string {
	switch k {
	case yamldoc.Null:
		return "null"
	case yamldoc.Sequence, yamldoc.Mapping:
		return "an " + k.String()
	}
	return "a " + k.String()
}

func (r *configReader) text(into *string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		if n.Kind != yamldoc.String || n.Text == "" {
			r.wrong(n, "this is "+article(n.Kind), "a text that is not empty", "")
			return
		}
		*into = n.Text
	}
}

// path reads the name of a file, as seen from the configuration's own directory.
func (r *configReader) path(into *string) func(*yamldoc.Node) {
	read := r.text(into)
	return func(n *yamldoc.Node) {
		read(n)
		*into = r.beside(*into)
	}
}

func (r *configReader) beside(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.file), name)
}

func (r *configReader) flag(into *bool) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		if n.Kind != yamldoc.Bool {
			r.wrong(n, "this is "+article(n.Kind), "true or false", "")
			return
		}
		*into = n.Bool
	}
}

// listen reads an address to listen at.
func (r *configReader) listen(into *string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		if n.Kind != yamldoc.String || !isAddress(n.Text) {
			r.wrong(n, "this is no address to listen at", "HOST:PORT, such as "+defaultListen, "")
			return
		}
		*into = n.Text
	}
}

// oneOf reads one of a few words.
func (r *configReader) oneOf(into *string, words ...string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		if n.Kind != yamldoc.String || !slices.Contains(words, n.Text) {
			r.wrong(n, fmt.Sprintf("%q is not known here", n.Text), "one of "+strings.Join(words, ", "),
				diag.Nearest(n.Text, words))
			return
		}
		*into = n.Text
	}
}

func (r *configReader) duration(into *time.Duration) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		d, err := time.ParseDuration(n.Text)
		if n.Kind != yamldoc.String || err != nil || d < 0 {
			r.wrong(n, "this is no duration", "one such as 10s or 2m", "")
			return
		}
		*into = d
	}
}

// number reads a positive count.
func (r *configReader) number(into *int) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		i, err := strconv.Atoi(n.Text)
		if n.Kind != yamldoc.Number || err != nil || i <= 0 {
			r.wrong(n, "this is no count", "a whole number above 0", "")
			return
		}
		*into = i
	}
}

// list reads every item of a list, in which one item may stand alone.
func (r *configReader) list(each func(*yamldoc.Node)) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		items := n.Items
		if n.Kind != yamldoc.Sequence {
			items = []*yamldoc.Node{n}
		}
		for _, item := range items {
			each(item)
		}
	}
}

func (r *configReader) texts(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var text string
		if r.text(&text)(n); text != "" {
			*into = append(*into, text)
		}
	})
}

func (r *configReader) paths(into *[]string) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var path string
		if r.path(&path)(n); path != "" {
			*into = append(*into, path)
		}
	})
}

// table reads a mapping of texts.
func (r *configReader) table(into *map[string]string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		if n.Kind != yamldoc.Mapping {
			r.wrong(n, "this is "+article(n.Kind), "an object of texts", "")
			return
		}
		*into = map[string]string{}
		for _, f := range n.Fields {
			var text string
			if r.text(&text)(f.Value); text != "" {
				(*into)[f.Key.Text] = text
			}
		}
	}
}
