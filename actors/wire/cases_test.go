package wire

import "strings"

// What ToProvider is told in every case: the id and a fresh trace context.
const (
	caseID = 7
	fresh  = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	kept   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

// Pieces of frames, to keep the table readable.
const (
	tp     = `"traceparent":"` + fresh + `"`
	keptTP = `"traceparent":"` + kept + `"`
	meta   = `"_meta":{` + tp + `}`
	caller = `"io.cyanmycelium/caller"`
)

// byteCase is one message with everything the package says about it. The scan,
// splice, envelope and fuzz tests share the table.
type byteCase struct {
	name string
	in   string
	want view
	// sent is what a provider gets of a request, told what a provider gets of a
	// notification; "" where the message is neither.
	sent, told string
}

// view is a Frame with its spans as text, so that a difference can be read.
type view struct {
	Shape   Shape
	JSONRPC bool
	Method  string

	ID, Params, Meta, Result, Error   string
	IDShape, ParamsShape, MetaShape   Shape
	Token, Trace, Caller              string
	TraceValid, CallerAlone           bool
	Progress, RequestID, URI          string
	Aggregate, LegacyJoin             bool
	LegacyType, ProviderName, Payload string
}

func viewOf(f *Frame) view {
	raw := func(s Span) string {
		if !s.Present() {
			return ""
		}
		return string(f.Raw(s))
	}
	return view{
		Shape: f.Shape, JSONRPC: f.JSONRPC, Method: string(f.Method),
		ID: raw(f.ID), Params: raw(f.Params), Meta: raw(f.Meta), Result: raw(f.Result), Error: raw(f.Error),
		IDShape: f.IDShape, ParamsShape: f.ParamsShape, MetaShape: f.MetaShape,
		Token: raw(f.Token), Trace: raw(f.Trace), Caller: raw(f.Caller),
		TraceValid: f.TraceValid, CallerAlone: f.CallerAlone,
		Progress: raw(f.Progress), RequestID: raw(f.RequestID), URI: raw(f.URI),
		Aggregate: f.Aggregate, LegacyJoin: f.LegacyJoin,
		LegacyType: raw(f.LegacyType), ProviderName: raw(f.ProviderName), Payload: raw(f.Payload),
	}
}

// byteCases is the table. Requests first, then everything else.
func byteCases() []byteCase {
	return append(append(requestCases(), metaCases()...), otherCases()...)
}

func requestCases() []byteCase {
	return []byteCase{
		{
			name: "T1 of spec 01 11, with a trace context",
			in:   `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
			want: view{Shape: Object, JSONRPC: true, ID: "5", IDShape: Number, Method: "tools/list"},
			sent: `{"jsonrpc":"2.0","id":"brk-7","method":"tools/list","params":{` + meta + `}}`,
		},
		{
			name: "string id",
			in:   `{"jsonrpc":"2.0","id":"z","method":"m"}`,
			want: view{Shape: Object, JSONRPC: true, ID: `"z"`, IDShape: String, Method: "m"},
			sent: `{"jsonrpc":"2.0","id":"brk-7","method":"m","params":{` + meta + `}}`,
		},
		{
			name: "empty string id",
			in:   `{"id":"","method":"m"}`,
			want: view{Shape: Object, ID: `""`, IDShape: String, Method: "m"},
			sent: `{"id":"brk-7","method":"m","params":{` + meta + `}}`,
		},
		{
			name: "fraction id",
			in:   `{"id":1.5,"method":"m"}`,
			want: view{Shape: Object, ID: "1.5", IDShape: Number, Method: "m"},
			sent: `{"id":"brk-7","method":"m","params":{` + meta + `}}`,
		},
		{
			name: "big integer id and numbers F-22",
			in:   `{"id":12345678901234567890,"method":"m","params":{"n":12345678901234567890,"e":-1.0E+400}}`,
			want: view{Shape: Object, ID: "12345678901234567890", IDShape: Number, Method: "m",
				Params: `{"n":12345678901234567890,"e":-1.0E+400}`, ParamsShape: Object},
			sent: `{"id":"brk-7","method":"m","params":{` + meta + `,"n":12345678901234567890,"e":-1.0E+400}}`,
		},
		{
			name: "id last",
			in:   `{"method":"m","params":{"a":1},"id":1}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m", Params: `{"a":1}`, ParamsShape: Object},
			sent: `{"method":"m","params":{` + meta + `,"a":1},"id":"brk-7"}`,
		},
		{
			name: "escaped method F-47",
			in:   `{"id":1,"method":"resources\/\u0073ubscribe"}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "resources/subscribe"},
			sent: `{"id":"brk-7","method":"resources\/\u0073ubscribe","params":{` + meta + `}}`,
		},
		{
			name: "escaped keys F-47",
			in:   `{"\u0069d":1,"m\u0065thod":"m","\u0070arams":{"\u005fmeta":{"progress\u0054oken":2}}}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m",
				Params: `{"\u005fmeta":{"progress\u0054oken":2}}`, ParamsShape: Object,
				Meta: `{"progress\u0054oken":2}`, MetaShape: Object, Token: "2"},
			sent: `{"\u0069d":"brk-7","m\u0065thod":"m","\u0070arams":{"\u005fmeta":{` + tp + `,"progress\u0054oken":7}}}`,
		},
		{
			name: "members of another case are other members",
			in:   `{"ID":9,"id":1,"Method":"x","method":"m","PARAMS":[]}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m"},
			sent: `{"ID":9,"id":"brk-7","Method":"x","method":"m","PARAMS":[],"params":{` + meta + `}}`,
		},
		{
			name: "white space everywhere",
			in:   " \t\r\n{ \"id\"\n:\t1 ,\r\n \"method\" : \"m\" , \"params\" : { \"a\" : [ 1 , { } , [ ] ] } } \n",
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m",
				Params: `{ "a" : [ 1 , { } , [ ] ] }`, ParamsShape: Object},
			sent: "{ \"id\"\n:\t\"brk-7\" ,\r\n \"method\" : \"m\" , \"params\" : {" + meta + ", \"a\" : [ 1 , { } , [ ] ] } }",
		},
		{
			name: "text of many scripts, raw U+2028, escapes and lone surrogates kept",
			in:   `{"id":1,"method":"m","params":{"t":"读é🎉` + "\u2028\u2029\u0085\x7f" + `\ud83c\udf89\ud800\"\\\/\b\f\n\r\t\u0000"}}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m", ParamsShape: Object,
				Params: `{"t":"读é🎉` + "\u2028\u2029\u0085\x7f" + `\ud83c\udf89\ud800\"\\\/\b\f\n\r\t\u0000"}`},
			sent: `{"id":"brk-7","method":"m","params":{` + meta + `,"t":"读é🎉` + "\u2028\u2029\u0085\x7f" + `\ud83c\udf89\ud800\"\\\/\b\f\n\r\t\u0000"}}`,
		},
		{
			name: "unknown members may repeat and stay",
			in:   `{"x-unknown":1,"x-unknown":2,"id":1,"method":"m"}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m"},
			sent: `{"x-unknown":1,"x-unknown":2,"id":"brk-7","method":"m","params":{` + meta + `}}`,
		},
		{
			name: "members of deeper objects are not the frame's",
			in:   `{"id":1,"method":"m","params":{"id":2,"arguments":{"_meta":{"progressToken":3,"id":4},"id":5,"id":6}}}`,
			want: view{Shape: Object, ID: "1", IDShape: Number, Method: "m", ParamsShape: Object,
				Params: `{"id":2,"arguments":{"_meta":{"progressToken":3,"id":4},"id":5,"id":6}}`},
			sent: `{"id":"brk-7","method":"m","params":{` + meta + `,"id":2,"arguments":{"_meta":{"progressToken":3,"id":4},"id":5,"id":6}}}`,
		},
	}
}

// params wraps a request's params; the cases about _meta differ only there.
func params(p string) string { return `{"id":1,"method":"m","params":` + p + `}` }

func sent(p string) string { return `{"id":"brk-7","method":"m","params":` + p + `}` }

// metaCase is a request with the given params; w holds what it has beyond its
// id, method and params.
func metaCase(name, in, out string, shape Shape, w view) byteCase {
	w.Shape, w.ID, w.IDShape, w.Method = Object, "1", Number, "m"
	w.Params, w.ParamsShape = in, shape
	if i := strings.Index(in, `"_meta":`); i >= 0 && shape == Object {
		w.Meta = strings.TrimSuffix(in[i+len(`"_meta":`):], "}")
	}
	return byteCase{name: name, in: params(in), want: w, sent: sent(out)}
}

func metaCases() []byteCase {
	const c = caller + `:{"subject":"forged"}`
	object := view{MetaShape: Object}
	return []byteCase{
		metaCase("empty params", `{}`, `{`+meta+`}`, Object, view{}),
		metaCase("empty params with space", `{ }`, `{`+meta+` }`, Object, view{}),
		metaCase("params without _meta", `{"a":1}`, `{`+meta+`,"a":1}`, Object, view{}),
		metaCase("positional params F-21", `[1,{"_meta":{}}]`, `[1,{"_meta":{}}]`, Array, view{}),
		metaCase("null params", `null`, `null`, Null, view{}),
		metaCase("string params", `"x"`, `"x"`, String, view{}),
		metaCase("empty _meta", `{"_meta":{}}`, `{`+meta+`}`, Object, object),
		metaCase("empty _meta with space", `{"_meta":{ }}`, `{"_meta":{`+tp+` }}`, Object, object),
		metaCase("null _meta", `{"_meta":null}`, `{"_meta":null}`, Object, view{MetaShape: Null}),
		metaCase("array _meta", `{"_meta":[1]}`, `{"_meta":[1]}`, Object, view{MetaShape: Array}),
		metaCase("token number", `{"_meta":{"progressToken":1}}`, `{"_meta":{`+tp+`,"progressToken":7}}`,
			Object, view{MetaShape: Object, Token: "1"}),
		metaCase("token string", `{"_meta":{"progressToken":"t"}}`, `{"_meta":{`+tp+`,"progressToken":"brk-7"}}`,
			Object, view{MetaShape: Object, Token: `"t"`}),
		metaCase("token of another type is no token", `{"_meta":{"progressToken":{"a":1}}}`,
			`{"_meta":{`+tp+`,"progressToken":{"a":1}}}`, Object, object),
		metaCase("valid traceparent kept", `{"_meta":{`+keptTP+`,"progressToken":1}}`,
			`{"_meta":{`+keptTP+`,"progressToken":7}}`, Object,
			view{MetaShape: Object, Trace: `"` + kept + `"`, TraceValid: true, Token: "1"}),
		metaCase("invalid traceparent replaced", `{"_meta":{"traceparent":"00-x","a":1}}`,
			`{"_meta":{`+tp+`,"a":1}}`, Object, view{MetaShape: Object, Trace: `"00-x"`}),
		metaCase("escaped traceparent replaced", `{"_meta":{"traceparent":"\u0030`+kept[1:]+`"}}`,
			`{"_meta":{`+tp+`}}`, Object, view{MetaShape: Object, Trace: `"\u0030` + kept[1:] + `"`}),
		metaCase("traceparent of another type replaced", `{"_meta":{"traceparent":[1,2]}}`,
			`{"_meta":{`+tp+`}}`, Object, view{MetaShape: Object, Trace: `[1,2]`}),

		metaCase("caller first", `{"_meta":{`+c+`,"a":1}}`, `{"_meta":{`+tp+`,"a":1}}`,
			Object, view{MetaShape: Object, Caller: c}),
		metaCase("caller in the middle", `{"_meta":{"a":1,`+c+`,"b":2}}`, `{"_meta":{`+tp+`,"a":1,"b":2}}`,
			Object, view{MetaShape: Object, Caller: c}),
		metaCase("caller last", `{"_meta":{"a":1,`+c+`}}`, `{"_meta":{`+tp+`,"a":1}}`,
			Object, view{MetaShape: Object, Caller: c}),
		metaCase("caller alone", `{"_meta":{`+c+`}}`, `{"_meta":{`+tp+`}}`,
			Object, view{MetaShape: Object, Caller: c, CallerAlone: true}),
		metaCase("caller alone with space", `{"_meta":{ `+c+"\n}}", `{"_meta":{ `+tp+"\n}}",
			Object, view{MetaShape: Object, Caller: c, CallerAlone: true}),
		metaCase("caller before an invalid trace", `{"_meta":{`+c+`,"traceparent":1}}`, `{"_meta":{`+tp+`}}`,
			Object, view{MetaShape: Object, Caller: c, Trace: "1"}),
		metaCase("caller behind an invalid trace", `{"_meta":{"traceparent":1,`+c+`}}`, `{"_meta":{`+tp+`}}`,
			Object, view{MetaShape: Object, Caller: c, Trace: "1"}),
		metaCase("caller behind a valid trace", `{"_meta":{`+keptTP+" ,\t"+c+` }}`, `{"_meta":{`+keptTP+"  }}",
			Object, view{MetaShape: Object, Caller: c, Trace: `"` + kept + `"`, TraceValid: true}),
		metaCase("caller before a valid trace", `{"_meta":{`+c+" , "+keptTP+`}}`, `{"_meta":{`+keptTP+"}}",
			Object, view{MetaShape: Object, Caller: c, Trace: `"` + kept + `"`, TraceValid: true}),
		metaCase("caller next to the token", `{"_meta":{"progressToken":1,`+c+`}}`, `{"_meta":{`+tp+`,"progressToken":7}}`,
			Object, view{MetaShape: Object, Caller: c, Token: "1"}),
		metaCase("caller key escaped, its value full of quotes",
			`{"_meta":{"a":"\\\"",  "io.cyanmycelium\/call\u0065r" : {"x":"\",}\\"} , "b":"\","}}`,
			`{"_meta":{`+tp+`,"a":"\\\"",  "b":"\","}}`,
			Object, view{MetaShape: Object, Caller: `"io.cyanmycelium\/call\u0065r" : {"x":"\",}\\"}`}),
	}
}

func otherCases() []byteCase {
	return []byteCase{
		{
			name: "notification",
			in:   `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			want: view{Shape: Object, JSONRPC: true, Method: "notifications/initialized"},
			told: `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		},
		{
			name: "notification with the caller key among others",
			in:   `{"method":"n","params":{"_meta":{` + caller + `:1, "a":2},"b":3}}`,
			want: view{Shape: Object, Method: "n", ParamsShape: Object, MetaShape: Object, Caller: caller + `:1`,
				Params: `{"_meta":{` + caller + `:1, "a":2},"b":3}`, Meta: `{` + caller + `:1, "a":2}`},
			told: `{"method":"n","params":{"_meta":{"a":2},"b":3}}`,
		},
		{
			name: "notification whose _meta is emptied, first of params",
			in:   `{"method":"n","params":{"_meta" : { ` + caller + `:1 } , "b":3}}`,
			want: view{Shape: Object, Method: "n", ParamsShape: Object, MetaShape: Object, Caller: caller + `:1`, CallerAlone: true,
				Params: `{"_meta" : { ` + caller + `:1 } , "b":3}`, Meta: `{ ` + caller + `:1 }`},
			told: `{"method":"n","params":{"b":3}}`,
		},
		{
			name: "notification whose _meta is emptied, last of params, key escaped",
			in:   `{"method":"n","params":{"b":"\\" , "\u005fmeta" :{` + caller + `:":\""} }}`,
			want: view{Shape: Object, Method: "n", ParamsShape: Object, MetaShape: Object, Caller: caller + `:":\""`, CallerAlone: true,
				Params: `{"b":"\\" , "\u005fmeta" :{` + caller + `:":\""} }`, Meta: `{` + caller + `:":\""}`},
			told: `{"method":"n","params":{"b":"\\"  }}`,
		},
		{
			name: "notification whose _meta is emptied, alone in params",
			in:   `{"method":"n","params":{"_meta":{` + caller + `:1}}}`,
			want: view{Shape: Object, Method: "n", ParamsShape: Object, MetaShape: Object, Caller: caller + `:1`, CallerAlone: true,
				Params: `{"_meta":{` + caller + `:1}}`, Meta: `{` + caller + `:1}`},
			told: `{"method":"n","params":{}}`,
		},
		{
			name: "cancelled",
			in:   `{"method":"notifications/cancelled","params":{"requestId":"brk-1","reason":"r"}}`,
			want: view{Shape: Object, Method: "notifications/cancelled", ParamsShape: Object, RequestID: `"brk-1"`,
				Params: `{"requestId":"brk-1","reason":"r"}`},
			told: `{"method":"notifications/cancelled","params":{"requestId":"brk-1","reason":"r"}}`,
		},
		{
			name: "progress",
			in:   `{"method":"notifications/progress","params":{"progressToken":3,"progress":0.5}}`,
			want: view{Shape: Object, Method: "notifications/progress", ParamsShape: Object, Progress: "3",
				Params: `{"progressToken":3,"progress":0.5}`},
			told: `{"method":"notifications/progress","params":{"progressToken":3,"progress":0.5}}`,
		},
		{
			name: "updated",
			in:   `{"method":"notifications/resources/updated","params":{"uri":"a:\u0062"}}`,
			want: view{Shape: Object, Method: "notifications/resources/updated", ParamsShape: Object, URI: `"a:\u0062"`,
				Params: `{"uri":"a:\u0062"}`},
			told: `{"method":"notifications/resources/updated","params":{"uri":"a:\u0062"}}`,
		},
		{
			name: "uri of another type is none",
			in:   `{"method":"n","params":{"uri":1}}`,
			want: view{Shape: Object, Method: "n", ParamsShape: Object, Params: `{"uri":1}`},
			told: `{"method":"n","params":{"uri":1}}`,
		},
		{
			name: "register FF2 of spec 01 2.3",
			in:   `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`,
			want: view{Shape: Object, JSONRPC: true, Method: "notifications/register", ParamsShape: Object, Aggregate: true,
				Params: `{"aggregate":true}`},
			told: `{"jsonrpc":"2.0","method":"notifications/register","params":{"aggregate":true}}`,
		},
		{
			name: "aggregate must be exactly true",
			in:   `{"method":"notifications/register","params":{"aggregate":"true"},"aggregate":1}`,
			want: view{Shape: Object, Method: "notifications/register", ParamsShape: Object, Params: `{"aggregate":"true"}`},
			told: `{"method":"notifications/register","params":{"aggregate":"true"},"aggregate":1}`,
		},
		{
			name: "aggregate false",
			in:   `{"params":{"aggregate":false},"aggregate":false}`,
			want: view{Shape: Object, ParamsShape: Object, Params: `{"aggregate":false}`},
		},
		{
			name: "legacy register FF3 of spec 01 2.3",
			in:   `{"type":"register","aggregate":true}`,
			want: view{Shape: Object, LegacyType: `"register"`, LegacyJoin: true},
		},
		{
			name: "legacy type of another type is none",
			in:   `{"type":1,"provider":2}`,
			want: view{Shape: Object},
		},
		{
			name: "response",
			in:   `{"jsonrpc":"2.0","id":"brk-1","result":{"tools":[]}}`,
			want: view{Shape: Object, JSONRPC: true, ID: `"brk-1"`, IDShape: String, Result: `{"tools":[]}`},
		},
		{
			name: "error response without an id value",
			in:   `{"jsonrpc":null,"id":null,"error":{"code":-32700}}`,
			want: view{Shape: Object, JSONRPC: true, ID: "null", IDShape: Null, Error: `{"code":-32700}`},
		},
		{
			name: "null id is no request",
			in:   `{"id":null,"method":"m"}`,
			want: view{Shape: Object, ID: "null", IDShape: Null, Method: "m"},
		},
		{
			name: "boolean id is no request",
			in:   `{"id":true,"method":"m"}`,
			want: view{Shape: Object, ID: "true", IDShape: Bool, Method: "m"},
		},
		{
			name: "array id is no request",
			in:   `{"id":[1],"method":"m"}`,
			want: view{Shape: Object, ID: "[1]", IDShape: Array, Method: "m"},
		},
		{
			name: "object id is no request",
			in:   `{"id":{},"method":"m"}`,
			want: view{Shape: Object, ID: "{}", IDShape: Object, Method: "m"},
		},
		{
			name: "method of another type is none",
			in:   `{"id":1,"method":["m"]}`,
			want: view{Shape: Object, ID: "1", IDShape: Number},
		},
		{
			name: "envelope, as a plain message",
			in:   `{"provider":"s","payload":{"id":1}}`,
			want: view{Shape: Object, ProviderName: `"s"`, Payload: `{"id":1}`},
		},
		{name: "empty object", in: `{}`, want: view{Shape: Object}},
		{name: "empty key", in: `{"":0}`, want: view{Shape: Object}},
		{name: "array", in: ` [{"id":1},2] `, want: view{Shape: Array}},
		{name: "empty array", in: `[]`, want: view{Shape: Array}},
		{name: "string", in: `"id"`, want: view{Shape: String}},
		{name: "number", in: `-0.0e-1`, want: view{Shape: Number}},
		{name: "true", in: `true`, want: view{Shape: Bool}},
		{name: "false", in: `false`, want: view{Shape: Bool}},
		{name: "null", in: `null`, want: view{Shape: Null}},
	}
}
