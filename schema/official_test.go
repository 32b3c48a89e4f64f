package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// The official schema is available, next to the repository, only on machines that may use it. Its
// verdicts on every document of the test are recorded, so that the comparison runs everywhere.
const (
	officialFile = "../../shared/agentformat-schema.json"
	verdictsFile = "testdata/official-verdicts.golden"
	witnessFile  = "testdata/official-witnesses.golden"
	namesFile    = "testdata/official-names.golden"
)

// TestOfficialVerdicts is the differential test: our JSON Schema
// accepts and rejects exactly what the official one does. It compares
// 500 documents, and all of them if ASSENT_DOCUMENTS is "all", as in
// make long, or if the recorded verdicts are updated.
func TestOfficialVerdicts(t *testing.T) {
	official, ok := officialSchema(t)
	corpus := documents(t)
	if len(corpus.docs) < 20_000 {
		t.Errorf("only %d documents, want at least 20,000", len(corpus.docs))
	}
	chosen := shuffled(len(corpus.docs))
	if os.Getenv("ASSENT_DOCUMENTS") != "all" && !(ok && golden.Update()) {
		chosen = chosen[:500]
	}
	docs := pick(corpus.docs, chosen)

	ours := judge(compiled(), docs)
	if ok {
		verdicts := judge(official, docs)
		if golden.Update() {
			writeVerdicts(t, corpus, reorder(verdicts, chosen))
		}
		compare(t, "the official schema", docs, ours, verdicts)
	}

	compare(t, "the recorded verdicts of the official schema", docs, ours, pick(readVerdicts(t, corpus), chosen))

	accepted := 0
	for _, v := range ours {
		if v {
			accepted++
		}
	}
	t.Logf("%d of %d distinct documents, %d accepted, %d rejected; official schema beside the repository: %v",
		len(docs), len(corpus.docs), accepted, len(docs)-accepted, ok)
	if accepted < len(docs)/5 || accepted > len(docs)*4/5 {
		t.Errorf("%d of %d documents accepted: one side is hardly tested", accepted, len(docs))
	}
}

// pick returns the elements of all at the chosen indexes.
func pick[T any](all []T, chosen []int) []T {
	out := make([]T, len(chosen))
	for i, at := range chosen {
		out[i] = all[at]
	}
	return out
}

// reorder undoes pick.
func reorder[T any](picked []T, chosen []int) []T {
	out := make([]T, len(picked))
	for i, at := range chosen {
		out[at] = picked[i]
	}
	return out
}

// TestParseKeepsTheVerdict writes mutants out as JSON and reads them:
// what the official schema rejects gives no agent, and what it accepts
// gives one unless a rule stops it that no JSON Schema can see.
func TestParseKeepsTheVerdict(t *testing.T) {
	corpus := documents(t)
	want := readVerdicts(t, corpus)
	unseen := []string{ruleDuplicateAlias, ruleUnsupportedVersion, "regex-invalid"}
	read, stopped := 0, 0
	for i := 0; i < len(corpus.docs); i += 11 {
		agent, findings := Parse("mutant", encode(t, corpus.docs[i]))
		switch {
		case agent != nil:
			read++
		case want[i]:
			stopped++
		}

		byRule := slices.ContainsFunc(findings, func(f diag.Finding) bool {
			return f.Stops && slices.Contains(unseen, f.Rule)
		})
		if agent != nil && !want[i] || agent == nil && want[i] && !byRule {
			t.Errorf(
				"official verdict %v, agent read %v: %s\n%s",
				want[i],
				agent != nil,
				encode(t, corpus.docs[i]),
				render(findings),
			)
		}
	}

	t.Logf("%d mutants read, %d stopped by rules beyond the JSON Schema", read, stopped)
	if read == 0 || stopped == 0 {
		t.Error("one side is not tested")
	}
}

