package main

import "bytes"

// mcpRevision is what both servers negotiate with every client.
const mcpRevision = "2025-06-18"

// appendAnswer appends the response of the echo server that the bare server and
// the provider both play. The tool "echo" gives its argument "message" back.
func appendAnswer(dst, id []byte, method string, frame []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	switch method {
	case "initialize":
		dst = append(dst, `,"result":{"protocolVersion":"`+mcpRevision+`","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`...)
	case "tools/call":
		dst = append(dst, `,"result":{"content":[{"type":"text","text":`...)
		dst = append(dst, member(frame, "message")...)
		dst = append(dst, `}]}}`...)
	default:
		dst = append(dst, `,"error":{"code":-32601,"message":"Method not found"}}`...)
	}
	return dst
}

// member is the raw value of the first member of that name, nil without one. It
// is no JSON parser: the load sends no space between tokens, no escape and no
// member name twice, which spares both servers a cost that is not the broker's.
func member(frame []byte, name string) []byte {
	_, value, found := bytes.Cut(frame, []byte(`"`+name+`":`))
	if !found {
		return nil
	}
	var end int
	if quoted, isString := bytes.CutPrefix(value, []byte(`"`)); isString {
		end = bytes.IndexByte(quoted, '"') + len(`""`)
	} else {
		end = bytes.IndexAny(value, ",}")
	}
	return value[:min(max(end, 0), len(value))]
}
