package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/document"
)

// Flags are the flags of a command that set fields of its configuration.
type Flags struct {
	set    *pflag.FlagSet
	schema *document.Schema
	flags  map[string]*document.Schema // by path
}

// flagsOf adds the flags of a schema with the given names to a command.
func flagsOf(cmd *cobra.Command, name string, wanted func(flag string) bool) *Flags {
	f := &Flags{
		set:    cmd.Flags(),
		schema: schemaOf(name),
		flags:  map[string]*document.Schema{},
	}
	for path, field := range f.schema.Fields() {
		top := !strings.HasPrefix(path, "tenants.")
		if field.Flag == "" || !top || !wanted(field.Flag) {
			continue
		}
		f.flags[path] = field
		f.add(field)
		if len(field.Enum) > 0 {
			term.Offer(cmd, field.Flag, field.Enum...)
		}
	}

	return f
}

func (f *Flags) add(s *document.Schema) {
	switch {
	case s.Commas:
		f.set.StringSlice(s.Flag, nil, s.Description)
	case s.Type == "array":
		f.set.StringArray(s.Flag, nil, s.Description)
	case s.Type == "boolean":
		f.set.Bool(s.Flag, false, s.Description)
	case s.Format == "duration":
		standard, _ := time.ParseDuration(s.Default) // the table's own
		f.set.Duration(s.Flag, standard, s.Description)
	default:
		f.set.String(s.Flag, s.Default, s.Description)
	}
}

// given lists the paths of the flags that were given, in a fixed order.
func (f *Flags) given() []string {
	var out []string
	for path, s := range f.flags {
		if f.set.Changed(s.Flag) {
			out = append(out, path)
		}
	}
	slices.Sort(out)

	return out
}

// Put sets the fields of a configuration for which flags were given.
func (f *Flags) Put(config any) error { return f.put(config, f.given()) }

func (f *Flags) put(config any, paths []string) error {
	for _, path := range paths {
		into := document.Target(config)
		for _, step := range strings.Split(path, ".") {
			if into.Kind() == reflect.Pointer {
				if into.IsNil() {
					into.Set(reflect.New(into.Type().Elem()))
				}
				into = into.Elem()
			}

			into = document.Field(into, step)
		}

		if err := f.one(f.flags[path], into); err != nil {
			return err
		}
	}

	return nil
}

// one sets the field of one flag.
func (f *Flags) one(s *document.Schema, into reflect.Value) error {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if s.Type == "boolean" {
		on, err := f.set.GetBool(s.Flag)
		into.SetBool(on)

		return err
	}

	texts := []string{f.set.Lookup(s.Flag).Value.String()}
	if list, ok := f.set.Lookup(s.Flag).Value.(pflag.SliceValue); ok {
		texts = list.GetSlice()
		into.SetZero()
	}
	d := decoder("")
	for _, text := range texts {
		if problem, expected := d.Set(s, into, text); problem != "" {
			return fmt.Errorf("--%s: %q %s, expected %s", s.Flag, text, problem, expected)
		}
	}

	return nil
}

// ServeFlags are the flags of assent serve.
type ServeFlags struct {
	*Flags
	File string // --config
	RAP  *RAP   // what assent rap runtime adds to the one tenant
}

// NewServeFlags adds the flags of assent serve to a command.
func NewServeFlags(cmd *cobra.Command) *ServeFlags {
	return &ServeFlags{Flags: flagsOf(cmd, "serve", func(string) bool { return true })}
}

// NewSignInFlags adds only the flags of assent serve that configure how people sign in.
func NewSignInFlags(cmd *cobra.Command) *ServeFlags {
	return &ServeFlags{Flags: flagsOf(cmd, "serve", func(flag string) bool {
		return flag == "tenant" || flag == "public-url" || strings.HasPrefix(flag, "oidc-")
	})}
}

// NewGatewayFlags adds the flags of assent rap gateway to a command.
func NewGatewayFlags(cmd *cobra.Command) *Flags {
	return flagsOf(cmd, "gateway_file", func(flag string) bool { return flag == "listen" || flag == "decisions" })
}

// Serve combines the file and the flags, and checks the result.
func (a Reader) Serve(f *ServeFlags) (Serve, error) {
	cfg, err := a.Gather(f)
	if err != nil {
		return cfg, err
	}

	return cfg, cfg.check()
}

// Gather combines the file and the flags.
func (a Reader) Gather(f *ServeFlags) (Serve, error) {
	stored, filed := f.set.Changed("store"), f.set.Changed("store-file")
	if stored && filed {
		return Serve{}, ErrTwoStores
	}
	cfg, err := a.readServe(f.File)
	if err != nil {
		return cfg, err
	}
	if stored {
		cfg.StoreFile = ""
	}
	if err := f.over(&cfg); err != nil {
		return cfg, err
	}
	if f.RAP != nil {
		cfg.Tenants[0].RAP = f.RAP
	}
	for i := range cfg.Tenants {
		if err := a.Choices(&cfg.Tenants[i]); err != nil {
			return cfg, err
		}
	}
	cfg.LogText = a.ErrTerminal
	cfg.Store, err = a.whereStore(cfg.Store, cfg.StoreFile, stored || filed)

	return cfg, err
}

// over sets the fields for which flags were given. Flags of a tenant require that the configuration
// has only one tenant.
func (f *ServeFlags) over(cfg *Serve) error {
	var whole, one []string
	for _, path := range f.given() {
		first, _, _ := strings.Cut(path, ".")
		if document.Field(document.Target(cfg), first).IsValid() {
			whole = append(whole, path)
		} else {
			one = append(one, path)
		}
	}

	if len(one) > 0 && len(cfg.Tenants) != 1 {
		return fmt.Errorf(
			"--%s: the configuration has %d tenants, so say it there",
			f.flags[one[0]].Flag,
			len(cfg.Tenants),
		)
	}

	if err := f.put(cfg, whole); err != nil || len(one) == 0 {
		return err
	}
	file := serveFile{Tenant: cfg.Tenants[0], Name: cfg.Tenants[0].Name}
	err := f.put(&file, one)
	cfg.Tenants = file.tenants()

	return err
}