// TestVerdictsNeedEveryKeyword takes each keyword out of our schema,
// one after the other. For each the differential test must hold a
// document, its witness, whose verdict changes: else that test would
// not have noticed the absence. Witnesses are looked for with -update
// and kept in testdata.
// Fields that the official schema does not have, such as operators that
// it does not know, are in no document.
func TestVerdictsNeedEveryKeyword(t *testing.T) {
	corpus := documents(t)
	docs, want := corpus.docs, readVerdicts(t, corpus)
	witnesses := map[string]int{}
	must.Do(t, json.Unmarshal(readFile(t, witnessFile), &witnesses))
	found := map[string]int{}
	tried := 0
	for keyword, weaker := range weakened(t) {
		tried++
		differs := func(i int) bool { return (weaker.Validate(docs[i]) == nil) != want[i] }
		i, ok := witnesses[keyword]
		ok = ok && i < len(docs) && differs(i)
		if !ok && golden.Update() {
			order := shuffled(len(docs))
			if at := slices.IndexFunc(order, differs); at >= 0 {
				i, ok = order[at], true
			}
		}
		if !ok {
			t.Errorf("no document notices that %s is gone", keyword)
			continue
		}
		found[keyword] = i
	}

	t.Logf("%d keywords taken out", tried)
	if tried < 350 {
		t.Errorf("only %d keywords tried", tried)
	}
	if golden.Update() {
		text, err := json.MarshalIndent(found, "", "  ")
		must.Do(t, err)
		writeFile(t, witnessFile, append(text, '\n'))
	}
}

// weakened yields our schema without one of its keywords, by the place
// of the keyword.
func weakened(t *testing.T) iter.Seq2[string, *jsonschema.Schema] {
	return func(yield func(string, *jsonschema.Schema) bool) {
		whole := decode([]byte(agentSchema))
		names := must.Get(knownNames())(t)
		for _, at := range places(whole) {
			if !asserts(at) || beyond(at, names) {
				continue
			}
			list, ok := get(whole, at[:len(at)-1]).([]any)
			if ok && len(list) == 1 && at[len(at)-2] != "required" {
				continue // would leave an invalid keyword: an empty enum, oneOf or allOf
			}
			text := encode(t, edit(whole, at[:len(at)-1], without(at[len(at)-1])))
			// Embedded doesn't validate our own schema against the meta-schemas again, which takes most of the time.
			if !yield("/"+strings.Join(at, "/"), jsonschema.Embedded("weaker.json", string(text))()) {
				return
			}
		}
	}
}

// beyond reports whether a place belongs to a field that the official
// schema does not have.
func beyond(at, names []string) bool {
	for i := range at {
		if i > 0 && at[i-1] == "properties" && !slices.Contains(names, at[i]) {
			return true
		}
	}
	return false
}

// asserts reports whether the place of our schema is a keyword, or an
// item of one, that can reject something.
func asserts(at []string) bool {
	if len(at) == 0 || slices.Contains(at, "if") {
		return false // of an if: without `required` a missing id is reported seven times, but rejected all the same
	}
	up, last := "", at[len(at)-1]
	if len(at) > 1 {
		up = at[len(at)-2]
	}
	switch {
	case up == "properties":
		return true
	case up == "$defs":
		return false
	case up == "required", up == "enum", up == "oneOf", up == "allOf":
		return last[0] <= '9'
	}

	keywords := []string{
		"type",
		"required",
		"minLength",
		"minimum",
		"maximum",
		"minItems",
		"pattern",
		"enum",
		"additionalProperties",
		"items",
		"$ref",
		"oneOf",
		"then",
	}
	return slices.Contains(keywords, last)
}

// shuffled returns 0…n-1 in a fixed order that jumps about, so that a
// difference is met soon.
func shuffled(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i * 7919 % n
	}
	return order
}

// corpus is the input of the differential test: distinct documents and a digest of them all.
type corpus struct {
	docs   []any
	digest string
}

// documents makes the distinct mutants of testdata/good, once.
func documents(t testing.TB) corpus {
	t.Helper()
	c, err := mutated()
	must.Do(t, err)
	return c
}

var mutated = sync.OnceValues(func() (corpus, error) {
	files, err := filepath.Glob("testdata/good/*.agf.yaml")
	if err != nil || len(files) == 0 {
		return corpus{}, fmt.Errorf("no seeds: %w", err)
	}
	var seeds []any
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return corpus{}, fmt.Errorf("read seed: %w", err)
		}
		doc, findings := yamldoc.Parse(file, src, yamldoc.Limits{})
		if doc == nil {
			return corpus{}, fmt.Errorf("seed %s: %v", file, findings)
		}
		seeds = append(seeds, doc.Root.Any())
	}

	names, err := knownNames()
	if err != nil {
		return corpus{}, err
	}
	seen := map[[32]byte]bool{}
	var c corpus
	all := sha256.New()
	for doc := range mutants(seeds, names, 10_000) {
		text, err := json.Marshal(doc)
		if err != nil {
			return corpus{}, fmt.Errorf("mutant: %w", err)
		}
		if sum := sha256.Sum256(text); !seen[sum] {
			seen[sum] = true
			c.docs = append(c.docs, doc)
			all.Write(sum[:])
		}
	}

	c.digest = fmt.Sprintf("sha256:%x", all.Sum(nil))
	return c, nil
})

