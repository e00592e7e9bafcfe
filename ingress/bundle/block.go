package bundle

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The block a packer appends: header, length of the PKCS#7 as uint32 little endian,
// PKCS#7, footer. What it signs is every byte before it.
const (
	blockHeader = "MCPB_SIG_V1"
	blockFooter = "MCPB_SIG_END"
	blockLength = 4
)

var errBlock = errors.New("its block at the end of the file is malformed")

// splitBlock returns what is signed and the PKCS#7; without a block the latter is
// nil. The footer has to be the end of the file: bytes behind it would be unsigned.
// With a footer that belongs to no block the error is errBlock.
func splitBlock(raw []byte) (content, pkcs7 []byte, err error) {
	rest, ok := bytes.CutSuffix(raw, []byte(blockFooter))
	if !ok {
		return raw, nil, nil
	}
	from := max(0, len(rest)-maxBlock-blockLength-len(blockHeader))
	// Only a header that the length agrees with is one: the PKCS#7 may contain these
	// letters too.
	for end := len(rest); ; {
		i := bytes.LastIndex(rest[from:end], []byte(blockHeader))
		if i < 0 {
			return raw, nil, errBlock
		}
		at := from + i
		body := rest[at+len(blockHeader):]
		if len(body) > blockLength && uint64(binary.LittleEndian.Uint32(body)) == uint64(len(body)-blockLength) {
			return raw[:at], body[blockLength:], nil
		}
		end = at + len(blockHeader) - 1
	}
}
