package policyhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

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
