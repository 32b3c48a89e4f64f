package schema

import (
	"encoding/json"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// mutants yields documents made from seeds, always the same ones in the
// same order: each seed, each seed with one place taken out or replaced
// by a third of the values (the next third at the next place), and then
// random ones with up to four changes. Documents are plain decoded JSON
// and may not be changed.
func mutants(seeds []any, names []string, random int) iter.Seq[any] {
	return func(yield func(any) bool) {
		values := values()
		for _, seed := range seeds {
			if !yield(seed) {
				return
			}
			for i, at := range places(seed) {
				for doc := range changes(seed, at, every(3, i, values)) {
					if !yield(doc) {
						return
					}
				}
			}
		}

		rng := rand.New(rand.NewPCG(2020, 12))
		for range random {
			if !yield(scramble(rng, seeds, names, values)) {
				return
			}
		}
	}
}

// values returns the values that replace a place: every type, the limits of every keyword, and
// small objects that are valid in some places and invalid in others.
func values() []any {
	texts := []string{
		"",
		"a",
		"A_1",
		"a-b",
		"-a",
		"_a",
		"9a",
		"a.b",
		"é",
		"a\n",
		"a b",
		"1.0.0",
		"1.0",
		"1.0.0\n",
		"1.0.0-rc1",
		"01.2.30",
		"٣.0.0",
		"9.9.9",
		"last",
		"first",
		"merge",
		"best",
		"object",
		"null",
		"inherit",
		"auto",
		"file",
		"agf.react",
		"agf.sequential",
		"agf.parallel",
		"agf.loop",
		"agf.batch",
		"agf.conditional",
		"agf.other",
		"x-v.p",
		"parent.input.x",
		"(",
	}
	numbers := []string{
		"0",
		"1",
		"-1",
		"1.0",
		"0.5",
		"2",
		"2.0",
		"2.0000001",
		"1e0",
		"1e300",
		"-0.0",
		"12345678901234567890123",
		"0.1e1",
	}
	shapes := []string{
		`{}`,
		`[]`,
		`[null]`,
		`[""]`,
		`["a"]`,
		`[1]`,
		`[true]`,
		`[{}]`,
		`[[]]`,
		`["a",1,false]`,
		`[{"a":1}]`,
		`{"a":"b"}`,
		`{"a":1}`,
		`{"a":null}`,
		`{"a":{}}`,
		`{"gt":1}`,
		`{"gt":"1"}`,
		`{"ne":[]}`,
		`{"in":[]}`,
		`{"in":[null]}`,
		`{"not_in":["a",2,true]}`,
		`{"eq":1}`,
		`{"pattern":1}`,
		`{"lt":1,"lte":2,"gte":0.5}`,
		`{"name":"n"}`,
		`{"name":""}`,
		`{"id":"i"}`,
		`{"id":"i","approval":null}`,
		`{"name":"n","approval":{"condition":[]}}`,
		`{"alias":"a"}`,
		`{"alias":"a","source":"s"}`,
		`{"alias":"a","source":""}`,
		`[{"alias":"a"},{"alias":"a"}]`,
		`{"policy_ref":"a.b-c"}`,
		`{"agent":"a"}`,
		`{"agent":""}`,
		`{"strategy":"last"}`,
		`{"strategy":"best"}`,
		`{"custom_transform":"f"}`,
		`{"agent":"a","strategy":"last"}`,
		`{"agent":"a","description":"d"}`,
		`{"description":"d"}`,
		`[{"agent":"a"}]`,
		`[{"agent":"a","input_mapping":{"x":1}}]`,
		`{"agent":"a","when":{}}`,
		`[{"agent":"a","when":[{}]}]`,
		`{"args_match":{}}`,
		`{"args_match":[]}`,
		`{"args_match":{"a":"b"}}`,
		`{"args_match":{"a":null}}`,
		`[{"args_match":{"a":{"gt":1}}}]`,
		`[{"args_match":{"a":[1]}}]`,
		`{"condition":{}}`,
		`{"condition":[]}`,
		`{"message_template":1}`,
		`{"message_template":""}`,
		`{"type":"object"}`,
		`{"type":"null"}`,
		`{"type":["string"]}`,
		`{"id":"agf.react","config":{"instructions":"i","model":"m"}}`,
		`{"id":"agf.react","config":{}}`,
		`{"id":"x","config":{}}`,
		`{"config":{}}`,
		`{"id":"agf.batch","config":{"agent":"a","input_mapping":{}}}`,
		`{"id":"agf.loop","config":{"steps":[{"agent":"a"}],"output_from":{}}}`,
	}
	all := []any{nil, true, false}
	for _, s := range texts {
		all = append(all, s)
	}
	for _, s := range numbers {
		all = append(all, json.Number(s))
	}
	for _, s := range shapes {
		all = append(all, decode([]byte(s)))
	}
	return all
}

// every returns each n-th value, starting at i.
func every(n, i int, values []any) []any {
	var some []any
	for i %= n; i < len(values); i += n {
		some = append(some, values[i])
	}
	return some
}

// changes yields the document with one place taken out, twice there,
// renamed, or replaced by each of the values.
func changes(doc any, at []string, values []any) iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, v := range values {
			if !yield(edit(doc, at, func(any) any { return v })) {
				return
			}
		}
		if len(at) > 0 {
			up, last := at[:len(at)-1], at[len(at)-1]
			_ = yield(edit(doc, up, without(last))) && yield(edit(doc, up, twice(last))) &&
				yield(edit(doc, up, misspelt(last)))
		}
	}
}

