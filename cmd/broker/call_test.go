package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallArguments(t *testing.T) {
	tests := []struct {
		object, stdin string
		pairs         []string
		want          string
	}{
		{want: `{}`},
		{pairs: []string{"a=1", "b:=1", "c=", "url=http://h/?x:=y", "e:=null", "f=ü<\n"},
			want: `{"a":"1","b":1,"c":"","e":null,"f":"ü<\n","url":"http://h/?x:=y"}`},
		{object: `{"a":12345678901234567890,"b":{"x":[1]}}`, pairs: []string{"b:={}"}, want: `{"a":12345678901234567890,"b":{}}`},
		{object: "-", stdin: "{\"a\":\n1}\n", want: `{"a":1}`},
		{object: "[1]", want: "error: --args must be one JSON object"},
		{object: "null", want: "error: --args must be one JSON object"},
		{object: "{} {}", want: "error: --args must be one JSON object"},
		{pairs: []string{"a"}, want: `error: "a" is no argument: write key=text or key:=json`},
		{pairs: []string{"=a"}, want: `error: "=a" names no key`},
		{pairs: []string{":=1"}, want: `error: ":=1" names no key`},
		{pairs: []string{"a=1", "a:=2"}, want: `error: "a" is given twice`},
		{pairs: []string{"a:=yes"}, want: `error: "a:=yes": yes is not JSON; for a string write a=yes`},
	}
	for _, tt := range tests {
		args, err := callArguments(tt.object, tt.pairs, strings.NewReader(tt.stdin))
		got := string(encode(args))
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%q %q: %s, want %s", tt.object, tt.pairs, got, tt.want)
		}
	}
}

// Content goes to standard output, progress and failures to standard error.
func TestCall(t *testing.T) {
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"call",`
	tests := []struct {
		name, result, flags string
		code                int
		out, err            string
	}{
		{name: "text", result: `{"content":[{"type":"text","text":"a\nb\n"},{"type":"text","text":"c"}]}`, out: "a\nb\nc\n"},
		{name: "raw", flags: "-o json", result: `{"isError":false, "content":[], "n":12345678901234567890}`, out: `{"isError":false,"content":[],"n":12345678901234567890}` + "\n"},
		{name: "failed", result: `{"content":[{"type":"text","text":"no pump"}],"isError":true}`, code: 1, err: "no pump\n"},
		{name: "failed, raw", flags: "-o json", result: `{"content":[],"isError":true}`, code: 1, out: `{"content":[],"isError":true}` + "\n"},
		{name: "structured", result: `{"content":[],"structuredContent":{"b":1,"a":[]}}`, out: "{\n  \"b\": 1,\n  \"a\": []\n}\n"},
		{name: "error", result: `error {"code":-32602,"message":"Unknown tool: t"}`, code: 4, err: "Unknown tool: t (-32602). 'broker tools s' lists the tools and their arguments.\n"},
		{name: "other content", result: `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},` +
			`{"type":"resource_link","uri":"file:///x"},{"type":"resource","resource":{"uri":"u","mimeType":"text/plain","text":"inside"}},` +
			`{"type":"resource","resource":{"uri":"u","mimeType":"a/b","blob":"AAA="}},{"type":"new"}]}`,
			out: "[image, image/png, 3 bytes]\n[audio, audio/wav, 1 byte]\n[resource link file:///x]\ninside\n[resource u, a/b, 2 bytes]\n[new]\n"},
		{name: "progress", result: "events data: " + progress + `"progress":1,"total":3,"message":"warm\u0007"}}` + "\n\n" +
			"data: " + progress + `"progress":2.5}}` + "\n\n" +
			`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":9}}` + "\n\n" +
			`data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}` + "\n\n" +
			`data: {"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"hot"}]}}` + "\n\n",
			out: "hot\n", err: "progress 1/3: warm\\a\nprogress 2.5\n"},
		{name: "broken stream", result: "events data: " + progress + `"progress":1}}` + "\n\n", code: 4,
			err: "progress 1\nThe answer to tools/call holds no response\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFakeBroker(t)
			f.set("tools/call t", tt.result)
			b := newBench(t)
			args := append([]string{"call", "s", "t", "--url", f.URL}, strings.Fields(tt.flags)...)
			b.expect(t, b.do(args...), tt.code, tt.out, tt.err)
		})
	}
}

func TestTools(t *testing.T) {
	f := newFakeBroker(t)
	f.set("tools/list", `{"tools":[{"name":"echo","description":"Says it again.\nAnd more.","inputSchema":{"type":"object",`+
		`"properties":{"z":{"type":"string"},"a":{"type":["number","null"]},"list":{"type":"array","items":{"type":"integer"}},"mode":{"enum":["on","off"]},"x":{}},"required":["z","mode"]}}],"nextCursor":"2"}`)
	f.set("tools/list 2", `{"tools":[{"name":"clock","inputSchema":{"type":"object"},"n":12345678901234567890}]}`)
	b := newBench(t)
	b.expect(t, b.do("tools", "s", "--url", f.URL), 0,
		"NAME   ARGUMENTS                                                            DESCRIPTION\n"+
			"echo   z: string, a?: number|null, list?: integer[], mode: on|off, x?: any  Says it again.\n"+
			"clock  -\n", "")

	b = newBench(t)
	f.set("tools/list", `{"tools":[{"name":"a<b"}],"nextCursor":"2"}`)
	b.expect(t, b.do("tools", "s", "--url", f.URL, "-o", "json"), 0,
		`{"tools":[{"name":"a<b"},{"name":"clock","inputSchema":{"type":"object"},"n":12345678901234567890}]}`+"\n", "")

	b = newBench(t)
	f.set("tools/list 2", `{"tools":[],"nextCursor":"2"}`)
	b.expect(t, b.do("tools", "s", "--url", f.URL), 4, "", "The provider pages its tools without end: it repeats the cursor \"2\"\n")
}

func TestAge(t *testing.T) {
	var got []string
	for _, seconds := range []int64{0, 59, 60, 3599, 3600, 86399, 86400, 1e6} {
		got = append(got, age(time.Duration(seconds)*time.Second))
	}
	if diff := cmp.Diff("0s 59s 1m00s 59m59s 1h00m 23h59m 1d00h 11d13h", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}
