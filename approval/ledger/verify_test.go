package ledger

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestVerify(t *testing.T) {
	for _, size := range []int{0, 1, 2, 9} {
		l := newLog(t, size)
		seen := int64(0)
		opts := VerifyOptions{
			PublicKey: testSigner(t).PublicKey(),
			Each: func(index int64, leaf Leaf, o Openings) error {
				if index != seen || leaf.Subject != testEntry(int(index)).Subject || len(o) != 2 {
					t.Errorf("saw %d: %+v, %v", index, leaf, o)
				}
				seen++
				return nil
			},
		}
		got, err := Verify(iotest.OneByteReader(bytes.NewReader(l.export(t))), opts)
		must(t, err)
		want := Report{
			Entries:    l.size(),
			Root:       l.root,
			Checkpoint: l.checkpoint(),
			PublicKey:  testSigner(t).PublicKey(),
			KeyPinned:  true,
		}
		if !reflect.DeepEqual(got, want) || seen != l.size() {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestVerifyUnpinned(t *testing.T) {
	file := newLog(t, 3).export(t)
	got, err := Verify(bytes.NewReader(file), VerifyOptions{})
	if err != nil || got.KeyPinned || got.PublicKey != testSigner(t).PublicKey() {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestVerifyNames: if one thing in the text is wrong, the error contains the index of the entry.
func TestVerifyNames(t *testing.T) {
	l := newLog(t, 6)
	file := string(l.export(t))
	lines := strings.SplitAfter(file, "\n")[:8]
	key, other := testSigner(t).PublicKey(), namedSigner(t, "assent.example", 1)
	otherSigned, err := other.Sign(l.checkpoint())
	must(t, err)
	tenant := l.checkpoint()
	tenant.Origin = Origin("other")
	smaller, larger := newLog(t, 5), newLog(t, 7)
	line := func(i int, from, to string) string {
		out := slices.Clone(lines)
		if out[i] = strings.Replace(lines[i], from, to, 1); out[i] == lines[i] {
			t.Fatalf("%q is not in %s", from, lines[i])
		}
		return strings.Join(out, "")
	}
	without := func(i int) string {
		return strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")
	}
	for name, tt := range map[string]struct {
		file  string
		index int64
		want  string
	}{
		"edited leaf":   {line(3, `req-2`, `req-1`), 2, "edited leaf: it has the hash"},
		"edited hash":   {line(3, `"hash":"`, `"hash":"AAAA`), 2, "a hash is not base64"},
		"dropped":       {without(4), 3, "dropped or moved: found entry 4 in its place"},
		"dropped last":  {without(6), 5, "dropped: the file ends here, but the checkpoint covers 6"},
		"dropped first": {without(1), 0, "dropped or moved: found entry 1"},
		"moved": {
			strings.Join([]string{lines[0], lines[1], lines[3], lines[2], lines[4], lines[5], lines[6], lines[7]}, ""),
			1,
			"dropped or moved: found entry 2",
		},
		"twice": {
			strings.Join(slices.Insert(slices.Clone(lines), 3, lines[2]), ""),
			2,
			"inserted or moved: found entry 1",
		},
		"inserted at end": {
			strings.Join(
				slices.Insert(slices.Clone(lines), 7, strings.Replace(lines[6], `"index":5`, `"index":6`, 1)),
				"",
			),
			6,
			"inserted: the checkpoint covers 6",
		},
		"no last line":      {strings.Join(lines[:7], ""), 6, "truncated: the file ends before"},
		"truncated":         {file[:len(file)/2], 2, "truncated: the file ends before"},
		"no line end":       {file[:len(file)-1], 6, "truncated: the file ends before"},
		"empty":             {"", -1, "truncated: the file ends before"},
		"more":              {file + "\n", -1, "more text behind the last line"},
		"twice the file":    {file + file, -1, "more text behind the last line"},
		"number":            {line(7, `6`, `5`), -1, "the last line says 5 entries, the file has 6"},
		"last line":         {line(7, `6}`, `6,"x":1}`), -1, `the last line: unexpected member "x"`},
		"last line's kind":  {line(7, `6`, `"6"`), -1, "the last line: found a JSON value of kind string"},
		"last line's space": {line(7, `:6`, `: 6`), -1, "the last line is not spelt"},
		"wrong key":         {line(0, key, other.PublicKey()), -1, "wrong key: found "},
		"other signer": {
			string(appendHeader(nil, Origin(testTenant), key, string(otherSigned))) + strings.Join(lines[1:], ""),
			-1,
			"wrong key: the checkpoint is not signed with",
		},
		"bad signature": {line(0, `\n6\n`, `\n7\n`), -1, "bad signature"},
		"smaller": {
			string(forge(t, sign(t, smaller.checkpoint()), l.records)),
			5,
			"inserted: the checkpoint covers 5",
		},
		"larger": {
			string(forge(t, sign(t, larger.checkpoint()), l.records)),
			6,
			"dropped: the file ends here, but the checkpoint covers 7",
		},
		"header's tenant": {line(0, `"origin":"assent/default"`, `"origin":"assent/other"`), -1, "another tenant"},
		"tenant":          {string(forge(t, sign(t, tenant), l.records)), 0, "another tenant"},
		"format":          {line(0, `ledger/1`, `ledger/2`), -1, "not an export of the format"},
		"header's space":  {line(0, `":`, `": `), -1, "the header is not spelt"},
		"header's key":    {line(0, `"origin"`, `"source"`), -1, "the header: unexpected member"},
		"header's twin":   {line(0, `"origin":`, `"format":1,"origin":`), -1, "duplicate key"},
		"no header":       {strings.Join(lines[1:], ""), -1, `unexpected member "index"`},
		"no JSON":         {"hello\n", -1, "the header can't be read"},
		"duplicate key":   {line(3, `"index":2`, `"index":2,"index":2`), 2, "duplicate key"},
		"space":           {line(3, `"index":2`, `"index": 2`), 2, "not spelt as an export spells it"},
		"escape":          {line(3, `req-2`, `r\u0065q-2`), 2, "not spelt as an export spells it"},
		"member":          {line(3, `"leaf"`, `"loaf"`), 2, `unexpected member "loaf"`},
		"index's kind":    {line(3, `"index":2`, `"index":"2"`), 2, "index: found a JSON value of kind string"},
		"negative index":  {line(3, `"index":2`, `"index":-2`), 2, "index: "},
		"opening": {
			line(3, `{\"amount\":2}`, `{\"amount\":9}`),
			2,
			"the opening of args does not match the leaf",
		},
		"salt":            {line(3, `"salt":"`, `"salt":"AAAA`), 2, "openings: the opening of args: the salt"},
		"unknown opening": {line(3, `"args":{"salt"`, `"argz":{"salt"`), 2, "the opening of argz belongs to nothing"},
		"empty line":      {line(3, lines[3], "\n"), 2, "can't be read"},
		"array":           {line(3, lines[3], "[]\n"), 2, "expected an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verify(t, []byte(tt.file))
			refused(t, err, tt.index, tt.want)
		})
	}
}

func TestVerifySince(t *testing.T) {
	l := newLog(t, 6)
	file := l.export(t)
	check := func(old Checkpoint) (Report, error) {
		return Verify(
			bytes.NewReader(file),
			VerifyOptions{PublicKey: testSigner(t).PublicKey(), Since: [][]byte{sign(t, old)}},
		)
	}
	for size, root := range l.roots(t) {
		old := Checkpoint{Origin(testTenant), int64(size), root}
		if got, err := check(old); err != nil || got.Since == nil || *got.Since != old {
			t.Errorf("size %d: got %+v, %v", size, got.Since, err)
		}
		old.Root = Hash{1}
		_, err := check(old)
		refused(t, err, -1, "the older checkpoint says "+old.Root.String())
	}

	_, err := check(newLog(t, 7).checkpoint())
	refused(t, err, -1, "truncated: the older checkpoint covers 7 entries, the export's only 6")
	other := l.checkpoint()
	other.Origin = Origin("other")
	_, err = check(other)
	refused(t, err, -1, "another tenant")
	for _, since := range []string{"", "note\n", corrupt(string(sign(t, l.checkpoint())), 20)} {
		_, err = Verify(bytes.NewReader(file), VerifyOptions{Since: [][]byte{[]byte(since)}})
		refused(t, err, -1, "the older checkpoint: ")
	}
}

// TestVerifyRewritten: if the holder of the key rewrites history, an auditor with an older
// checkpoint can detect it and learns where.
func TestVerifyRewritten(t *testing.T) {
	l, forged := newLog(t, 6), &testLog{root: emptyRoot()}
	for i, r := range l.records {
		if i == 2 {
			r = seal(t, testEntry(9), fixed(9))
		}
		forged.extend(t, r)
	}

	if _, err := verify(t, forged.export(t)); err != nil {
		t.Fatal(err)
	}
	roots := l.roots(t)
	for size := range 7 {
		since := sign(t, Checkpoint{Origin(testTenant), int64(size), roots[size]})
		_, err := Verify(bytes.NewReader(forged.export(t)), VerifyOptions{Since: [][]byte{since}})
		if size <= 2 {
			if err != nil {
				t.Errorf("since %d: %v", size, err)
			}
			continue
		}

		refused(t, err, -1, "was edited, moved, dropped or inserted since")
	}

	old := sign(t, Checkpoint{Origin(testTenant), 2, roots[2]})
	_, err := Verify(
		bytes.NewReader(forge(t, sign(t, l.checkpoint()), forged.records)),
		VerifyOptions{Since: [][]byte{old}},
	)
	refused(t, err, -1, "an entry from 2 on was edited")
}

// TestVerifyDetectsForgeries: if any record is changed, the signed checkpoint does not match, even
// if the rest of the file is consistent.
func TestVerifyDetectsForgeries(t *testing.T) {
	l := newLog(t, 12)
	signed := sign(t, l.checkpoint())
	rapid.Check(t, func(rt *rapid.T) {
		records := slices.Clone(l.records)
		i := rapid.IntRange(0, len(records)-1).Draw(rt, "i")
		j := rapid.IntRange(0, len(records)-1).Draw(rt, "j")
		strange := seal(t, testEntry(rapid.IntRange(0, 30).Draw(rt, "entry")), fixed(30))
		switch rapid.SampledFrom([]string{
			"drop",
			"swap",
			"double",
			"insert",
			"replace",
			"cut",
			"empty",
		}).Draw(rt, "how") {
		case "drop":
			records = slices.Delete(records, i, i+1)
		case "swap":
			if i == j {
				j = (i + 1) % len(records)
			}
			records[i], records[j] = records[j], records[i]
		case "double":
			records = slices.Insert(records, j, records[i])
		case "insert":
			records = slices.Insert(records, i, strange)
		case "replace":
			records[i] = strange
		case "cut":
			records = records[:i]
		case "empty":
			records[i] = Record{}
		}

		if _, err := verify(t, forge(t, signed, records)); err == nil {
			rt.Fatal("the forgery verifies")
		}
	})
}

// TestVerifyDetectsEveryByte: the format is canonical, so any edited, dropped or inserted byte is
// detected, with or without a pinned key.
func TestVerifyDetectsEveryByte(t *testing.T) {
	file := newLog(t, 4).export(t)
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(file)-1).Draw(rt, "at")
		b := rapid.Byte().Draw(rt, "byte")
		var changed []byte
		switch rapid.SampledFrom([]string{"edit", "flip", "drop", "insert", "cut"}).Draw(rt, "how") {
		case "edit":
			changed = slices.Replace(slices.Clone(file), i, i+1, b)
		case "flip":
			changed = slices.Replace(slices.Clone(file), i, i+1, file[i]^(1<<(b%8)))
		case "drop":
			changed = slices.Delete(slices.Clone(file), i, i+1)
		case "insert":
			changed = slices.Insert(slices.Clone(file), i, b)
		case "cut":
			changed = file[:i]
		}

		if bytes.Equal(changed, file) {
			return
		}
		opts := VerifyOptions{}
		if rapid.Bool().Draw(rt, "pinned") {
			opts.PublicKey = testSigner(t).PublicKey()
		}
		var problem *VerifyError
		if _, err := Verify(bytes.NewReader(changed), opts); !errors.As(err, &problem) {
			rt.Fatalf("got %v", err)
		}
	})
}

func TestVerifyRedacted(t *testing.T) {
	l := newLog(t, 8)
	signed := sign(t, l.checkpoint())
	rapid.Check(t, func(rt *rapid.T) {
		records, want := slices.Clone(l.records), int64(0)
		for i := range records {
			drop := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"args", "reason"}), rapid.ID).
				Draw(rt, "drop")
			left, err := Redact(records[i].Openings, drop...)
			must(rt, err)
			records[i].Openings = left
			want += int64(len(drop))
		}

		if got, err := verify(t, export(t, signed, records)); err != nil || got.Redacted != want ||
			got.Entries != 8 {
			rt.Fatalf("got %+v, %v, want %d redacted", got, err, want)
		}
	})
}

