package config

import (
	"cmp"
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Witness is an external service or file where the ledger's checkpoints are published.
type Witness struct {
	Name      string        `doc:"name"`       // in logs and figures; "" means file, url or assent
	File      string        `doc:"file"`       // that they are appended to; this, URL or Assent
	URL       string        `doc:"url"`        // that they are posted to
	Assent    string        `doc:"assent"`     // URL of another assent server, which compares and keeps them
	TokenFile string        `doc:"token_file"` // for URL and Assent
	Loopback  bool          `doc:"loopback"`   // this machine may be reached, by plain http too
	Networks  []string      `doc:"networks"`
	Every     time.Duration `doc:"every"`    // 0: a minute
	Required  bool          `doc:"required"` // a server whose witness is far behind is not ready
}

// checkWitness refuses a witness without one place, and names it by the
// kind of its place.
func checkWitness(d *document.Decoder, n *yamldoc.Node, w *Witness) {
	kind := ""
	for _, name := range []string{"file", "url", "assent"} {
		if n.Get(name) == nil {
			continue
		}
		if kind != "" {
			d.Wrong(n, fmt.Sprintf("this witness has %s and %s", kind, name), "one of file, url and assent", "")
			continue
		}
		kind = name
	}

	switch {
	case kind == "":
		d.Wrong(n, "this witness has no place", "one of file, url and assent", "")
	case kind == "file" && (w.TokenFile != "" || w.Loopback || len(w.Networks) > 0):
		d.Wrong(n, "a file is not reached over the network", "neither token_file, loopback nor networks", "")
	case kind == "assent" && w.TokenFile == "":
		d.Wrong(n, "the other server wants a token", "token_file: a token of it with the scope witness", "")
	}

	w.Name = cmp.Or(w.Name, kind)
}
