package yamldoc

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
)

// Form distinguishes documents of one form from others, and checks their version.
type Form struct {
	Marks       []string // fields at least one of which every document of this form has
	Foreign     func(root *Node) diag.Finding
	Unsupported string // rule for an unknown major version
	Newer       string // rule for a newer minor version
	Minor       int    // the newest minor version that is known
}

// Read reads a document of this form. The document is nil if a finding stops the load. A
// document of another form or an unknown version is reported by a single finding, instead of
// many missing and unknown fields.
func (f Form) Read(file string, src []byte) (*Document, []diag.Finding) {
	doc, findings := ReadDocument(file, src)
	switch {
	case doc == nil:
	case !slices.ContainsFunc(f.Marks, func(mark string) bool { return doc.Root.Get(mark) != nil }):
		findings = append(findings, f.Foreign(doc.Root))
	default:
		findings = append(findings, f.Version(doc.Root)...)
	}

	if Stops(findings) {
		doc = nil
	}
	return doc, findings
}

// ReadDocument reads a document of any form. If it can't be read, it is nil, and all errors
// stop the load.
func ReadDocument(file string, src []byte) (*Document, []diag.Finding) {
	doc, findings := Parse(file, src, Limits{})
	if doc == nil {
		for i := range findings {
			findings[i].Stops = findings[i].Severity == diag.Error
		}
	}

	return doc, findings
}

// Version checks the schema_version of a document. An unknown major version may change the
// meaning of fields, so it stops the load; a minor version only adds fields. A text that is not
// a version is reported by the JSON Schema.
func (f Form) Version(root *Node) []diag.Finding {
	n := root.Get("schema_version")
	if n == nil || n.Kind != String {
		return nil
	}
	parts := strings.Split(n.Text, ".")
	if len(parts) != 3 {
		return nil
	}
	known := fmt.Sprintf("1.%d", f.Minor)
	switch major := strings.TrimLeft(parts[0], "0"); {
	case major != "1":
		message := fmt.Sprintf("schema_version %s is of a major version that assent does not know", n.Text)
		return []diag.Finding{Stop(f.Unsupported, n.Range, message, `"`+known+`.0"`)}
	case AtLeastMinor(root, f.Minor+1):
		message := fmt.Sprintf(
			"schema_version %s is newer than %s; a field that it adds is refused as unknown",
			n.Text, known,
		)
		return []diag.Finding{
			Warn(f.Newer, n.Range, message, `"`+known+`.0", or an assent that knows the newer version`),
		}
	}

	return nil
}

// AtLeastMinor reports whether the schema_version of a document is 1.N.z, where N is at least the
// given minor version.
func AtLeastMinor(root *Node, minor int) bool {
	n := root.Get("schema_version")
	if n == nil || n.Kind != String {
		return false
	}
	parts := strings.Split(n.Text, ".")
	if len(parts) != 3 || strings.TrimLeft(parts[0], "0") != "1" || strings.Trim(parts[1], "0123456789") != "" {
		return false
	}
	text, least := strings.TrimLeft(parts[1], "0"), strconv.Itoa(minor)
	if len(text) != len(least) {
		return len(text) > len(least) || minor == 0
	}
	return text >= least
}

// Fill decodes a node that has passed its JSON Schema into the value that a pointer points to.
// Struct fields are matched by the tag `doc`. A field that the node lacks, or has with another
// kind, is unchanged.
func Fill(n *Node, into any) { fill(n, reflect.ValueOf(into).Elem()) }

func fill(n *Node, v reflect.Value) {
	if n == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(n, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if key, tagged := field.Tag.Lookup("doc"); tagged {
				fill(n.Get(key), v.Field(i))
			} else if field.Anonymous {
				fill(n, v.Field(i))
			}
		}
	case reflect.Slice:
		for i, item := range n.Items {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			fill(item, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, f := range n.Fields {
			item := reflect.New(v.Type().Elem()).Elem()
			fill(f.Value, item)
			v.SetMapIndex(reflect.ValueOf(f.Key.Text), item)
		}
	case reflect.Bool:
		v.SetBool(n.Bool)
	case reflect.String:
		v.SetString(n.Text)
	case reflect.Int:
		f, _ := strconv.ParseFloat(n.Num.String(), 64) // 2.0 is also a whole number
		v.SetInt(int64(f))
	case reflect.Int64:
		d, _ := time.ParseDuration(n.Text) // the text was checked before
		v.SetInt(int64(d))
	}
}
