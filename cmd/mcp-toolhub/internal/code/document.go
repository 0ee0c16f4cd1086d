package code

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// byteOrderMark begins some files of text.
const byteOrderMark = "\xef\xbb\xbf"

// document is the text of a file without what stays as it is whatever is written: the byte order
// mark at its beginning, and the line endings where all of them are CRLF.
type document struct {
	body   string // with \n for CRLF where crlf is set
	bom    bool
	crlf   bool
	binary bool // no text: there is no body
}

// parseDocument reads the content of a file. What is not UTF-8, or holds a NUL, is no text.
func parseDocument(raw []byte) document {
	if bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw) {
		return document{binary: true}
	}
	return documentOf(string(raw))
}

func documentOf(text string) document {
	d := document{}
	d.body, d.bom = strings.CutPrefix(text, byteOrderMark)
	if d.crlf = allCRLF(d.body); d.crlf {
		d.body = toLF(d.body)
	}
	return d
}

// bytes is the content of the file.
func (d *document) bytes() []byte {
	body := d.body
	if d.crlf {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	if d.bom {
		body = byteOrderMark + body
	}
	return []byte(body)
}

// lineEndings names those of the file.
func (d *document) lineEndings() string {
	switch n := strings.Count(d.body, "\n"); {
	case n == 0:
		return "none"
	case d.crlf:
		return "crlf"
	case strings.Contains(d.body, "\r\n"):
		return "mixed"
	}
	return "lf"
}

// like gives d the byte order mark and the line endings of the text that it replaces.
func (d document) like(before *document) document {
	if before == nil || before.binary {
		return d
	}
	d.bom = d.bom || before.bom
	switch before.lineEndings() {
	case "crlf":
		d.crlf = d.crlf || !strings.Contains(d.body, "\r\n")
	case "lf":
		d.crlf = false
	}
	return d
}

// allCRLF reports whether s has line endings and every one is CRLF.
func allCRLF(s string) bool {
	n := strings.Count(s, "\n")
	return n > 0 && strings.Count(s, "\r\n") == n
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// countLines counts the lines of s. The last one need not end.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
