package wire

import (
	"fmt"
	"strings"
	"testing"
)

// benchFrame is a tools/call of about size bytes with escapes in its arguments
// and the id last, the worst order for a single pass.
func benchFrame(size int) []byte {
	const head, tail = `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{`, `}},"id":12}`
	if size < 128 {
		return []byte(`{"jsonrpc":"2.0","method":"tools/call","params":{"a":"\n"},"id":12}`)
	}
	const member = `"key%04d":{"text":"line one\nsaid \"two\" and then some plain words","n":-12.5e3,"ok":true},`
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < size-len(member)-len(tail); i++ {
		fmt.Fprintf(&b, member, i)
	}
	b.WriteString(`"last":null` + tail)
	return []byte(b.String())
}

var benchSizes = []struct {
	name string
	size int
}{{"64B", 64}, {"4KiB", 4 << 10}, {"256KiB", 256 << 10}}

func BenchmarkScan(b *testing.B) {
	for _, c := range benchSizes {
		in := benchFrame(c.size)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, err := Scan(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkToProvider is the way of a request: one scan and one splice.
func BenchmarkToProvider(b *testing.B) {
	for _, c := range benchSizes {
		in := benchFrame(c.size)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				f, err := Scan(in)
				if err != nil {
					b.Fatal(err)
				}
				ToProvider(&f, 1234567, fresh)
			}
		})
	}
}

func BenchmarkScanEnvelope(b *testing.B) {
	in := Wrap("pump-1", benchFrame(4<<10))
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, _, ok, err := ScanEnvelope(in); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
