package apidocs_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/apidocs"
)

// TestMain ends the browser that the tests share.
func TestMain(m *testing.M) { os.Exit(chromium.Main(m, &shared)) }

var shared chromium.Browser

func made(t *testing.T) *apidocs.Docs {
	t.Helper()
	d, err := apidocs.New()
	must.Do(t, err)

	return d
}

// contract holds the parts of openapi.json that the tests read.
type contract struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]json.RawMessage
	Parts   struct {
		Schemas map[string]json.RawMessage
	} `json:"components"`
}

func parsed(t *testing.T, d *apidocs.Docs) contract {
	t.Helper()
	var c contract
	must.Do(t, json.Unmarshal(d.JSON.Body, &c))
	if c.OpenAPI != "3.1.0" || len(c.Paths) < 30 || len(c.Parts.Schemas) < 50 {
		t.Fatalf("version %s, %d paths, %d schemas", c.OpenAPI, len(c.Paths), len(c.Parts.Schemas))
	}

	return c
}

// TestThePageShowsEveryOperationAndSchema also checks their addresses, and that every link
// has a target.
func TestThePageShowsEveryOperationAndSchema(t *testing.T) {
	d := made(t)
	c := parsed(t, d)
	page := string(d.Page.Body)
	for path, methods := range c.Paths {
		for method, raw := range methods {
			if method == "parameters" {
				continue
			}
			var o struct{ OperationID, Summary string }
			must.Do(t, json.Unmarshal(raw, &o))
			for _, part := range []string{
				`<article id="` + o.OperationID + `">`,
				`<a href="#` + o.OperationID + `">`,
				`<code>` + path + `</code>`,
			} {
				if !strings.Contains(page, part) {
					t.Errorf("%s %s: the page lacks %s", method, path, part)
				}
			}
		}
	}

	for name := range c.Parts.Schemas {
		if !strings.Contains(page, `<article id="schema-`+name+`">`) {
			t.Errorf("the page lacks the schema %s", name)
		}
	}

	for _, link := range strings.Split(page, `href="#`)[1:] {
		id, _, _ := strings.Cut(link, `"`)
		if !strings.Contains(page, ` id="`+id+`"`) {
			t.Errorf("a link leads to #%s, which is not there", id)
		}
	}

	for _, wrong := range []string{"<script", "http://", "https://cdn", "ZgotmplZ", "x-go-type", "<nil>"} {
		if strings.Contains(page, wrong) {
			t.Errorf("the page has %s", wrong)
		}
	}
}

func TestWhoeverHasTheTextIsNotSentItAgain(t *testing.T) {
	d := made(t)
	for name, f := range map[string]apidocs.File{"json": d.JSON, "page": d.Page} {
		first := httptest.NewRecorder()
		f.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/", nil))
		if first.Code != http.StatusOK || first.Body.Len() != len(f.Body) {
			t.Errorf("%s: %d with %d bytes", name, first.Code, first.Body.Len())
		}
		again := httptest.NewRequest(http.MethodGet, "/", nil)
		again.Header.Set("If-None-Match", first.Header().Get("ETag"))
		second := httptest.NewRecorder()
		f.ServeHTTP(second, again)
		if second.Code != http.StatusNotModified || second.Body.Len() != 0 {
			t.Errorf("%s: %d with %d bytes", name, second.Code, second.Body.Len())
		}
	}
}

// TestARealBrowserShowsThePage checks that a browser shows the page in its own style under
// the policy, accessibly, on small and large screens.
func TestARealBrowserShowsThePage(t *testing.T) {
	d := made(t)
	site := http.NewServeMux()
	site.Handle("/docs", d.Page)
	site.HandleFunc("/quiet", func(http.ResponseWriter, *http.Request) {})
	site.HandleFunc("/favicon.ico", func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewServer(site)
	t.Cleanup(s.Close)

	tab := chromium.NewTab(t, shared.Context(t), s.URL+"/quiet")
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"wide": 1280, "narrow": 360} {
			tab.Scheme(scheme)
			tab.Size(width, 800)
			tab.Open(s.URL + "/docs#consume")
			tab.Until("the operation", `document.querySelector("#consume").getBoundingClientRect().top < 100`)
			if name == "wide" {
				tab.Until("its style", `getComputedStyle(document.querySelector(".columns")).display == "grid"`)
			}
			chromium.Eval[chromedp.Void](tab, chromium.AxeSource(t))
			tab.Axe(scheme + " " + name)
			// a screenshot of everything would be too large
			chromium.Eval[chromedp.Void](tab, `document.querySelectorAll("section ~ section").forEach(s => s.remove())`)
			tab.Shoot("docs-" + scheme + "-" + name)
		}
	}
}
