package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

func contract(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "contracts", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firstCells lists the first column of every table row that holds code in back-quotes.
func firstCells(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`[^|]*\\|").FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestContractsNameEveryFlag(t *testing.T) {
	checkFlags(t, "agf-validate.md", Validate{}.command().Flags().FlagUsages())
	checkFlags(t, "decide.md", Assent{}.decideCommand().Flags().FlagUsages())
}

// checkFlags compares the flags of a usage text with the rows of a contract.
func checkFlags(t *testing.T, page, usages string) {
	t.Helper()
	rows := firstCells(contract(t, page))
	flags := regexp.MustCompile(`--[a-z-]+`).FindAllString(usages, -1)
	for _, f := range flags {
		if !slices.ContainsFunc(rows, func(r string) bool { return r == f || strings.HasPrefix(r, f+" ") }) {
			t.Errorf("%s is not in docs/contracts/%s", f, page)
		}
	}
	for _, row := range rows {
		if name, _, _ := strings.Cut(row, " "); strings.HasPrefix(name, "--") && !slices.Contains(flags, name) {
			t.Errorf("docs/contracts/%s promises %s, which is no flag", page, name)
		}
	}
}

func TestValidateContractNamesEveryFormat(t *testing.T) {
	text := contract(t, "agf-validate.md")
	for _, format := range diag.Formats() {
		if !strings.Contains(text, "`"+format+"`") {
			t.Errorf("format %s is not in the contract", format)
		}
	}
}

// TestValidateContractNamesEveryField: every field of the JSON format has its row.
func TestValidateContractNamesEveryField(t *testing.T) {
	agent := write(t, filepath.Join(t.TempDir(), "a.agf.yaml"), agentText+"metadatas: {}\nx: 1 # agf-validate: ignore unknown-field -- a test\n")
	twice := write(t, filepath.Join(t.TempDir(), "b.agf.yaml"), strings.Replace(agentText, "alias: quote", "alias: trade", 1))
	var out bytes.Buffer
	if code := (Validate{Streams: Streams{Out: &out, Err: &out}}).Run([]string{"--format", "json", agent, twice}); code != ExitFindings {
		t.Fatalf("exit %d\n%s", code, out.String())
	}
	text := contract(t, "agf-validate.md")
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(out.String(), -1) {
		seen[m[1]] = true
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("the field %s is not in docs/contracts/agf-validate.md", m[1])
		}
	}
	for _, field := range []string{"nearest", "stops", "related", "suppressed", "reason", "end_column"} {
		if !seen[field] {
			t.Errorf("nothing here has the field %s\n%s", field, out.String())
		}
	}
}

func TestDecideContractNamesEveryCode(t *testing.T) {
	rows := firstCells(contract(t, "decide.md"))
	for _, code := range []resolve.Code{
		resolve.Always, resolve.ConditionTrue, resolve.ConditionUnknown, resolve.AllowListMisspelt, resolve.NotDeclared, resolve.NotAllowed,
		resolve.Denied, resolve.PolicyUnresolved, resolve.UnreadableArguments, resolve.UnreadableCall,
	} {
		if !slices.Contains(rows, string(code)) {
			t.Errorf("code %s is not in docs/contracts/decide.md", code)
		}
	}
}

// TestPolicyContract: the page names every field of the JSON Schema, and its example is clean.
func TestPolicyContract(t *testing.T) {
	text := contract(t, "policy.md")
	var walk func(node any)
	walk = func(node any) {
		fields, _ := node.(map[string]any)
		properties, _ := fields["properties"].(map[string]any)
		for name := range properties {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the field %s is not in docs/contracts/policy.md", name)
			}
		}
		for _, child := range fields {
			walk(child)
		}
	}
	var root any
	if err := json.Unmarshal(policy.JSON(), &root); err != nil {
		t.Fatal(err)
	}
	walk(root)
	_, after, _ := strings.Cut(text, "```yaml\n")
	example, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the contract shows no policy")
	}
	var out bytes.Buffer
	path := write(t, filepath.Join(t.TempDir(), "p.policy.yaml"), example)
	if code := (Validate{Streams: Streams{Out: &out, Err: &out}}).Run([]string{"--fail-on", "info", path}); code != ExitOK {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

// TestDecideContractCalls: the calls that the contract shows are calls, and every field of its table is read.
func TestDecideContractCalls(t *testing.T) {
	text := contract(t, "decide.md")
	_, after, ok := strings.Cut(text, "```json\n")
	calls, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the contract shows no calls")
	}
	for _, line := range strings.Split(strings.TrimSpace(calls), "\n") {
		if _, err := resolve.ParseCall([]byte(line), value.Limits{}); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	fields, _, _ := strings.Cut(text[strings.Index(text, "## Call"):], "## Decision")
	for _, cell := range firstCells(fields) {
		_, err := resolve.ParseCall([]byte(`{"kind":"tool","tool":"x","`+cell+`":"x"}`), value.Limits{})
		if err != nil && strings.Contains(err.Error(), "unknown field") {
			t.Errorf("the contract promises the field %s: %v", cell, err)
		}
	}
}

// TestExplainKnowsEveryRule: each rule has a page, and the semantics have theirs.
func TestExplainKnowsEveryRule(t *testing.T) {
	var list bytes.Buffer
	if code := (Validate{Streams: Streams{Out: &list, Err: &list}}).Run([]string{"rules"}); code != ExitOK {
		t.Fatalf("exit %d: %s", code, list.String())
	}
	lines := strings.Split(strings.TrimSpace(list.String()), "\n")
	if len(lines) < 40 {
		t.Fatalf("only %d rules", len(lines))
	}
	for _, line := range lines {
		id := strings.Fields(line)[0]
		var out, errOut bytes.Buffer
		if code := (Validate{Streams: Streams{Out: &out, Err: &errOut}}).Run([]string{"explain", id}); code != ExitOK || !strings.HasPrefix(out.String(), id+" (") {
			t.Errorf("explain %s: exit %d, %q %q", id, code, out.String(), errOut.String())
		}
		for _, line := range strings.Split(out.String(), "\n")[1:] {
			prose := strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "    ")
			if prose && utf8.RuneCountInString(line) > 80 {
				t.Errorf("explain %s does not fit 80 columns: %s", id, line)
			}
		}
	}
	var out bytes.Buffer
	if code := (Validate{Streams: Streams{Out: &out}}).Run([]string{"explain", "semantics"}); code != ExitOK || !strings.Contains(out.String(), "OnMissing") {
		t.Errorf("explain semantics: %s", out.String())
	}
	var errOut bytes.Buffer
	if code := (Validate{Streams: Streams{Out: &out, Err: &errOut}}).Run([]string{"explain", "unknown-feild"}); code != ExitFailure || !strings.Contains(errOut.String(), "unknown-field") {
		t.Errorf("a near miss: exit %d, %s", code, errOut.String())
	}
	if code := (Validate{Streams: Streams{Out: &out, Err: &errOut}}).Run([]string{"explain", "zzzzzz"}); code != ExitFailure {
		t.Errorf("an unknown rule: exit %d", code)
	}
}

func TestSchemaCommand(t *testing.T) {
	for _, kind := range []string{"agent", "policy", "people"} {
		var out bytes.Buffer
		if code := (Validate{Streams: Streams{Out: &out}}).Run([]string{"schema", kind}); code != ExitOK || !strings.Contains(out.String(), "https://json-schema.org/draft/2020-12/schema") {
			t.Errorf("schema %s: exit %d, %.80s", kind, code, out.String())
		}
	}
}

// TestAssentContract: the page names every command with every flag of its, and its configurations say every field.
func TestAssentContract(t *testing.T) {
	text := contract(t, "assent.md")
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			walk(child)
		}
		if !cmd.Runnable() || cmd.HasSubCommands() || cmd.Name() == "decide" {
			return
		}
		usage := regexp.MustCompile("(?m)^" + cmd.CommandPath() + "( .*)?$").FindString(text)
		if slices.Contains([]string{"serve", "runtime", "check"}, cmd.Name()) {
			usage += strings.Join(firstCells(text), "\n")
		}
		for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
			common := slices.Contains([]string{"server", "token-file", "json", "help"}, m[1])
			if usage == "" || !common && !regexp.MustCompile(`--`+m[1]+`\b`).MatchString(usage) {
				t.Errorf("%s --%s is not in docs/contracts/assent.md", cmd.CommandPath(), m[1])
			}
		}
	}
	walk(Assent{}.command())

	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(examples) != 3 {
		t.Fatalf("the contract shows %d configurations", len(examples))
	}
	gateway, err := Assent{Streams: Streams{Err: t.Output()}}.readGatewayConfig(write(t, filepath.Join(t.TempDir(), "gateway.yaml"), examples[2][1]))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	fieldsSaid(said, reflect.ValueOf(gateway))
	delete(said, "GatewayConfig.LogText")   // of the terminal
	delete(said, "GatewayConfig.StoreFile") // as of a service
	for i, example := range examples[:2] {
		var errs bytes.Buffer
		cfg, err := Assent{Streams: Streams{Err: &errs}}.readServeConfig(write(t, filepath.Join(t.TempDir(), "serve.yaml"), example[1]))
		if err != nil {
			t.Fatalf("configuration %d: %v\n%s", i, err, errs.String())
		}
		fieldsSaid(said, reflect.ValueOf(cfg))
	}
	delete(said, "ServeConfig.LogText") // of the terminal
	delete(said, "ServeConfig.Dev")     // false there
	delete(said, "RAPOperationConfig.ReadOnly")
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

// fieldsSaid notes for every field below a value whether something is in it anywhere.
func fieldsSaid(said map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fieldsSaid(said, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			fieldsSaid(said, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			said[name] = said[name] || !v.Field(i).IsZero()
			fieldsSaid(said, v.Field(i))
		}
	}
}
