package value

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestShapeSlots(t *testing.T) {
	var b ShapeBuilder
	paths := [][]string{
		{"order", "amount"},
		{"order.amount"},
		{"list", "1"},
		{"list", "10"},
		{"list", "0", "sku"},
		{"list"},
		{},
		{"é"},
		{""},
		{"list", "01"},
	}
	for i, p := range paths {
		if got := b.Add(p...); got != i {
			t.Errorf("%q has slot %d, want %d", p, got, i)
		}
	}
	if again := b.Add("list", "1"); again != 2 {
		t.Errorf("the same segments have slot %d", again)
	}
	s := b.Build()
	if s.Len() != len(paths) {
		t.Errorf("%d slots", s.Len())
	}
	var sc Scratch
	src := `{"\u00e9":"\ud83d\ude00\n","order":{"amount":12.50},"order.amount":true,"list":[{"sku":null},-3,2],"":[]` +
		`,"01":1}`
	if err := s.Scan([]byte(src), Limits{}, &sc); err != nil {
		t.Fatal(err)
	}
	want := `order,amount=number 12.50; order.amount=boolean true; list,1=number -3; list,10=absent; list,0,sku=null; list=array; =object; é=string 😀
; =array; list,01=absent; `
	if got := show(paths, sc.Slots); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if sc.Top != Object {
		t.Errorf("top is %v", sc.Top)
	}
}

func show(paths [][]string, slots []Slot) string {
	var b strings.Builder
	for i, s := range slots {
		fmt.Fprintf(&b, "%s=%v", strings.Join(paths[i], ","), s.Kind)
		switch s.Kind {
		case Bool:
			fmt.Fprint(&b, " ", s.Bool)
		case Number:
			fmt.Fprint(&b, " ", s.Num)
		case String:
			fmt.Fprint(&b, " ", s.Text)
		}

		b.WriteString("; ")
	}

	return b.String()
}

func TestBuildIsASnapshot(t *testing.T) {
	var b ShapeBuilder
	if s := b.Build(); s.Len() != 0 || s.Scan([]byte(`1`), Limits{}, &Scratch{}) != nil {
		t.Error("an empty builder does not validate")
	}
	b.Add("a")
	s := b.Build()
	b.Add("b")
	var sc Scratch
	if err := s.Scan([]byte(`{"a":1,"b":2}`), Limits{}, &sc); err != nil || len(sc.Slots) != 1 {
		t.Errorf("%v, %d slots", err, len(sc.Slots))
	}
	if b.Build().Len() != 2 {
		t.Error("the builder forgot")
	}
}

func TestTop(t *testing.T) {
	for src, want := range map[string]Kind{
		`{}`:    Object,
		`[]`:    Array,
		` "x"`:  String,
		`1`:     Number,
		`-1`:    Number,
		`true`:  Bool,
		`false`: Bool,
		`null`:  Null,
	} {
		var sc Scratch
		if err := anything.Scan([]byte(src), Limits{}, &sc); err != nil || sc.Top != want {
			t.Errorf("%s: %v, %v", src, sc.Top, err)
		}
	}
}

// After a document is refused, no slot has a value of it or of the previous one.
func TestRefusedDocumentsLeaveNothing(t *testing.T) {
	var b ShapeBuilder
	b.Add("a")
	b.Add("b")
	s := b.Build()
	var sc Scratch
	bad := map[string]func() error{
		"Scan": func() error {
			return s.Scan([]byte(`{"a":1,"b":"x","a":2}`), Limits{}, &sc)
		},
		"Fill": func() error {
			return s.Fill(map[string]any{"a": 1, "b": "\xff"}, Limits{}, &sc)
		},
	}
	for name, f := range bad {
		if err := s.Scan([]byte(`{"a":"old","b":true}`), Limits{}, &sc); err != nil || sc.Slots[0].Text != "old" {
			t.Fatal(err)
		}
		if f() == nil {
			t.Errorf("%s took it", name)
		}
		if len(sc.Slots) != 2 || sc.Slots[0] != (Slot{}) || sc.Slots[1] != (Slot{}) || sc.Top != Absent {
			t.Errorf("%s: left %+v %v", name, sc.Slots, sc.Top)
		}
	}

	if err := s.Scan([]byte(`{"b":true}`), Limits{}, &sc); err != nil || sc.Slots[0] != (Slot{}) {
		t.Errorf("the next document: %v, %+v", err, sc.Slots[0])
	}
	if sc.Reset(); sc.Slots[1] != (Slot{}) || sc.Top != Absent {
		t.Errorf("after Reset: %+v", sc.Slots)
	}
}

func TestScratchServesManyShapes(t *testing.T) {
	var sc Scratch
	for _, n := range []int{3, 1, 5, 2, 0, 5} {
		var b ShapeBuilder
		for i := range n {
			b.Add(fmt.Sprint("k", i))
		}
		if err := b.Build().Scan([]byte(`{"k0":1}`), Limits{}, &sc); err != nil || len(sc.Slots) != n {
			t.Fatalf("%d slots: %v, %d", n, err, len(sc.Slots))
		}
		for i, s := range sc.Slots {
			if want := i == 0; (s.Kind == Number) != want || s.Kind == Absent && s != (Slot{}) {
				t.Errorf("%d slots, slot %d: %+v", n, i, s)
			}
		}
	}
}