func TestVerifyStops(t *testing.T) {
	file := newLog(t, 3).export(t)
	enough := errors.New("enough")
	_, err := Verify(bytes.NewReader(file), VerifyOptions{Each: func(index int64, _ Leaf, _ Openings) error {
		if index == 1 {
			return enough
		}
		return nil
	}})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	for _, cut := range []int{0, len(file) / 2, len(file)} {
		r := io.MultiReader(bytes.NewReader(file[:cut]), iotest.ErrReader(enough))
		if _, err := Verify(r, VerifyOptions{}); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	}
}

// endless is a reader of a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestVerifyBoundsLines(t *testing.T) {
	_, err := Verify(endless{}, VerifyOptions{})
	refused(t, err, -1, "a line of more than")
}

// TestVerifyInConstantMemory: memory does not grow with the log.
func TestVerifyInConstantMemory(t *testing.T) {
	const entries = 8_000
	l := &testLog{root: emptyRoot()}
	r := seal(t, testEntry(1), fixed(1))
	l.extend(t, slices.Repeat([]Record{r}, entries)...)
	signed := sign(t, l.checkpoint())
	pipe, out := io.Pipe()
	go func() {
		w, err := NewWriter(out, signed, testSigner(t).PublicKey())
		for i := 0; i < entries && err == nil; i++ {
			err = w.Write(r.Leaf, r.Openings)
		}
		if err == nil {
			err = w.Close()
		}
		out.CloseWithError(err)
	}()
	l.hashes, l.records = nil, nil
	var before, most runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, err := Verify(pipe, VerifyOptions{Each: func(index int64, _ Leaf, _ Openings) error {
		if index%2000 == 1999 {
			runtime.GC()
			var now runtime.MemStats
			if runtime.ReadMemStats(&now); now.HeapAlloc > most.HeapAlloc {
				most = now
			}
		}

		return nil
	}})
	must(t, err)
	if grown := int64(most.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}
