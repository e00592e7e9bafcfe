package wire

import "testing"

// F-29 and row 61 of spec 07: one event is one data line, U+2028 no line break.
func TestAppendEvent(t *testing.T) {
	for _, c := range []struct {
		id    uint64
		frame string
		want  string
	}{
		{0, `{"id":1}`, "event: message\ndata: {\"id\":1}\n\n"},
		{42, `{"id":1}`, "event: message\nid: 42\ndata: {\"id\":1}\n\n"},
		{0, "{\n  \"id\": 1,\r\n\r\"t\":\"\\n\"}\n", "event: message\ndata: {   \"id\": 1,   \"t\":\"\\n\"} \n\n"},
		{18446744073709551615, "\"\u2028\u2029\u0085\"", "event: message\nid: 18446744073709551615\ndata: \"\u2028\u2029\u0085\"\n\n"},
	} {
		frame := []byte(c.frame)
		if got := string(AppendEvent([]byte(": open\n\n"), c.id, frame)); got != ": open\n\n"+c.want {
			t.Errorf("AppendEvent(%d, %q) = %q, want %q", c.id, c.frame, got, c.want)
		}
		if string(frame) != c.frame {
			t.Errorf("AppendEvent changed its frame to %q", frame)
		}
	}
}

func TestOneLine(t *testing.T) {
	in := []byte("{\"a\":1}")
	if got := OneLine(in); &got[0] != &in[0] {
		t.Error("OneLine copied a frame without line breaks")
	}
	in = []byte("{\r\n}")
	if got := OneLine(in); string(got) != "{  }" || string(in) != "{\r\n}" {
		t.Errorf("OneLine = %q, source %q", got, in)
	}
}
