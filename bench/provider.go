package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/coder/websocket"
)

// maxFrame bounds a frame, in bytes: the largest payload and room around it.
const maxFrame = 1 << 20

// serveProvider holds a slot at url (ws://host/provider/<slot>) and answers
// until ctx ends. It does as little as a provider can, so that what is measured
// is the broker.
func serveProvider(ctx context.Context, url string, stderr io.Writer) error {
	conn, err := dialProvider(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.CloseNow() }()
	announce(stderr, url)
	var frame bytes.Buffer
	var answer []byte
	for {
		_, message, err := conn.Reader(ctx)
		if err == nil {
			frame.Reset()
			_, err = frame.ReadFrom(message)
		}
		if err == nil {
			answer = answerFrame(answer[:0], frame.Bytes())
			if len(answer) > 0 {
				err = conn.Write(ctx, websocket.MessageText, answer)
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("provider at %s: %w", url, err)
		}
	}
}

func dialProvider(ctx context.Context, url string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}
	conn.SetReadLimit(maxFrame)
	return conn, nil
}

// answerFrame appends the answer to a request; a notification has none.
func answerFrame(dst, frame []byte) []byte {
	id, method := member(frame, "id"), member(frame, "method")
	if id == nil || len(method) < 2 {
		return dst
	}
	return appendAnswer(dst, id, string(method[1:len(method)-1]), frame)
}
