package value

import (
	"slices"
	"testing"
	"time"
)

// The baseline is hand-written code optimized for speed: one pass that checks the syntax and
// fills slots, without checks for duplicate keys, UTF-8, surrogates and limits, and without
// exact numbers. Scan is measured relative to it, interleaved in one process, because absolute
// times on a shared machine are not comparable.

type floorSlot struct {
	kind Kind
	text string
	num  float64
}

type floorNode struct {
	keys  []string
	slots []int
	below []*floorNode
}

func (n *floorNode) add(slot int, path ...string) {
	at := slices.Index(n.keys, path[0])
	if at < 0 {
		at = len(n.keys)
		n.keys = append(n.keys, path[0])
		n.slots = append(n.slots, -1)
		n.below = append(n.below, nil)
	}

	if len(path) == 1 {
		n.slots[at] = slot
		return
	}
	if n.below[at] == nil {
		n.below[at] = &floorNode{}
	}
	n.below[at].add(slot, path[1:]...)
}

type floorScanner struct {
	s     string
	slots []floorSlot
}

func (f *floorScanner) space(i int) int {
	for i < len(f.s) && (f.s[i] == ' ' || f.s[i] == '\n' || f.s[i] == '\t' || f.s[i] == '\r') {
		i++
	}
	return i
}

func (f *floorScanner) str(i int) int {
	for ; i < len(f.s); i++ {
		switch c := f.s[i]; {
		case c == '"':
			return i
		case c == '\\':
			i++
		case c < ' ':
			return -1
		}
	}

	return -1
}

func (f *floorScanner) value(i int, n *floorNode, slot int) int {
	s := f.s
	if i >= len(s) {
		return -1
	}
	var out floorSlot
	end := -1
	switch c := s[i]; {
	case c == '"':
		if end = f.str(i + 1); end < 0 {
			return -1
		}
		out = floorSlot{kind: String, text: s[i+1 : end]}
		end++
	case c == '{':
		out.kind = Object
		end = f.object(i, n)
	case c == '[':
		out.kind = Array
		end = f.array(i)
	case c == '-' || c >= '0' && c <= '9':
		out.kind = Number
		out.num, end = f.number(i)
	case len(s) >= i+4 && s[i:i+4] == "true":
		out = floorSlot{kind: Bool, num: 1}
		end = i + 4
	case len(s) >= i+5 && s[i:i+5] == "false":
		out.kind = Bool
		end = i + 5
	case len(s) >= i+4 && s[i:i+4] == "null":
		out.kind = Null
		end = i + 4
	}

	if slot >= 0 {
		f.slots[slot] = out
	}
	return end
}

func (f *floorScanner) number(i int) (float64, int) {
	s, neg := f.s, false
	if s[i] == '-' {
		neg = true
		i++
	}
	var m, scale uint64 = 0, 1
	first := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		m = m*10 + uint64(s[i]-'0')
		i++
	}
	if i == first {
		return 0, -1
	}
	if i < len(s) && s[i] == '.' {
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			m = m*10 + uint64(s[i]-'0')
			scale *= 10
		}
	}

	v := float64(m) / float64(scale)
	if neg {
		v = -v
	}
	return v, i
}

