package code

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	defaultLines  = 200
	mostLineBytes = 4096

	// mostTextBytes bounds the text of one result. Text stands in a result twice, with escapes, and a message on
	// stdio ends at 16 MiB.
	mostTextBytes = 1 << 20
)

// fileContent is the structured content of read_file.
type fileContent struct {
	Path           string `json:"path"`
	Binary         bool   `json:"binary"`
	SizeBytes      int64  `json:"size_bytes"`
	MIMEType       string `json:"mime_type,omitempty"`
	ErrorCode      string `json:"error_code,omitempty"`
	StartLine      int    `json:"start_line,omitempty"`
	EndLine        *int   `json:"end_line,omitempty"`
	TotalLines     *int   `json:"total_lines,omitempty"`
	Truncated      bool   `json:"truncated"`
	NextStartLine  int    `json:"next_start_line,omitempty"`
	TruncatedLines []int  `json:"truncated_lines,omitempty"`
	Encoding       string `json:"encoding,omitempty"`

	// Text is here as well as in content: clients that are given structured content show the model nothing else.
	Text *string `json:"text,omitempty"`
}

func (t *Toolset) readFile(ctx context.Context, e *tool.Execution) (answer, error) {
	args := struct {
		Path      string
		StartLine integer `json:"start_line"`
		MaxLines  integer `json:"max_lines"`
	}{StartLine: 1, MaxLines: defaultLines}
	if err := readArguments(e, &args); err != nil {
		return answer{}, err
	}
	path, err := t.locate(args.Path)
	if err != nil {
		return answer{}, err
	}
	f, err := t.reading(e).first(path)
	if err != nil {
		return answer{}, openFailure(args.Path, err)
	}
	defer f.Close()
	if f.info.IsDir() {
		return answer{}, invalid(codeIsDirectory, "%q is a directory: list it with list_dir", args.Path)
	}
	out := fileContent{Path: t.show(path), SizeBytes: f.info.Size(), Encoding: encodingUTF8}
	br := bufio.NewReaderSize(&source{check: ctx.Err, r: f}, 64<<10)
	head, err := br.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return answer{}, readFailure(args.Path, err)
	}
	if kind := binaryType(head); kind != "" {
		return binaryAnswer(out, kind), nil
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		out.Encoding = encodingUTF8BOM
		br.Discard(3)
	}
	if err := out.readLines(&lines{br: br}, int(args.StartLine), int(args.MaxLines)); err != nil {
		return answer{}, readFailure(args.Path, err)
	}
	return answer{text: *out.Text, note: out.note(), structured: out}, nil
}

// readLines fills in lines start to start+count-1, or fewer where the text grows too large for one result.
func (c *fileContent) readLines(l *lines, start, count int) error {
	total := 0
	for ; total < start-1; total++ {
		if _, err := l.next(0); errors.Is(err, io.EOF) {
			return startFailure(start, total)
		} else if err != nil {
			return err
		}
	}
	var text strings.Builder
	room := mostTextBytes
	for total < start-1+count {
		next, err := l.next(mostLineBytes)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		total++
		if next.cut() {
			next.text = next.text[:cutWithinRune(next.text)]
			c.TruncatedLines = append(c.TruncatedLines, total)
		}
		if !utf8.Valid(next.text) {
			next.text = bytes.ToValidUTF8(next.text, []byte("\uFFFD"))
			c.Encoding = encodingLossy
		}
		text.Write(next.text)
		text.WriteString(next.ending)
		if room -= len(next.text); room < mostLineBytes {
			break
		}
	}
	if total < start && start > 1 {
		return startFailure(start, total)
	}
	switch _, err := l.br.Peek(1); {
	case errors.Is(err, io.EOF):
		c.TotalLines = &total
	case err != nil:
		return err
	default:
		c.Truncated, c.NextStartLine = true, total+1
	}
	body := text.String()
	c.StartLine, c.EndLine, c.Text = start, &total, &body
	return nil
}

// note tells in words what the text does not show.
func (c *fileContent) note() string {
	var parts []string
	if c.Truncated {
		parts = append(parts, fmt.Sprintf("lines %d to %d; more follow: go on with start_line=%d", c.StartLine,
			*c.EndLine, c.NextStartLine))
	}
	if n := len(c.TruncatedLines); n > 0 {
		parts = append(parts, fmt.Sprintf("%d lines cut to %d bytes: %v", n, mostLineBytes,
			c.TruncatedLines[:min(n, 20)]))
	}
	if c.Encoding == encodingLossy {
		parts = append(parts, "bytes that are not UTF-8 are shown as U+FFFD")
	}
	return noteOf(parts)
}

func binaryAnswer(c fileContent, kind string) answer {
	c.Binary, c.MIMEType, c.ErrorCode, c.Encoding = true, kind, codeBinaryFile, ""
	hint := "choose a text file"
	if strings.HasPrefix(kind, "text/") {
		hint = "convert it to UTF-8 first"
	}
	return answer{isError: true, structured: c, text: fmt.Sprintf(
		"%q is a binary file (%s, %d bytes) and is not shown: %s", c.Path, kind, c.SizeBytes, hint)}
}

func startFailure(start, total int) *tool.Failure {
	return invalid(codeStartLine, "start_line %d is past the end: the file has %d lines", start, total)
}

func readFailure(arg string, err error) error {
	var f *tool.Failure
	if errors.As(err, &f) {
		return f
	}
	return &tool.Failure{Class: tool.ClassExecutionFailed, Code: codeReadFailed, Cause: err,
		Message: fmt.Sprintf("reading %q failed: try again", arg)}
}

// cutWithinRune returns the length of b without a character that was cut at its end.
func cutWithinRune(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			return i
		}
	}
	return len(b)
}
