package lint_test

import (
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/catalog"
	"github.com/assent-dev/assent/lint/rules"
)

// FuzzLint lints any text as an agent and as a policy: nothing panics,
// the same text gives the same report, every finding has a known rule,
// a sentence and a place inside the text, and what is silenced is not
// reported.
func FuzzLint(f *testing.F) {
	seed := func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".yaml") {
			return err
		}
		src, err := os.ReadFile(file)
		f.Add(src)
		return err
	}
	for _, dir := range []string{"rules", "testdata"} {
		must.Do(f, fs.WalkDir(os.DirFS("."), dir, seed))
	}
	f.Add([]byte(head + "# agf-validate: ignore dotted-key, x -- y\n"))
	offered, err := catalog.Parse("t", []byte(`[{"name":"pay","inputSchema":{"properties":{"amount":{"type":"integer"}}}},
		{"name":"drop_table","inputSchema":{"properties":{"a":{"enum":["b",1]}},"required":["a"]}}]`))
	must.Do(f, err)
	l := lint.New(rules.All(), lint.Options{Catalogs: lint.Catalogs{offered}})
	known := map[string]bool{}
	for _, info := range lint.Infos(rules.All()) {
		known[info.ID] = true
	}
	w := l.Worker()
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, read := range []func(*lint.Worker) diag.Report{
			func(w *lint.Worker) diag.Report { return w.Agent("a", src, nil) },
			func(w *lint.Worker) diag.Report { return w.Policy("a", src) },
		} {
			r := read(w)
			if fresh := read(l.Worker()); !reflect.DeepEqual(r, fresh) {
				t.Errorf("a used worker says\n%+v\na fresh one\n%+v", r, fresh)
			}
			for _, x := range r.Findings {
				if !known[x.Rule] || x.Message == "" || x.File != "a" || x.Range.Start.Line < 1 ||
					x.Range.Start.Line > strings.Count(string(src), "\n")+strings.Count(string(src), "\r")+1 {
					t.Errorf("odd finding: %+v", x)
				}
			}
		}

		lint.ParseConfig("a", src, lint.Infos(nil))
	})
}
