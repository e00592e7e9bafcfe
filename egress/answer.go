package egress

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"mcpbroker/actors/wire"
)

// Header values shared by all answers; they must not be changed.
var jsonType = []string{"application/json; charset=utf-8"}

// WriteJSON writes a whole answer.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	if len(body) > atOnce {
		ctl := http.NewResponseController(w)
		_ = ctl.SetWriteDeadline(time.Now().Add(answerTimeout))
		defer func() { _ = ctl.SetWriteDeadline(time.Time{}) }()
	}
	_, _ = w.Write(body)
}

// Fail writes a refusal of the HTTP layer (spec 01 5.1).
func Fail(w http.ResponseWriter, status int, code, description string) {
	body := append([]byte(`{"error":`), wire.AppendString(nil, code)...)
	body = append(body, `,"error_description":`...)
	WriteJSON(w, status, append(wire.AppendString(body, description), '}'))
}

// FailOrigin refuses a request with the description CheckOrigin gave.
func FailOrigin(w http.ResponseWriter, description string) {
	Fail(w, http.StatusForbidden, "invalid_origin", description)
}

// FailForeign refuses a request on a session of another caller.
func FailForeign(w http.ResponseWriter) {
	Fail(w, http.StatusForbidden, "forbidden", "This session belongs to another caller. Open a session of your own.")
}

// NewSessionID returns a random UUID.
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// How long a body may take to arrive, and a large answer to be taken.
const (
	bodyTimeout   = time.Minute
	answerTimeout = 2 * time.Minute
)

// atOnce is what is read, and written, without a second thought: that much fits
// into the buffers on the way.
const atOnce = 64 << 10

// ReadBody reads a whole body of at most limit bytes (F-31, F-36). A refusal has
// been answered.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, bool) {
	if r.ContentLength > int64(limit) {
		failTooLarge(w, limit)
		return nil, false
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = ctl.SetReadDeadline(time.Time{}) }()
	var body []byte
	var err error
	if r.ContentLength >= 0 {
		body, err = readSized(r.Body, int(r.ContentLength))
	} else {
		body, err = io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		Fail(w, http.StatusRequestTimeout, "request_timeout", fmt.Sprintf("The body did not arrive within %s", bodyTimeout))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		Fail(w, http.StatusBadRequest, "parse_error", "Body is shorter than its Content-Length")
	case err != nil:
		Fail(w, http.StatusBadRequest, "parse_error", "Body could not be read to its end")
	case len(body) > limit:
		failTooLarge(w, limit)
	default:
		return body, true
	}
	return nil, false
}

// readSized reads a body of known size. Memory for a large one is taken only
// once some of it has come.
func readSized(from io.Reader, size int) ([]byte, error) {
	body := make([]byte, min(size, atOnce))
	if _, err := io.ReadFull(from, body); err != nil || size <= atOnce {
		return body, err
	}
	whole := make([]byte, size)
	n := copy(whole, body)
	_, err := io.ReadFull(from, whole[n:])
	return whole, err
}

func failTooLarge(w http.ResponseWriter, limit int) {
	w.Header().Set("Connection", "close")
	Fail(w, http.StatusRequestEntityTooLarge, "payload_too_large", wire.TooLarge(limit).Message)
}

// Endpoint is the path of a request as the client spelled it, for messages.
func Endpoint(r *http.Request) string {
	path, _, _ := strings.Cut(Target(r.RequestURI), "?")
	return path
}
