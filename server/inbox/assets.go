package inbox

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"github.com/assent-dev/assent/internal/safetext"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"sync"
	"time"
)

//go:embed assets templates
var files embed.FS

// asset is one static file with the digest of its content.
type asset struct {
	body    []byte
	kind    string
	version string
}

func loadAssets() map[string]asset {
	out := map[string]asset{}
	names, _ := fs.Glob(files, "assets/*") // the pattern is valid
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			continue // embedded files can always be read
		}
		sum := sha256.Sum256(body)
		out[path.Base(name)] = asset{body, mime.TypeByExtension(path.Ext(name)), hex.EncodeToString(sum[:6])}
	}

	return out
}

// asset serves a static file. With the version that pages use, it may be cached for ever; with
// another version it must be requested again each time.
func (s *site) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+a.version+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == `"`+a.version+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Write(a.body)
}

// staticFiles returns the assets and pages, which all inboxes of a process share: parsing the pages
// takes several MB.
var staticFiles = sync.OnceValues(func() (map[string]asset, map[string]*template.Template) {
	assets := loadAssets()
	return assets, parsePages(assets)
})

// parsePages parses every page together with the layout. The templates are embedded, so an error in
// one is a bug that every test shows.
func parsePages(assets map[string]asset) map[string]*template.Template {
	funcs := template.FuncMap{
		"asset":  func(name string) string { return "/assets/" + name + "?v=" + assets[name].version },
		"show":   func(s string) safetext.Shown { return safetext.Inspect(s, safetext.Form{}) },
		"spoken": func(s string) string { return safetext.Inspect(s, safetext.Form{}).Spoken() },
		"brief": func(s string) safetext.Shown {
			return safetext.Inspect(s, safetext.Form{Block: true, Limit: 300})
		},
		"lines":   func(s string) safetext.Shown { return safetext.Inspect(s, safetext.Form{Block: true}) },
		"count":   safetext.Count,
		"tail":    tail,
		"about":   about,
		"short":   short,
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"at":      at,
		"until":   until,
		"span":    span,
		"group":   groupName,
		"people":  seatsOf,
		"presets": presets,
		"answers": answers,
		"plural": func(n int, one, many string) string {
			if n == 1 {
				return "1 " + one
			}
			return safetext.Count(n) + " " + many
		},
	}
	layout := template.Must(template.New("layout").Funcs(funcs).ParseFS(
		files,
		"templates/layout.html",
		"templates/parts.html",
	))
	out := map[string]*template.Template{}
	names, _ := fs.Glob(files, "templates/*.html")
	for _, name := range names {
		page := path.Base(name[:len(name)-len(".html")])
		if page == "layout" || page == "parts" {
			continue
		}
		out[page] = template.Must(template.Must(layout.Clone()).ParseFS(files, name))
	}

	return out
}
