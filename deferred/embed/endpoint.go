package embed

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// maxAnswer bounds what is read of an answer: 64 vectors of some thousand numbers are a few megabytes.
const maxAnswer = 32 << 20

// maxDimensions bounds a vector.
const maxDimensions = 16 << 10

// ask gets the vectors of texts, each of length one. Errors hold neither the key nor what the endpoint wrote.
func (s *Store) ask(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": s.config.Model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("embeddings: write request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.config.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("embeddings: url is no URL: write one that is")
	}
	req.Header.Set("Content-Type", "application/json")
	if s.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.config.Key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, unreached(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // the connection is used again
		return nil, fmt.Errorf("embeddings: the endpoint answers %d: check url, model and key", resp.StatusCode)
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("embeddings: read the answer: %w", ctx.Err())
		}
		return nil, errors.New("embeddings: the answer is not that of an embeddings endpoint: check url")
	}
	out := make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= len(out) || out[d.Index] != nil || !unit(d.Embedding) {
			return nil, errors.New("embeddings: the answer has no usable vector for each text: check model")
		}
		out[d.Index] = d.Embedding
	}
	for _, v := range out {
		if v == nil {
			return nil, errors.New("embeddings: the answer lacks vectors: check model")
		}
	}
	return out, nil
}

// unreached says why the endpoint was not reached. Callers must not learn its address or URL from that.
func unreached(err error) error {
	why := "it cannot be reached: check url"
	var dns *net.DNSError
	var code syscall.Errno
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		why = "it did not answer in time: raise timeout if that is usual"
	case errors.As(err, &dns):
		why = "its host is not found: check url"
	case errors.As(err, &code):
		why = code.Error() + ": check that it runs"
	}
	return errors.New("embeddings: ask the endpoint: " + why)
}

// unit makes a vector one of length one, if it can be.
func unit(v []float32) bool {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if len(v) == 0 || len(v) > maxDimensions || sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false
	}
	length := float32(math.Sqrt(sum))
	for i := range v {
		v[i] /= length
	}
	return true
}

func (s *Store) file(key string) string { return filepath.Join(s.config.Dir, key[:2], key+vectorFile) }

// Files of that age are removed at a start: a tool that is still there is asked for again.
const maxAge = 30 * 24 * time.Hour

// sweep removes what is left of tools, texts and models that are no more. Other files are not touched.
func (s *Store) sweep(ctx context.Context) {
	if s.config.Dir == "" {
		return
	}
	folders, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return // there is nothing yet
	}
	for _, folder := range folders {
		if ctx.Err() != nil {
			return
		}
		files, err := os.ReadDir(filepath.Join(s.config.Dir, folder.Name()))
		if err != nil || len(folder.Name()) != 2 {
			continue
		}
		for _, f := range files {
			info, err := f.Info()
			ours := strings.HasSuffix(f.Name(), vectorFile) || strings.HasPrefix(f.Name(), statefile.Unfinished)
			if err == nil && ours && info.Mode().IsRegular() && time.Since(info.ModTime()) > maxAge {
				_ = os.Remove(filepath.Join(s.config.Dir, folder.Name(), f.Name())) // or the next start does
			}
		}
	}
}

// vectorFile ends the names of files that hold vectors.
const vectorFile = ".f32"

// load reads a vector from the disk; none if it is not there or not whole.
func (s *Store) load(key string) []float32 {
	if s.config.Dir == "" {
		return nil
	}
	data, err := os.ReadFile(s.file(key))
	if err != nil || len(data) == 0 || len(data)%4 != 0 || len(data) > 4*maxDimensions {
		return nil
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	if !unit(v) {
		return nil
	}
	return v
}

// save keeps a vector on the disk. Where that cannot be done it is asked for again after the next start, and no more is
// lost.
func (s *Store) save(key string, v []float32) {
	if s.config.Dir == "" {
		return
	}
	data := make([]byte, 0, 4*len(v))
	for _, f := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	_ = statefile.WriteCache(s.file(key), data)
}
