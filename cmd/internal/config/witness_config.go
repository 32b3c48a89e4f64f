package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// Witness is one place outside that the ledger's checkpoints are shown to.
type Witness struct {
	Name      string // in logs and figures; "" means file, url or assent
	File      string // that they are appended to; this, URL or Assent
	URL       string // that they are posted to
	Assent    string // URL of another assent server, which compares and keeps them
	TokenFile string // for URL and Assent
	Loopback  bool   // this machine may be reached, by plain http too
	Networks  []string
	Every     time.Duration // 0: a minute
	Required  bool          // a server whose witness is far behind is not ready
}

func (r *configReader) witness(into *[]Witness) func(*yamldoc.Node) {
	return r.list(func(n *yamldoc.Node) {
		var w Witness
		r.mapping(n, fields{
			"name": r.text(&w.Name), "file": r.path(&w.File), "url": r.text(&w.URL), "assent": r.text(&w.Assent), "token_file": r.path(&w.TokenFile),
			"loopback": r.flag(&w.Loopback), "networks": r.networks(&w.Networks), "every": r.duration(&w.Every), "required": r.flag(&w.Required),
		})
		kind := ""
		for _, name := range []string{"file", "url", "assent"} {
			if has(n, name) && kind != "" {
				r.wrong(n, fmt.Sprintf("this witness has %s and %s", kind, name), "one of file, url and assent", "")
			} else if has(n, name) {
				kind = name
			}
		}
		switch {
		case kind == "":
			r.wrong(n, "this witness has no place", "one of file, url and assent", "")
		case kind == "file" && (w.TokenFile != "" || w.Loopback || len(w.Networks) > 0):
			r.wrong(n, "a file is not reached over the network", "neither token_file, loopback nor networks", "")
		case kind == "assent" && w.TokenFile == "":
			r.wrong(n, "the other server wants a token", "token_file: a token of it with the scope witness", "")
		}
		if w.Name == "" {
			w.Name = kind
		}
		r.twice(n, "witness", w.Name, slices.ContainsFunc(*into, func(o Witness) bool { return o.Name == w.Name }))
		*into = append(*into, w)
	})
}
