package slice_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
	"github.com/mcp-toolhub/mcp-toolhub/persist/slice"
)

// question is one about a result in testdata/results, and how a model that reads the preview finds the answer.
type question struct {
	result string
	ask    string // arguments of a slice without its id, or "" where the preview answers
	answer string
}

// questions are about what servers from npm answered: filesystem (read_text_file, read_media_file, directory_tree), memory
// (create_entities, create_relations, read_graph, search_nodes) and everything (get-tiny-image, get-annotated-message).
var questions = [...]question{
	{"text-architecture", `"grep":"ends child processes"`, "`internal/guard`"},
	{"text-records", `"grep":"mode 0600"`, "Only you can read it"},
	{"text-protocol", ``, "from 2024-11-05 to 2026-07-28"},
	{"text-changelog", `"grep":"ttlMs","context":1`, "cacheScope"},
	{"text-license", ``, "limitations under the License"},
	{"text-gosource", `"grep":"^func newTransferWriter"`, "newTransferWriter(r any)"},
	{"text-sort", `"grep":"^func IsSorted"`, "IsSorted(data Interface) bool"},
	{"text-gitlog", ``, "in 616 lines"},
	{"text-gotest", `"grep":"--- PASS: TestMayHold"`, "--- PASS: TestMayHold"},
	{"text-script", `"grep":"govulncheck@"`, "v1.1.4"},
	{"json-schema", `"pointer":"/$id"`, "https://github.com/mcp-toolhub/mcp-toolhub/"},
	{"json-lock", `"path":"$.packages['node_modules/@modelcontextprotocol/sdk'].version"`, `"1.32.2"`},
	{"json-packages", `"path":"$[?@.Name=='seal'].GoFiles"`, `"seal.go"`},
	{"json-tools", `"path":"$['tools/list'][*].tools[*].name","count":true`, `{"values":28}`},
	{"json-lines", `"grep":"internal/seal\""`, `"Name": "seal"`},
	{"json-tree", `"path":"$[?@.name=='seal'].children[*].name"`, `"seal_test.go"`},
	{"json-graph", `"path":"$.relations[?@.from=='persist/slice'].to"`, `"persist/preview"`},
	{"json-entities", `"pointer":"/structuredContent/entities","path":"$[?@.name=='internal/seal'].observations[0]"`, "Package seal"},
	{"json-relations", `"block":1,"path":"$[*]","count":true`, `{"values":22}`},
	{"json-search", `"path":"$.entities[?@.name=='internal/queue'].observations[0]"`, "Package queue"},
	{"table-zones", `"grep":"Europe/Vienna"`, "+4813+01620"},
	{"table-countries", `"grep":"^[A-Z]{2}\t","count":true`, `"matching_lines":249`},
	{"table-rates", ``, "2022-12-30,1.0666"},
	{"table-modules", `"grep":"andybalholm"`, "v1.2.6"},
	{"table-numstat", ``, "in 328 lines"},
	{"table-packages", `"grep":"^bash "`, "7164"},
	{"table-glossary", `"grep":"^. grant "`, "an answer that is remembered"},
	{"table-dpkg", `"grep":"^ii  bash "`, "GNU Bourne Again SHell"},
	{"table-ls", `"grep":" apt-get$"`, "51592"},
	{"table-errors", `"grep":"queue_full"`, "queue_full"},
	{"image-jpeg", ``, "image/jpeg, 150 x 103 pixels, 21,459 bytes"},
	{"image-progressive", ``, "image/jpeg, 150 x 103 pixels, 3,279 bytes"},
	{"image-q50", ``, "image/jpeg, 150 x 103 pixels, 3,608 bytes"},
	{"image-cmyk", ``, "image/jpeg, 150 x 103 pixels, 19,477 bytes"},
	{"image-gif", `"block":1,"bytes":"0-5"`, "GIF89a"},
	{"image-triangle", ``, "image/gif, "},
	{"image-gray", `"block":1,"describe":true`, "14,709 bytes"},
	{"image-paletted", ``, "256 x 256 pixels"},
	{"image-tiny", ``, "20 x 20 pixels"},
	{"image-annotated", ``, "Error: Operation failed"},
}

// TestQuestions: what is asked about a real result is answered by its preview and slices alone.
func TestQuestions(t *testing.T) {
	t.Parallel()
	asked := make(map[string]bool)
	for _, q := range questions {
		asked[q.result] = true
		t.Run(q.result, func(t *testing.T) {
			t.Parallel()
			limit := 2500
			if strings.HasPrefix(q.result, "image") {
				limit = 1500
			}
			result := readResult(t, q.result)
			if utf8.RuneCount(result) <= limit {
				t.Fatalf("the result has %d characters: it needs no preview", len(result))
			}
			content := preview.Of(result, limit)
			var read strings.Builder
			for _, block := range content {
				text, _ := rawjson.GetString(block, "text")
				fmt.Fprintln(&read, text)
			}
			if q.ask != "" {
				r, err := slice.Parse([]byte(`{"id":"r",` + q.ask + `}`))
				if err != nil {
					t.Fatal(err)
				}
				a, err := slice.Read(t.Context(), result, r, limit)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&read, string(a.Data), a.Note)
			}
			if !strings.Contains(read.String(), q.answer) {
				t.Errorf("nothing says %q: %s", q.answer, read.String())
			}
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "results", "*.gz"))
	if err != nil || len(files) != len(asked) {
		t.Errorf("%d results, questions about %d: %v", len(files), len(asked), err)
	}
}

func readResult(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "results", name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	result, err := io.ReadAll(unpacked)
	if err != nil || !json.Valid(result) {
		t.Fatal(err, "or no JSON")
	}
	return result
}
