// Package apidocs renders the server's contract (server/openapi) in two forms: JSON for
// programs, and one plain HTML page for people. The page has no scripts and loads nothing,
// so that it works without access to other servers.
package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/server/openapi"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// Docs is the rendered contract.
type Docs struct {
	JSON File
	Page File
}

// File is a text that is the same for every client. It is an http.Handler.
type File struct {
	Body   []byte
	Kind   string // media type
	Policy string // Content-Security-Policy; may be empty
	tag    string // ETag
}

// New renders the contract that is part of this program.
func New() (*Docs, error) {
	doc, findings := yamldoc.Parse("openapi.yaml", []byte(openapi.Document()), yamldoc.Limits{})
	if doc == nil {
		return nil, fmt.Errorf("read openapi.yaml: %v", findings)
	}
	text, err := jsonmsg.Marshal(doc.Root.Any())
	if err != nil {
		return nil, fmt.Errorf("write openapi.json: %w", err)
	}
	page, err := render(doc.Root)
	if err != nil {
		return nil, err
	}

	return &Docs{
		JSON: newFile(text, "application/json", ""),
		Page: newFile(page, "text/html; charset=utf-8", policy()),
	}, nil
}

// policy allows the page its own style and nothing else. The inbox's policy allows only the
// inbox's files.
func policy() string {
	sum := sha256.Sum256([]byte(pageStyle))

	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

func newFile(body []byte, kind, policy string) File {
	sum := sha256.Sum256(body)

	return File{
		Body:   body,
		Kind:   kind,
		Policy: policy,
		tag:    `"` + hex.EncodeToString(sum[:8]) + `"`,
	}
}

// ServeHTTP sends the text, or 304 if the client has it.
func (f File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.Kind)
	h.Set("Content-Length", strconv.Itoa(len(f.Body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if f.Policy != "" {
		h.Set("Content-Security-Policy", f.Policy)
		h.Set("X-Frame-Options", "DENY")
	}

	_, _ = w.Write(f.Body) // a client that has disconnected can't read an error either
}

var errEmpty = errors.New("openapi.yaml names no operation")

// render makes the page.
func render(root *yamldoc.Node) ([]byte, error) {
	p := read(root)
	if len(p.Groups) == 0 {
		return nil, errEmpty
	}
	p.Style = template.CSS(pageStyle) //nolint:gosec // our own file
	t, err := template.New("page").Funcs(template.FuncMap{"prose": prose}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("write the page: %w", err)
	}

	return out.Bytes(), nil
}