// scramble changes a random seed in up to four random places.
func scramble(rng *rand.Rand, seeds []any, names []string, values []any) any {
	doc := choose(rng, seeds)
	for range 1 + rng.IntN(4) {
		all := places(doc)
		at := choose(rng, all)
		switch rng.IntN(5) {
		case 0:
			doc = edit(doc, at, func(any) any { return choose(rng, values) })
		case 1: // something that is right in another place or file
			donor := choose(rng, seeds)
			graft := get(donor, choose(rng, places(donor)))
			doc = edit(doc, at, func(any) any { return graft })
		case 2: // a known name with some value
			doc = edit(doc, at, with(choose(rng, names), choose(rng, values)))
		case 3:
			if len(at) > 0 {
				doc = edit(doc, at[:len(at)-1], without(at[len(at)-1]))
			}
		case 4:
			doc = edit(doc, at, func(old any) any { return []any{old} })
		}
	}

	return doc
}

func choose[T any](rng *rand.Rand, all []T) T { return all[rng.IntN(len(all))] }

// places lists the paths to every value of a document, in a fixed order.
func places(doc any) [][]string {
	all := [][]string{{}}
	below := func(step string, v any) {
		for _, p := range places(v) {
			all = append(all, append([]string{step}, p...))
		}
	}
	switch doc := doc.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(doc)) {
			below(key, doc[key])
		}
	case []any:
		for i, v := range doc {
			below(strconv.Itoa(i), v)
		}
	}

	return all
}

func get(doc any, at []string) any {
	for _, step := range at {
		switch d := doc.(type) {
		case map[string]any:
			doc = d[step]
		case []any:
			i, _ := strconv.Atoi(step)
			doc = d[i]
		}
	}

	return doc
}

// edit returns the document with one place changed, sharing the rest.
func edit(doc any, at []string, change func(any) any) any {
	if len(at) == 0 {
		return change(doc)
	}
	switch d := doc.(type) {
	case map[string]any:
		d = maps.Clone(d)
		d[at[0]] = edit(d[at[0]], at[1:], change)
		return d
	case []any:
		d = slices.Clone(d)
		i, _ := strconv.Atoi(at[0])
		d[i] = edit(d[i], at[1:], change)
		return d
	}

	return doc
}

// with returns a change that adds a field to an object.
func with(name string, v any) func(any) any {
	return func(old any) any {
		object, ok := old.(map[string]any)
		if !ok {
			return old
		}
		object = maps.Clone(object)
		object[name] = v
		return object
	}
}

// without returns a change that takes a field or item out.
func without(step string) func(any) any {
	return func(old any) any {
		switch d := old.(type) {
		case map[string]any:
			d = maps.Clone(d)
			delete(d, step)
			return d
		case []any:
			i, _ := strconv.Atoi(step)
			return slices.Delete(slices.Clone(d), i, i+1)
		}

		return old
	}
}

// twice returns a change that repeats an item, or a field under the
// name of an extension.
func twice(step string) func(any) any {
	return func(old any) any {
		switch d := old.(type) {
		case map[string]any:
			return with("x-"+step, d[step])(d)
		case []any:
			i, _ := strconv.Atoi(step)
			return append(slices.Clone(d), d[i])
		}

		return old
	}
}

// misspelt returns a change that writes a field's name wrong.
func misspelt(step string) func(any) any {
	return func(old any) any {
		object, ok := old.(map[string]any)
		if !ok {
			return old
		}
		value := object[step]
		return with(step+"s", value)(without(step)(object))
	}
}