func TestLargeBuffersAreGivenUp(t *testing.T) {
	var keys []string
	for i := range 5000 {
		keys = append(keys, fmt.Sprintf(`"\u0061%020d":1`, i))
	}
	var sc Scratch
	if err := anything.Scan([]byte("{"+strings.Join(keys, ",")+"}"), Limits{}, &sc); err != nil || sc.keys != nil ||
		sc.buf != nil {
		t.Errorf("%v, kept %d keys, %d bytes", err, cap(sc.keys), cap(sc.buf))
	}
}

// Slots with escapes are correct even if the buffer for decoded strings has to grow.
func TestManyEscapedSlots(t *testing.T) {
	var b ShapeBuilder
	var parts []string
	const n = 200
	for i := range n {
		b.Add(fmt.Sprint("k", i))
		parts = append(parts, fmt.Sprintf(`"\u006b%d":"\u00e9%d"`, i, i))
	}
	var sc Scratch
	if err := b.Build().Scan([]byte("{"+strings.Join(parts, ",")+"}"), Limits{}, &sc); err != nil {
		t.Fatal(err)
	}
	for i, s := range sc.Slots {
		if s.Text != fmt.Sprint("é", i) {
			t.Errorf("slot %d: %q", i, s.Text)
		}
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	docs := workloads()
	docs = append(
		docs,
		workload{"escapes", `{"\u0061":"x\ny","b":"\ud83d\ude00"}`, [][]string{{"a"}, {"b"}}},
		workload{
			"UTF-8",
			`{"é":"grüße aus köln","n":[1.5e3,12345678901234567890.5]}`,
			[][]string{{"é"}, {"n", "0"}, {"n", "1"}},
		},
	)
	for _, w := range docs {
		src := []byte(w.doc)
		s := w.shape()
		sc := &Scratch{}
		run := func() {
			if err := s.Scan(src, Limits{}, sc); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", w.name, n)
		}
	}
}

func TestShapeIsSafeForConcurrentUse(t *testing.T) {
	w := workloads()[1]
	s := w.shape()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var sc Scratch
			for range 100 {
				if err := s.Scan([]byte(w.doc), Limits{}, &sc); err != nil || sc.Slots[1].Text != "USD" {
					t.Errorf("%v, %+v", err, sc.Slots[1])
				}
			}
		})
	}

	group.Wait()
}

// somePaths draws paths for a plan, most of which exist.
func somePaths(t *rapid.T, v Value) [][]string {
	var paths [][]string
	for range rapid.IntRange(0, 6).Draw(t, "paths") {
		var path []string
		at := v
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			names := []string{"amount", "0", "2", "zz"}
			for _, m := range at.Members {
				names = append(names, m.Key)
			}
			step := rapid.SampledFrom(names).Draw(t, "step")
			path = append(path, step)
			at, _ = at.Get(step)
		}

		paths = append(paths, path)
	}

	return paths
}

func TestScanAgreesWithParse(t *testing.T) {
	var sc Scratch
	rapid.Check(t, func(t *rapid.T) {
		v := values(4).Draw(t, "value")
		checkSlots(t, []byte(spell(t, v)), somePaths(t, v), &sc)
	})
}

func checkSlots(t tester, src []byte, paths [][]string, sc *Scratch) {
	var b ShapeBuilder
	at := make([]int, len(paths))
	for i, p := range paths {
		at[i] = b.Add(p...)
	}
	err := b.Build().Scan(src, Limits{}, sc)
	v, parseErr := Parse(src, Limits{})
	if fmt.Sprint(err) != fmt.Sprint(parseErr) {
		t.Fatalf("%q: Scan says %v, Parse %v", src, err, parseErr)
	}
	if sc.Top != v.Kind {
		t.Fatalf("%q: top is %v, want %v", src, sc.Top, v.Kind)
	}
	for i, p := range paths {
		want, _ := v.Get(p...)
		sameSlot(t, fmt.Sprintf("%q %q", src, p), sc.Slots[at[i]], want)
	}
}

func sameSlot(t tester, name string, got Slot, want Value) {
	whole, err := got.Value()
	if err != nil || got.Kind != want.Kind || want.Kind != Absent &&
		string(whole.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
		t.Fatalf("%s: slot %+v is %+v, %v, want %+v", name, got, whole, err, want)
	}
}

func FuzzScan(f *testing.F) {
	for _, w := range workloads() {
		f.Add([]byte(w.doc), "order/amount")
	}
	f.Add([]byte(`{"\u0061":[{"b":"\n"}]}`), "a/0/b")
	f.Add([]byte(`[1,[2,"\ud83d\ude00"]]`), "1/1")
	for _, tt := range refused(f) {
		f.Add([]byte(tt.src), "a")
	}
	var sc Scratch
	f.Fuzz(func(t *testing.T, src []byte, path string) {
		segments := strings.Split(path, "/")
		checkSlots(t, src, [][]string{segments, segments[:1], {}, {"a"}, {"0"}}, &sc)
	})
}

// Sizes include those around the threshold for sorting keys instead of comparing them.
func TestRepeatedKeyIsFoundInObjectsOfEverySize(t *testing.T) {
	for size := 2; size <= 2*manyKeys+2; size++ {
		for first := range size - 1 {
			members := make([]string, size)
			for i := range members {
				members[i] = fmt.Sprintf(`"key%d":0`, i)
			}
			members[size-1] = members[first]
			var bad *Error
			if _, err := Parse([]byte("{"+strings.Join(members, ",")+"}"), Limits{}); !errors.As(err, &bad) ||
				bad.Code != DuplicateKey {
				t.Fatalf("key %d of %d repeated: %v", first, size, err)
			}
		}
	}
}
