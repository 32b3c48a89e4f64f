package config

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/config"
)

// TestContractSaysEveryField checks that the example configurations of docs/contracts/assent.md
// contain every field.
func TestContractSaysEveryField(t *testing.T) {
	text := testfiles.Contract(t, "assent.md")
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) != 3 {
		t.Fatalf("the contract shows %d configurations", len(examples))
	}
	gateway, err := Reader{
		Streams: term.Streams{Err: t.Output()},
	}.Gateway(testfiles.Write(t, filepath.Join(t.TempDir(), "gateway.yaml"), examples[2][1]), gatewayFlags())
	must.Do(t, err)
	said := map[string]bool{}
	fieldsSaid(said, reflect.ValueOf(gateway))
	delete(said, "Gateway.LogText")   // of the terminal
	delete(said, "Gateway.StoreFile") // as of a service
	delete(said, "Gateway.Decisions") // instead of policies, as of a service
	delete(said, "Gateway.Chosen")    // what its file says
	delete(said, "Gateway.Strict")    // a flag alone
	for i, example := range examples[:2] {
		var errs bytes.Buffer
		cfg, err := Reader{
			Streams: term.Streams{Err: &errs},
		}.readServe(testfiles.Write(t, filepath.Join(t.TempDir(), "serve.yaml"), example[1]))
		if err != nil {
			t.Fatalf("configuration %d: %v\n%s", i, err, errs.String())
		}
		fieldsSaid(said, reflect.ValueOf(cfg))
	}

	delete(said, "Serve.LogText")        // of the terminal
	delete(said, "Serve.Dev")            // false there
	delete(said, "Serve.Strict")         // a flag alone
	delete(said, "Serve.Personal")       // of an MCP gateway's inbox
	delete(said, "Tenant.Chosen")        // what its file says
	delete(said, "Tenant.AskUndeclared") // of an MCP gateway, as its file says
	delete(said, "Tenant.PermitAge")
	delete(said, "RAPOperation.ReadOnly")
	delete(said, "notify.Route.Target") // follows from where it stands
	delete(said, "notify.Route.Tenants")
	for field, ok := range said {
		if !ok {
			t.Errorf("no configuration of docs/contracts/assent.md sets %s", field)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)\b([a-z_]+): `).FindAllStringSubmatch(examples[1][1]+examples[2][1], -1) {
		if m[1] != "risk" && !regexp.MustCompile("`([a-z]+\\.)?"+m[1]+"`").MatchString(text) {
			t.Errorf("the field %s is not explained in docs/contracts/assent.md", m[1])
		}
	}
}

// gatewayFlags returns the flags of a gateway of which none was given.
func gatewayFlags() *Flags { return NewGatewayFlags(&cobra.Command{}) }

// fieldsSaid notes for every field below a value whether something is
// in it anywhere.
func fieldsSaid(said map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Map:
		for of := v.MapRange(); of.Next(); {
			fieldsSaid(said, of.Value())
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			fieldsSaid(said, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			fieldsSaid(said, v.Index(i))
		}
	case reflect.Struct:
		if v.Type().PkgPath() == reflect.TypeFor[config.Served]().PkgPath() {
			return // docs/contracts/mcp.md has these
		}
		for i := range v.NumField() {
			name := strings.TrimPrefix(v.Type().String(), "config.") + "." + v.Type().Field(i).Name
			said[name] = said[name] || !v.Field(i).IsZero()
			fieldsSaid(said, v.Field(i))
		}
	}
}
