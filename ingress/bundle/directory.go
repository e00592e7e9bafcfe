package bundle

import (
	"bytes"
	"encoding/binary"
)

// Signatures and sizes of ZIP records (APPNOTE 4.3).
const (
	endRecord     = "PK\x05\x06"
	endSize       = 22
	maxComment    = 65535
	headerRecord  = "PK\x01\x02"
	headerSize    = 46
	zip64Locator  = "PK\x06\x07"
	locatorSize   = 20
	placeholder16 = 0xffff
	placeholder32 = 0xffffffff
)

// checkDirectory walks the central directory before anything is allocated for it
// and returns the archive without the bytes that trail it. It leaves one reading
// of the file: nothing stands before the archive, and the directory is where its
// end record says and nowhere else.
func checkDirectory(content []byte, maxEntries int) ([]byte, error) {
	end := bytes.LastIndex(content[max(0, len(content)-maxComment-endSize):], []byte(endRecord))
	if end < 0 {
		return nil, refusal(ErrArchive, "not a ZIP archive (no end of central directory)")
	}
	end += max(0, len(content)-maxComment-endSize)
	record := content[end:]
	if len(record) < endSize || len(record)-endSize < int(u16(record, 20)) {
		return nil, refusal(ErrArchive, "not a ZIP archive (its end is cut off)")
	}
	disk, count, size, offset := u16(record, 4)|u16(record, 6), u16(record, 10), u32(record, 12), u32(record, 16)
	if count == placeholder16 || size == placeholder32 || offset == placeholder32 ||
		end >= locatorSize && string(content[end-locatorSize:end-locatorSize+4]) == zip64Locator {
		return nil, refusal(ErrArchive, "ZIP64 archives are not supported")
	}
	if disk != 0 || u16(record, 8) != count {
		return nil, refusal(ErrArchive, "not a ZIP archive (one part of several)")
	}
	if uint64(offset)+uint64(size) != uint64(end) {
		return nil, refusal(ErrArchive, "not a ZIP archive (its central directory is not where it says)")
	}
	if int(count) > maxEntries {
		return nil, tooMany(maxEntries)
	}
	walked, err := walkDirectory(content[:end], int(offset), maxEntries)
	if err != nil {
		return nil, err
	}
	if walked != int(count) {
		return nil, refusal(ErrArchive, "corrupt ZIP: %d entries where its end says %d", walked, count)
	}
	return content[:end+endSize+int(u16(record, 20))], nil
}

// walkDirectory counts the headers from offset to the end of content.
func walkDirectory(content []byte, offset, maxEntries int) (int, error) {
	count := 0
	for at := offset; at < len(content); count++ {
		header := content[at:]
		if len(header) < headerSize || string(header[:4]) != headerRecord {
			return 0, refusal(ErrArchive, "corrupt ZIP: bad central directory header at offset %d", at)
		}
		length := headerSize + int(u16(header, 28)) + int(u16(header, 30)) + int(u16(header, 32))
		if length > len(header) {
			return 0, refusal(ErrArchive, "corrupt ZIP: bad central directory header at offset %d", at)
		}
		if u32(header, 20) == placeholder32 || u32(header, 24) == placeholder32 || u32(header, 42) == placeholder32 {
			return 0, refusal(ErrArchive, "ZIP64 archives are not supported")
		}
		if count == maxEntries {
			return 0, tooMany(maxEntries)
		}
		at += length
	}
	return count, nil
}

func tooMany(maxEntries int) error {
	return refusal(ErrLimit, "the archive has more than %d entries", maxEntries)
}

func u16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
