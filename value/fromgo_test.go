package value

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFromGo(t *testing.T) {
	for _, tt := range []struct {
		in   any
		want string
	}{
		{nil, `null`},
		{true, `true`},
		{"é", `"é"`},
		{json.Number("1.50"), `1.50`},
		{int(-1), `-1`},
		{int8(-8), `-8`},
		{int16(-16), `-16`},
		{int32(-32), `-32`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{uint(1), `1`},
		{uint8(8), `8`},
		{uint16(16), `16`},
		{uint32(32), `32`},
		{uint64(math.MaxUint64), `18446744073709551615`},
		{uintptr(5), `5`},
		{float32(0.1), `0.1`},
		{0.1, `0.1`},
		{1e21, `1000000000000000000000`},
		{20000.0, `20000`},
		{-0.5, `-0.5`},
		{[]any{1, nil, []any{}}, `[1,null,[]]`},
		{map[string]any{"b": 1, "a": map[string]any{}}, `{"a":{},"b":1}`},
		{json.RawMessage(`{"b": 1.0}`), `{"b":1.0}`},
		{[]any{json.RawMessage(` "x" `)}, `["x"]`},
		{Value{Kind: Array, Items: []Value{{Kind: Bool}}}, `[false]`},
		{[]any(nil), `null`},
		{map[string]any(nil), `null`},
		{json.RawMessage(nil), `null`},
	} {
		v, err := FromGo(tt.in, Limits{})
		if got := string(v.AppendJSON(nil)); err != nil || got != tt.want {
			t.Errorf("%#v: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
		var b ShapeBuilder
		b.Add()
		var sc Scratch
		if err := b.Build().Fill(tt.in, Limits{}, &sc); err != nil || sc.Top != v.Kind {
			t.Errorf("%#v: Fill: %v, %v", tt.in, sc.Top, err)
			continue
		}
		sameSlot(t, fmt.Sprintf("%#v", tt.in), sc.Slots[0], v)
	}
}

func TestGoValuesRefused(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	shared := []any{1}
	for range 40 {
		shared = []any{shared, shared}
	}
	var typedNil *int
	member := func(key string) Member { return Member{key, Value{Kind: Null}} }
	for _, tt := range []struct {
		name    string
		in      any
		lim     Limits
		code    ErrorCode
		message string
	}{
		{"struct", struct{}{}, Limits{}, UnsupportedType, "a Go struct {} is no JSON value"},
		{"pointer", []any{1, typedNil}, Limits{}, UnsupportedType, "at 1: a Go *int is no JSON value"},
		{
			"named type",
			map[string]any{"a": map[string]any{"b.c": json.Token("x"), "d": Kind(1)}},
			Limits{},
			UnsupportedType,
			"at a.d: a Go value.Kind is no JSON value",
		},
		{"bytes", []byte("{}"), Limits{}, UnsupportedType, "a Go []uint8 is no JSON value"},
		{"other map", map[any]any{}, Limits{}, UnsupportedType, "a Go map[interface {}]interface {} is no JSON value"},
		{
			"NaN",
			map[string]any{"amount": math.NaN()},
			Limits{},
			NumberRange,
			"at amount: NaN is no JSON number, use a string or nil",
		},
		{"infinity", []any{math.Inf(-1)}, Limits{}, NumberRange, "at 0: -Inf is no JSON number, use a string or nil"},
		{"small infinity", float32(math.Inf(1)), Limits{}, NumberRange, "+Inf is no JSON number, use a string or nil"},
		{
			"json.Number",
			json.Number("0x10"),
			Limits{},
			TrailingData,
			"expected the end of the number, found 'x' in a json.Number",
		},
		{
			"empty json.Number",
			json.Number(""),
			Limits{},
			Syntax,
			"expected a digit, found the end of the text in a json.Number",
		},
		{
			"json.Number overflow",
			json.Number("1e400"),
			Limits{},
			NumberRange,
			"no double holds a number of this size, write one between 5e-324 and 1.7e308 or a string in a json.Number",
		},
		{"text", []any{map[string]any{"a": "x\xff"}}, Limits{}, InvalidUTF8, "at 0.a: the text is not valid UTF-8"},
		{"long text", strings.Repeat("é", 20) + "\xc3", Limits{}, InvalidUTF8, "the text is not valid UTF-8"},
		{
			"key",
			map[string]any{"o": map[string]any{"\xff": 1}},
			Limits{},
			InvalidUTF8,
			`at o: key "\xff" is not valid UTF-8`,
		},
		{
			"raw message",
			[]any{json.RawMessage(`{"a":1,"a":2}`)},
			Limits{},
			DuplicateKey,
			`at 0: line 1, column 8: duplicate key "a" (first at column 2)`,
		},
		{
			"empty raw message",
			json.RawMessage{},
			Limits{},
			Syntax,
			"line 1, column 1: expected a value, found the end of the text",
		},
		{
			"deep raw message",
			[]any{json.RawMessage(`[[1]]`)},
			Limits{MaxDepth: 2},
			TooDeep,
			"at 0: line 1, column 2: arrays and objects are nested deeper than 2 levels",
		},
		{
			"raw message at the deepest",
			[]any{json.RawMessage(`[]`)},
			Limits{MaxDepth: 1},
			TooDeep,
			"at 0: line 1, column 1: arrays and objects are nested deeper than 1 levels",
		},
		{"large raw message", json.RawMessage(`"123456789"`), Limits{MaxBytes: 8}, TooLarge, "more than 8 bytes"},
		{
			"raw message of many values",
			[]any{
				json.RawMessage("[" + strings.Repeat("1,", 4000) + "1]"),
				json.RawMessage("[" + strings.Repeat("1,", 4000) + "1]"),
			},
			Limits{MaxBytes: 30_000},
			TooLarge,
			"more than 4096 values",
		},
		{
			"loop",
			loop,
			Limits{MaxDepth: 3},
			TooDeep,
			"at self.self.self: arrays and objects are nested deeper than 3 levels",
		},
		{"loop of lists", func() any {
			l := []any{nil}
			l[0] = l
			return l
		}(), Limits{MaxDepth: 2}, TooDeep, "at 0.0: arrays and objects are nested deeper than 2 levels"},
		{"shared parts", shared, Limits{MaxBytes: 40_000}, TooLarge, "more than 5000 values"},
		{"large text", []any{"1234", "5678"}, Limits{MaxBytes: 9}, TooLarge, "more than 9 bytes"},
		{"large key", map[string]any{"123456789": nil}, Limits{MaxBytes: 9}, TooLarge, "more than 9 bytes"},
		{"many lists", []any{[]any{}, []any{}}, Limits{MaxBytes: 2}, TooLarge, "more than 2 bytes"},
		{"many maps", []any{map[string]any{}, map[string]any{}}, Limits{MaxBytes: 2}, TooLarge, "more than 2 bytes"},
		{"many scalars", []any{nil, true, 1}, Limits{MaxBytes: 3}, TooLarge, "more than 3 bytes"},
		{
			"absent Value",
			map[string]any{"v": Value{}},
			Limits{},
			UnsupportedType,
			"at v: a Value of kind absent is no JSON",
		},
		{"Value of no kind", Value{Kind: 99}, Limits{}, UnsupportedType, "a Value of kind unknown is no JSON"},
		{
			"Value with a bad text",
			Value{Kind: Array, Items: []Value{{Kind: String, Text: "\xff"}}},
			Limits{},
			InvalidUTF8,
			"at 0: the text is not valid UTF-8",
		},
		{
			"Value with a bad key",
			Value{Kind: Object, Members: []Member{member("\xff")}},
			Limits{},
			InvalidUTF8,
			`key "\xff" is not valid UTF-8`,
		},
		{
			"Value with a bad member",
			Value{Kind: Object, Members: []Member{{"a", Value{}}}},
			Limits{},
			UnsupportedType,
			"at a: a Value of kind absent is no JSON",
		},
		{
			"Value with a duplicate",
			Value{Kind: Object, Members: []Member{member("b"), member("a"), member("b")}},
			Limits{},
			DuplicateKey,
			`duplicate key "b"`,
		},
		{
			"deep Value",
			Value{Kind: Array, Items: []Value{{Kind: Array}}},
			Limits{MaxDepth: 1},
			TooDeep,
			"at 0: arrays and objects are nested deeper than 1 levels",
		},
		{
			"large Value",
			Value{Kind: Array, Items: []Value{{Kind: Null}, {Kind: Null}}},
			Limits{MaxBytes: 2},
			TooLarge,
			"more than 2 bytes",
		},
		{"long path", map[string]any{strings.Repeat("k", 100): map[string]any{"x": Kind(1)}}, Limits{}, UnsupportedType,
			"at " + strings.Repeat("k", 64) + "….x: a Go value.Kind is no JSON value"},
		{
			"forging path",
			map[string]any{"a\nb": Kind(1)},
			Limits{},
			UnsupportedType,
			`at "a\nb": a Go value.Kind is no JSON value`,
		},
		// The reported error does not depend on map iteration order.
		{"several", map[string]any{
			"z": "\xff",
			"b": math.NaN(),
			"c": struct{}{},
			"y": "\xff",
			"x": "\xff",
		}, Limits{}, NumberRange, "at b: NaN is no JSON number, use a string or nil"},
	} {
		v, err := FromGo(tt.in, tt.lim)
		wantError(t, tt.name+", FromGo", err, tt.code, tt.message)
		if v.Kind != Absent {
			t.Errorf("%s: FromGo returned a value beside the error", tt.name)
		}
		for range 5 {
			wantError(t, tt.name+", Fill", anything.Fill(tt.in, tt.lim, &Scratch{}), tt.code, tt.message)
		}
	}
}

// goValue returns v as encoding/json would decode it, with other Go types mixed in.
func goValue(t *rapid.T, v Value) any {
	if rapid.IntRange(0, 9).Draw(t, "as is") == 0 {
		return v
	}
	switch v.Kind {
	case Bool:
		return v.Bool
	case Number:
		f, _ := json.Number(v.Num.String()).Float64()
		switch rapid.IntRange(0, 3).Draw(t, "number") {
		case 0:
			return f
		case 1:
			return int(int32(f))
		}

		return json.Number(v.Num.String())
	case String:
		return v.Text
	case Array:
		list := []any{}
		for _, item := range v.Items {
			list = append(list, goValue(t, item))
		}
		return list
	case Object:
		if rapid.IntRange(0, 4).Draw(t, "raw") == 0 {
			return json.RawMessage(v.AppendJSON(nil))
		}
		m := map[string]any{}
		for _, member := range v.Members {
			m[member.Key] = goValue(t, member.Value)
		}
		return m
	}

	return nil
}

func TestFillAgreesWithScan(t *testing.T) {
	var filled, scanned Scratch
	rapid.Check(t, func(t *rapid.T) {
		v := values(4).Draw(t, "value")
		doc := goValue(t, v)
		own, err := FromGo(doc, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		text := own.AppendJSON(nil)
		var b ShapeBuilder
		for _, p := range somePaths(t, v) {
			b.Add(p...)
		}
		s := b.Build()
		if err := s.Fill(doc, Limits{}, &filled); err != nil {
			t.Fatal(err)
		}
		if err := s.Scan(text, Limits{}, &scanned); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if filled.Top != scanned.Top {
			t.Fatalf("%s: top is %v, want %v", text, filled.Top, scanned.Top)
		}
		sameSlots(t, text, filled.Slots, scanned.Slots)
		if m, ok := doc.(map[string]any); ok {
			if err := s.Look(m, Limits{}, &filled); err != nil || filled.Top != Object {
				t.Fatalf("%s: top is %v, error %v", text, filled.Top, err)
			}
			sameSlots(t, text, filled.Slots, scanned.Slots)
		}
	})
}

func sameSlots(t *rapid.T, text []byte, slots, wanted []Slot) {
	for i, got := range slots {
		want := wanted[i]
		g, err := got.Value()
		w, other := want.Value()
		if err != nil || other != nil || got.Kind != want.Kind || got.Kind != Absent && g.Digest() != w.Digest() {
			t.Fatalf("%s: slot %d is %+v, want %+v", text, i, g, w)
		}
	}
}

// Look refuses invalid values that it reads, and ignores the rest.
func TestLookChecksWhatItReads(t *testing.T) {
	var b ShapeBuilder
	b.Add("read", "deep")
	s, sc := b.Build(), &Scratch{}
	for name, bad := range map[string]any{
		"NaN":     math.NaN(),
		"text":    "\xff",
		"channel": make(chan int),
		"lexeme":  json.Number("1e999"),
	} {
		if err := s.Look(
			map[string]any{"read": map[string]any{"deep": 1, "other": bad}, "unread": bad},
			Limits{},
			sc,
		); err != nil || sc.Slots[0].Num.String() != "1" {
			t.Errorf("%s, unread: %v", name, err)
		}

		doc := map[string]any{"read": map[string]any{"deep": bad}}
		if err := s.Look(doc, Limits{}, sc); fmt.Sprint(err) != fmt.Sprint(s.Fill(doc, Limits{}, sc)) || err == nil {
			t.Errorf("%s, read: %v", name, err)
		}
	}

	if err := s.Look(map[string]any{"read": map[string]any{"deep": 1}}, Limits{MaxDepth: 1}, sc); err == nil {
		t.Error("deeper than allowed")
	}
}

// Fill reads a decoded document as Scan reads its encoding by encoding/json.
func TestFillAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		var doc any
		if err := json.Unmarshal(v.AppendJSON(nil), &doc); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		own, err := FromGo(doc, Limits{})
		if err != nil || own.Digest() != mustParse(t, string(text)).Digest() {
			t.Fatalf("%s: got %s, %v", text, own.AppendJSON(nil), err)
		}
	})
}

func TestFillReadsValues(t *testing.T) {
	paths := [][]string{{"input", "list", "1"}, {"input", "risk"}, {"input"}, {"input", "none"}, {"n"}}
	var b ShapeBuilder
	for _, p := range paths {
		b.Add(p...)
	}
	doc := map[string]any{
		"input": mustParse(t, `{"risk":"h\u0069gh","list":[1,2.50]}`),
		"n":     Value{Kind: Number, Num: IntNum(-7)},
	}
	var sc Scratch
	if err := b.Build().Fill(doc, Limits{}, &sc); err != nil {
		t.Fatal(err)
	}
	want := "input,list,1=number 2.50; input,risk=string high; input=object; input,none=absent; n=number -7; "
	if got := show(paths, sc.Slots); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	var b ShapeBuilder
	for _, key := range []string{"int", "float", "number", "text", "bool", "fraction"} {
		b.Add(key)
	}
	b.Add("list", "1")
	s, sc := b.Build(), &Scratch{}
	doc := map[string]any{
		"int":      5,
		"float":    20000.0,
		"number":   json.Number("1.50"),
		"text":     "USD",
		"bool":     true,
		"fraction": 0.25,
		"list":     []any{1, 2},
	}
	run := func() {
		if err := s.Fill(doc, Limits{}, sc); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := sc.Slots[5]; got.Num.String() != "0.25" || sc.Slots[6].Num.String() != "2" {
		t.Errorf("%+v", sc.Slots)
	}
}
