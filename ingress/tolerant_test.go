package ingress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMendRequestLine: only percent signs of the first line that begin no valid
// escape are escaped (F-02, regression 13).
func TestMendRequestLine(t *testing.T) {
	tests := []struct{ in, want string }{
		{"GET /provider/%zz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /provider/%25zz HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"GET /% HTTP/1.1\r\n", "GET /%25 HTTP/1.1\r\n"},
		{"GET /%%41 HTTP/1.1\r\n", "GET /%25%41 HTTP/1.1\r\n"},
		{"GET /%4 HTTP/1.1\r\n", "GET /%254 HTTP/1.1\r\n"},
		{"GET /a%", "GET /a%"},
		{"GET /a%\n", "GET /a%25\n"},
		{"GET /a%2\n", "GET /a%252\n"},
		{"GET /a%2Fb%c3%A9 HTTP/1.1\r\nX: %zz\r\n\r\n%zz", "GET /a%2Fb%c3%A9 HTTP/1.1\r\nX: %zz\r\n\r\n%zz"},
		{"\n%zz", "\n%zz"},
		{"", ""},
	}
	for _, test := range tests {
		if got := string(mendRequestLine([]byte(test.in))); got != test.want {
			t.Errorf("mendRequestLine(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

// reads is a connection whose reads return the given chunks, then err.
type reads struct {
	net.Conn
	chunks [][]byte
	err    error
}

func (r *reads) Read(p []byte) (int, error) {
	if len(r.chunks) == 0 {
		return 0, r.err
	}
	n := copy(p, r.chunks[0])
	if r.chunks[0] = r.chunks[0][n:]; len(r.chunks[0]) == 0 {
		r.chunks = r.chunks[1:]
	}
	return n, nil
}

// readAll reads with buffers of the given sizes in turn.
func readAll(conn net.Conn, sizes []int) ([]byte, error) {
	var got []byte
	for i := 0; ; i++ {
		p := make([]byte, sizes[i%len(sizes)])
		n, err := conn.Read(p)
		got = append(got, p[:n]...)
		if err != nil {
			return got, err
		}
	}
}

// TestTolerantConn: however the bytes arrive and are asked for, what comes out is
// the mended line and the rest untouched, then the connection's own error.
func TestTolerantConn(t *testing.T) {
	cause := errors.New("connection reset")
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`GET /[a%zZ2F ]{0,20}`).Draw(t, "line")
		body := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "body")
		sent := append([]byte(line+"\n"), body...)
		want := append(mendRequestLine([]byte(line+"\n")), body...)
		got, err := readAll(&tolerantConn{Conn: &reads{chunks: split(t, sent), err: cause}}, rapid.SliceOfN(rapid.IntRange(1, 64), 1, 5).Draw(t, "sizes"))
		if !errors.Is(err, cause) {
			t.Fatalf("error %v, want %v", err, cause)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("sent %q, read %q, want %q", sent, got, want)
		}
	})
}

func split(t *rapid.T, b []byte) [][]byte {
	var chunks [][]byte
	for len(b) > 0 {
		n := rapid.IntRange(1, len(b)).Draw(t, "chunk")
		chunks = append(chunks, bytes.Clone(b[:n]))
		b = b[n:]
	}
	return chunks
}

// TestTolerantConnByteByByte: the line may come in single bytes.
func TestTolerantConnByteByByte(t *testing.T) {
	const sent = "GET /provider/%zz HTTP/1.1\r\nHost: x\r\n\r\n%zz"
	r := &reads{err: io.EOF}
	for i := range len(sent) {
		r.chunks = append(r.chunks, []byte(sent[i:i+1]))
	}
	got, err := readAll(&tolerantConn{Conn: r}, []int{4096})
	if want := strings.Replace(sent, "%zz", "%25zz", 1); string(got) != want || !errors.Is(err, io.EOF) {
		t.Errorf("read %q, %v; want %q, EOF", got, err, want)
	}
}

// TestTolerantConnNoNewline: a line beyond the bound, or cut off, is passed on as
// it came, and no more than the bound is kept.
func TestTolerantConnNoNewline(t *testing.T) {
	long := "GET /" + strings.Repeat("%z", maxRequestLine)
	for _, sent := range []string{long, "GET /%zz"} {
		inner := &reads{chunks: [][]byte{[]byte(sent)}, err: io.EOF}
		conn := &tolerantConn{Conn: inner}
		first := make([]byte, 100)
		n, err := conn.Read(first)
		if err != nil {
			t.Fatalf("first read: %v", err)
		}
		if kept := n + len(conn.pending); kept > maxRequestLine+512 {
			t.Errorf("%d bytes are kept of a line without end", kept)
		}
		rest, err := readAll(conn, []int{1000})
		if got := string(first[:n]) + string(rest); got != sent || !errors.Is(err, io.EOF) {
			t.Errorf("a line of %d bytes came out as %d, %v", len(sent), len(got), err)
		}
	}
}

// TestTolerantListener: net/http serves a target it would refuse, and the target
// as sent is known (spec 01 8.1). Later requests of the connection are net/http's.
func TestTolerantListener(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, RawTarget(r)+" "+r.URL.Path)
	}))
	server.Listener = TolerantListener{server.Listener}
	server.Config.ConnContext = ConnContext
	server.Start()
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer conn.Close()
	requests := "GET /%zz/mcp HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"
	if _, err := io.WriteString(conn, requests); err != nil {
		t.Fatalf("write: %v", err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	for _, want := range []string{"/%zz/mcp /%zz/mcp", "/b /b", "400 Bad Request"} {
		_, rest, found := strings.Cut(string(got), want)
		if !found {
			t.Fatalf("answers lack %q: %q", want, got)
		}
		got = []byte(rest)
	}
}

// FuzzMendRequestLine: the result holds no malformed escape in its first line,
// escaping is undone by taking the inserted "25" out again, and the rest is
// untouched.
func FuzzMendRequestLine(f *testing.F) {
	for _, seed := range []string{"GET /%zz HTTP/1.1\r\n\r\n%zz", "GET /%2F%2 HTTP/1.1\n", "%", "\n", "%25\n%", "a%%%\nb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := mendRequestLine(bytes.Clone(b))
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		if !found {
			if !bytes.Equal(got, b) {
				t.Fatalf("without a line end %q became %q", b, got)
			}
			return
		}
		mended, mendedRest, _ := bytes.Cut(got, []byte{'\n'})
		if !bytes.Equal(mendedRest, rest) {
			t.Fatalf("the rest %q became %q", rest, mendedRest)
		}
		for i, j := 0, 0; i < len(line) || j < len(mended); i, j = i+1, j+1 {
			if i >= len(line) || j >= len(mended) || line[i] != mended[j] {
				t.Fatalf("%q became %q", line, mended)
			}
			valid := i+2 < len(line) && isHex(line[i+1]) && isHex(line[i+2])
			if line[i] != '%' || valid {
				continue
			}
			if !bytes.HasPrefix(mended[j+1:], []byte("25")) {
				t.Fatalf("the percent sign at %d of %q is not escaped in %q", i, line, mended)
			}
			j += 2
		}
	})
}
