package policyhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// bundleVersion is the version of the bundle that WriteBundle writes;
// others of its major are read.
const bundleVersion = "1.0.0"

type bundle struct {
	SchemaVersion string  `json:"schema_version"`
	Policies      []entry `json:"policies"`
}

// entry is one policy document as its author wrote it, so that findings
// point into the author's text.
type entry struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// WriteBundle writes the policies below the root of fsys as one bundle,
// in the order of their names: same policies, same bytes. It refuses
// what policy.LoadFS refuses and writes nothing then.
func WriteBundle(w io.Writer, fsys fs.FS) ([]diag.Finding, error) {
	files, findings := policy.ReadFS(fsys, "")
	if len(findings) > 0 {
		return findings, policy.Refuse(findings).Err()
	}
	set, findings := policy.LoadFiles(files, "")
	if err := set.Err(); err != nil {
		return findings, err
	}
	b := bundle{SchemaVersion: bundleVersion}
	for _, f := range files {
		b.Policies = append(b.Policies, entry{f.Name, string(f.Text)})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return findings, fmt.Errorf("write bundle: %w", err)
	}
	return findings, nil
}

// NewHandler serves a bundle with its digest as ETag.
func NewHandler(bundle []byte) http.Handler {
	etag := `"` + value.SumCanonical(bundle).String() + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "a bundle can only be read", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", etag)
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(bundle))
	})
}

// parseBundle makes a registry of a bundle: of all of it, or a refused one.
func parseBundle(body []byte, origin string, maxBytes int) (*policy.Set, []diag.Finding) {
	files, err := readBundle(body, origin, maxBytes)
	if err != nil {
		findings := []diag.Finding{{
			Rule:     policy.RuleBundle,
			Severity: diag.Error,
			Stops:    true,
			File:     origin,
			Message:  err.Error(),
			Expected: `{"schema_version": "1.0.0", "policies": [{"name": "a.policy.yaml", "text": "…"}]}`,
		}}
		return policy.Refuse(findings), findings
	}

	return policy.LoadFiles(files, origin)
}

// readBundle reads the envelope as strictly as arguments of a call: no
// duplicate keys, no unknown fields.
func readBundle(body []byte, origin string, maxBytes int) ([]policy.File, error) {
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
	var files []policy.File
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

func readEntry(item value.Value, place string) (policy.File, error) {
	if err := members(item, place, "name", "text"); err != nil {
		return policy.File{}, err
	}
	name, _ := item.Get("name")
	text, _ := item.Get("text")
	if name.Kind != value.String || text.Kind != value.String {
		return policy.File{}, fmt.Errorf("%s: name and text are not both texts", place)
	}
	if !fs.ValidPath(name.Text) || !strings.HasSuffix(name.Text, policy.Suffix) ||
		strings.ContainsFunc(name.Text, unprintable) {
		return policy.File{}, fmt.Errorf(
			"%s: name %q is no path of a file that ends in %s",
			place,
			name.Text,
			policy.Suffix,
		)
	}

	return policy.File{Name: name.Text, Text: []byte(text.Text)}, nil
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