func (f *floorScanner) array(i int) int {
	i = f.space(i + 1)
	if i < len(f.s) && f.s[i] == ']' {
		return i + 1
	}
	for {
		if i = f.value(i, nil, -1); i < 0 {
			return -1
		}
		if i = f.space(i); i >= len(f.s) {
			return -1
		}
		switch f.s[i] {
		case ',':
			i = f.space(i + 1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

func (f *floorScanner) object(i int, n *floorNode) int {
	i = f.space(i + 1)
	if i < len(f.s) && f.s[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(f.s) || f.s[i] != '"' {
			return -1
		}
		end := f.str(i + 1)
		if end < 0 {
			return -1
		}
		key := f.s[i+1 : end]
		slot := -1
		var below *floorNode
		if n != nil {
			for k := range n.keys {
				if n.keys[k] == key {
					slot, below = n.slots[k], n.below[k]
					break
				}
			}
		}

		if i = f.space(end + 1); i >= len(f.s) || f.s[i] != ':' {
			return -1
		}
		if i = f.value(f.space(i+1), below, slot); i < 0 {
			return -1
		}
		if i = f.space(i); i >= len(f.s) {
			return -1
		}
		switch f.s[i] {
		case ',':
			i = f.space(i + 1)
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

func (f *floorScanner) scan(src []byte, n *floorNode) bool {
	f.s = view(src)
	clear(f.slots)
	i := f.value(f.space(0), n, -1)
	return i >= 0 && f.space(i) == len(src)
}

// workload is a document and the paths that a plan reads of it.
type workload struct {
	name  string
	doc   string
	paths [][]string
}

func workloads() []workload {
	return []workload{
		{"80B", `{"amount":18250.75,"currency":"USD","account":"ACC-8812","memo":"invoice 42 May"}`,
			[][]string{{"amount"}, {"currency"}}},
		{
			"280B",
			`{"amount":18250,"currency":"USD","recipient":"treasury.ops@partner-bank.example.com","country":"DE",` +
				`"priority":"high","dry_run":false,` +
				`"order":{"id":"ORD-2026-000912","amount":125000,"lines":[{"sku":"A-1","qty":3},{"sku":"B-22",` +
				`"qty":12}]},"channel":"api","note":"quarter end settlement"}`,
			[][]string{{"amount"}, {"currency"}, {"recipient"}, {"country"}, {"order", "amount"}, {"channel"}},
		},
		{
			"280B spaced",
			`{"amount": 18250, "currency": "USD", "recipient": "treasury.ops@partner-bank.example.com", "country": ` +
				`"DE", "priority": "high", "dry_run": false, ` +
				`"order": {"id": "ORD-2026-000912", "amount": 125000, "lines": [{"sku": "A-1", "qty": 3}, {"sku": ` +
				`"B-22", "qty": 12}]}, "channel": "api", "note": "quarter end settlement"}`,
			[][]string{{"amount"}, {"currency"}, {"recipient"}, {"country"}, {"order", "amount"}, {"channel"}},
		},
	}
}

func (w workload) shape() *Shape {
	var b ShapeBuilder
	for _, p := range w.paths {
		b.Add(p...)
	}
	return b.Build()
}

func (w workload) floor() (*floorNode, *floorScanner) {
	n := &floorNode{}
	for i, p := range w.paths {
		n.add(i, p...)
	}
	return n, &floorScanner{slots: make([]floorSlot, len(w.paths))}
}

func TestFloorReadsTheSame(t *testing.T) {
	for _, w := range workloads() {
		n, f := w.floor()
		var sc Scratch
		if err := w.shape().Scan([]byte(w.doc), Limits{}, &sc); err != nil || !f.scan([]byte(w.doc), n) {
			t.Fatalf("%s: %v", w.name, err)
		}
		for i, s := range sc.Slots {
			if f.slots[i].kind != s.Kind || s.Kind == String && s.Text != f.slots[i].text {
				t.Errorf("%s %v: floor %+v, scan %+v", w.name, w.paths[i], f.slots[i], s)
			}
		}
	}
}

// BenchmarkScanOverFloor reports the tenth percentile of interleaved bursts of both and their
// ratio.
func BenchmarkScanOverFloor(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			src := []byte(w.doc)
			s := w.shape()
			sc := &Scratch{}
			n, f := w.floor()
			const bursts, each = 200, 200
			var scan, floor []float64
			for b.Loop() {
				for range bursts {
					floor = append(floor, timed(each, func() { f.scan(src, n) }))
					scan = append(scan, timed(each, func() { _ = s.Scan(src, Limits{FoldKeys: true}, sc) }))
				}
			}

			slices.Sort(scan)
			slices.Sort(floor)
			p10 := len(scan) / 10
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(floor[p10], "floor-ns")
			b.ReportMetric(scan[p10], "scan-ns")
			b.ReportMetric(scan[p10]/floor[p10], "ratio")
			b.ReportMetric(float64(len(src)), "bytes")
		})
	}
}

func timed(n int, f func()) float64 {
	start := time.Now()
	for range n {
		f()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n)
}

func BenchmarkScan(b *testing.B) {
	for _, w := range workloads() {
		b.Run(w.name, func(b *testing.B) {
			src := []byte(w.doc)
			s := w.shape()
			sc := &Scratch{}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Scan(src, Limits{FoldKeys: true}, sc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	var sb ShapeBuilder
	sb.Add("amount")
	sb.Add("currency")
	s, sc := sb.Build(), &Scratch{}
	doc := map[string]any{"amount": 18250.0, "currency": "USD", "account": "ACC-8812", "urgent": true}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Fill(doc, Limits{FoldKeys: true}, sc); err != nil {
			b.Fatal(err)
		}
	}
}
