package preview

import (
	"bytes"
	"encoding/binary"
)

// pixels returns the width and height that the header of a PNG, JPEG, GIF or WebP file says, and
// that file's media type. ok is false for anything else, and for a header that is not whole.
func pixels(head []byte) (mediaType string, width, height int, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		if len(head) < 24 || string(head[12:16]) != "IHDR" {
			return "image/png", 0, 0, false
		}
		return "image/png", int(binary.BigEndian.Uint32(head[16:])), int(binary.BigEndian.Uint32(head[20:])), true
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		if len(head) < 10 {
			return "image/gif", 0, 0, false
		}
		return "image/gif", int(binary.LittleEndian.Uint16(head[6:])), int(binary.LittleEndian.Uint16(head[8:])), true
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		width, height, ok = jpegPixels(head)
		return "image/jpeg", width, height, ok
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		width, height, ok = webpPixels(head)
		return "image/webp", width, height, ok
	}
	return "", 0, 0, false
}

// jpegPixels walks the segments up to the one that begins the frame.
func jpegPixels(head []byte) (width, height int, ok bool) {
	for i := 2; i+9 <= len(head); {
		if head[i] != 0xff {
			return 0, 0, false
		}
		marker := head[i+1]
		switch {
		case marker == 0xff: // padding
			i++
			continue
		case marker == 0x01 || marker >= 0xd0 && marker <= 0xd7: // without a length
			i += 2
			continue
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc: // start of frame
			return int(binary.BigEndian.Uint16(head[i+7:])), int(binary.BigEndian.Uint16(head[i+5:])), true
		case marker == 0xd9 || marker == 0xda: // end of image, start of scan
			return 0, 0, false
		}
		i += 2 + int(binary.BigEndian.Uint16(head[i+2:]))
	}
	return 0, 0, false
}

// webpPixels reads the first chunk: lossy, lossless or extended.
func webpPixels(head []byte) (width, height int, ok bool) {
	if len(head) < 30 {
		return 0, 0, false
	}
	switch string(head[12:16]) {
	case "VP8 ":
		if string(head[23:26]) != "\x9d\x01\x2a" {
			return 0, 0, false
		}
		return int(binary.LittleEndian.Uint16(head[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(head[28:]) & 0x3fff),
			true
	case "VP8L":
		if head[20] != 0x2f {
			return 0, 0, false
		}
		bits := binary.LittleEndian.Uint32(head[21:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X":
		return 1 + int(uint24(head[24:])), 1 + int(uint24(head[27:])), true
	}
	return 0, 0, false
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