// knownNames are the names of all fields of the official schema,
// sorted. They are recorded, so that the documents stay the same when
// our schema says more than the official one, as a new operator does.
func knownNames() ([]string, error) {
	text, err := os.ReadFile(namesFile)
	return strings.Fields(string(text)), err
}

// propertyNames are the names of all fields of a JSON Schema, sorted.
func propertyNames(schema any) []string {
	names := map[string]bool{}
	for _, at := range places(schema) {
		if len(at) > 1 && at[len(at)-2] == "properties" {
			names[at[len(at)-1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func judge(s *jsonschema.Schema, docs []any) []bool {
	verdicts := make([]bool, len(docs))
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		workers.Go(func() {
			for i := w; i < len(docs); i += n {
				verdicts[i] = s.Validate(docs[i]) == nil
			}
		})
	}

	workers.Wait()
	return verdicts
}

func compare(t *testing.T, name string, docs []any, ours, theirs []bool) {
	t.Helper()
	wrong := 0
	for i := range docs {
		if ours[i] == theirs[i] {
			continue
		}
		if wrong++; wrong <= 5 {
			t.Errorf(
				"we say valid=%v, %s says %v: %s\n%v",
				ours[i],
				name,
				theirs[i],
				encode(t, docs[i]),
				compiled().Validate(docs[i]),
			)
		}
	}

	if wrong > 0 {
		t.Errorf("%d disagreements with %s", wrong, name)
	}
}

func officialSchema(t *testing.T) (*jsonschema.Schema, bool) {
	t.Helper()
	text, err := os.ReadFile(officialFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	must.Do(t, err)
	names := strings.Join(propertyNames(decode(text)), "\n") + "\n"
	if golden.Update() {
		writeFile(t, namesFile, []byte(names))
	} else if names != string(readFile(t, namesFile)) {
		t.Errorf("%s lists other names than the official schema", namesFile)
	}
	s, err := jsonschema.Compile("official.json", text)
	must.Do(t, err)
	return s, true
}

// record is the recorded official verdicts: one bit for each document, and the digest of the
// documents.
type record struct {
	Documents int    `json:"documents"`
	Digest    string `json:"digest"`
	Verdicts  string `json:"verdicts"` // base64, least significant bit first, 1 is valid
}

func writeVerdicts(t *testing.T, c corpus, verdicts []bool) {
	t.Helper()
	bits := make([]byte, (len(verdicts)+7)/8)
	for i, v := range verdicts {
		if v {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	text, err := json.MarshalIndent(record{len(c.docs), c.digest, base64.StdEncoding.EncodeToString(bits)}, "", "  ")
	must.Do(t, err)
	writeFile(t, verdictsFile, append(text, '\n'))
}

func readVerdicts(t *testing.T, c corpus) []bool {
	t.Helper()
	var r record
	must.Do(t, json.Unmarshal(readFile(t, verdictsFile), &r))
	if r.Documents != len(c.docs) || r.Digest != c.digest {
		t.Fatalf(
			"%s is about %d other documents, not these %d: testdata/good, %s or the mutations changed, whose verdicts "+
				"only the official schema (%s) can give",
			verdictsFile,
			r.Documents,
			len(c.docs),
			namesFile,
			officialFile,
		)
	}

	bits, err := base64.StdEncoding.DecodeString(r.Verdicts)
	must.Do(t, err)
	verdicts := make([]bool, len(c.docs))
	for i := range verdicts {
		verdicts[i] = bits[i/8]>>(i%8)&1 == 1
	}
	return verdicts
}

func decode(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

// tester has the methods that helpers need of a test, a benchmark, a fuzz target or a property.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func encode(t tester, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must.Do(t, err)
	return text
}

func readFile(t tester, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	must.Do(t, err)
	return text
}

func writeFile(t tester, name string, text []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(name, text, 0o644))
}
