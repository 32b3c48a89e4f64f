package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// serveFile is the file of `assent serve`. The fields of a single tenant may be at its top level.
type serveFile struct {
	Serve
	Tenant
	Name string `doc:"tenant"`
}

// tenants returns the tenants of the file: the list, or the single one at the top level.
func (f *serveFile) tenants() []Tenant {
	if len(f.Tenants) > 0 {
		return f.Tenants
	}
	one := f.Tenant
	one.Name = f.Name

	return []Tenant{one}
}

// readServe reads the file of `assent serve`. Without a file, it returns the defaults.
func (a Reader) readServe(file string) (Serve, error) {
	var f serveFile
	if file == "" {
		decoder("").Default(schemaOf("serve"), document.Target(&f))
	} else if err := a.read(file, "serve", &f); err != nil {
		return f.Serve, err
	}
	f.Tenants = f.tenants()

	return f.Serve, nil
}

// Choices reads the decision configuration of a tenant, if it has one.
func (a Reader) Choices(t *Tenant) error {
	err := a.decisions(t.Decisions, &t.Chosen, map[string]bool{
		"policies":                 len(t.Policies) > 0,
		"trusted_servers":          len(t.TrustedServers) > 0,
		"case_sensitive_arguments": len(t.CaseSensitive) > 0,
	})
	if err != nil {
		return fmt.Errorf("tenant %s: %w", t.Name, err)
	}
	if t.Chosen != nil {
		t.Policies = t.Chosen.PolicyDirs()
		t.TrustedServers = t.Chosen.TrustedServers
		t.CaseSensitive = t.Chosen.CaseSensitive
	}

	return nil
}

// decisions reads a decision configuration, unless file is empty. It must contain all settings that
// affect decisions, so that CI and this server decide alike; none of them may be given in addition to it.
func (a Reader) decisions(file string, into **term.Decisions, beside map[string]bool) (err error) {
	if file == "" {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(beside)) {
		if beside[field] {
			return fmt.Errorf("%s stands beside decisions: move it into %s, which CI reads too", field, file)
		}
	}
	*into, err = term.ReadDecisions(file, nil, a.Err)

	return err
}

func checkServeFile(d *document.Decoder, n *yamldoc.Node, f *serveFile) {
	oneStore(d, n)
	if len(f.Tenants) > 0 && (f.Name != DefaultTenant || len(f.Agents) > 0 || f.People != "" || len(f.MCP) > 0) {
		d.Wrong(n, "the file has tenants, and a tenant beside them", "everything of a tenant below tenants", "")
	}
}

// oneStore reports a file that sets both store and store_file.
func oneStore(d *document.Decoder, n *yamldoc.Node) {
	if n.Get("store") != nil && n.Get("store_file") != nil {
		d.Wrong(n, "store and store_file both say where the store is", "one of them", "")
	}
}
