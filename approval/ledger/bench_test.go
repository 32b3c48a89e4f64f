package ledger

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
)

func BenchmarkSeal(b *testing.B) {
	e := testEntry(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Seal(rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExtend(b *testing.B) {
	for _, batch := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			l := bare(b, 1000)
			leaves := make([][]byte, batch)
			for i := range leaves {
				leaves[i] = newLog(b, 1).records[0].Leaf
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Extend(l.size(), l, leaves); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/leaf")
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	const entries = 1000
	file := newLog(b, entries).export(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(bytes.NewReader(file), VerifyOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
}
