package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// LoadBundle builds a registry from a bundle. If the bundle has an error, the registry is refused
// as a whole.
func LoadBundle(body []byte, origin string, maxBytes int) (*Set, []diag.Finding) {
	files, findings := ReadBundle(body, origin, maxBytes)
	if len(findings) > 0 {
		return Refuse(findings), findings
	}

	return LoadFiles(files, origin)
}

// ReadBundle returns the files of a bundle (docs/contracts/policy-registry-http.md), with the names
// of the bundle's origin. It returns none if a finding says that the bundle is invalid.
func ReadBundle(body []byte, origin string, maxBytes int) ([]File, []diag.Finding) {
	files, err := readBundle(body, origin, maxBytes)
	if err != nil {
		return nil, []diag.Finding{{
			Rule:     RuleBundle,
			Severity: diag.Error,
			Stops:    true,
			File:     origin,
			Message:  err.Error(),
			Expected: `{"schema_version": "1.0.0", "policies": [{"name": "a.policy.yaml", "text": "…"}]}`,
		}}
	}

	return files, nil
}

// readBundle reads the envelope as strictly as arguments of a call: no
// duplicate keys, no unknown fields.
func readBundle(body []byte, origin string, maxBytes int) ([]File, error) {
	doc, err := value.Parse(body, value.Limits{MaxBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	if err := members(doc, "the bundle", "schema_version", "policies"); err != nil {
		return nil, err
	}
	version, _ := doc.Get("schema_version")
	if version.Kind != value.String || !strings.HasPrefix(version.Text, "1.") {
		return nil, errors.New(`schema_version is not "1.0.0" or a later 1.x`)
	}
	policies, _ := doc.Get("policies")
	if policies.Kind != value.Array {
		return nil, errors.New("policies is no list")
	}
	var files []File
	for i, item := range policies.Items {
		f, err := readEntry(item, fmt.Sprintf("policies[%d]", i))
		if err != nil {
			return nil, err
		}
		f.Name = origin + "#" + f.Name
		files = append(files, f)
	}

	return files, nil
}

func readEntry(item value.Value, place string) (File, error) {
	if err := members(item, place, "name", "text"); err != nil {
		return File{}, err
	}
	name, _ := item.Get("name")
	text, _ := item.Get("text")
	if name.Kind != value.String || text.Kind != value.String {
		return File{}, fmt.Errorf("%s: name and text are not both texts", place)
	}
	if !fs.ValidPath(name.Text) || !strings.HasSuffix(name.Text, Suffix) ||
		strings.ContainsFunc(name.Text, unprintable) {
		return File{}, fmt.Errorf("%s: name %q is no path of a file that ends in %s", place, name.Text, Suffix)
	}

	return File{Name: name.Text, Text: []byte(text.Text)}, nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// members checks that an object has these members and no others.
func members(v value.Value, what string, names ...string) error {
	if v.Kind != value.Object {
		return fmt.Errorf("%s is no object", what)
	}
	for _, name := range names {
		if _, ok := v.Get(name); !ok {
			return fmt.Errorf("%s has no %q", what, name)
		}
	}
	for _, m := range v.Members {
		if !slices.Contains(names, m.Key) {
			return fmt.Errorf("%s has an unknown field %q", what, m.Key)
		}
	}
	return nil
}
