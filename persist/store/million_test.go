//go:build e2e

package store_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// millionVariable names the environment variable that lets TestMillion run, as .ci/long does.
const millionVariable = "TOOLHUB_MILLION"

// TestMillion: with 1,000,000 calls a filtered list takes less than 50 ms, and full text less than 200 ms; of each the median of five.
func TestMillion(t *testing.T) { // not parallel: it measures
	if os.Getenv(millionVariable) == "" {
		t.Skip("takes minutes and 3 GB of disk: set " + millionVariable)
	}
	dir := t.TempDir()
	writeMillion(t, filepath.Join(dir, "journal"))
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t, dir)
			began := time.Now()
			if err := store.FillUp(t.Context(), s, filepath.Join(dir, "journal")); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("filled in %s, %s a call; %d MB", took.Round(time.Second), took/million, millionBytes(t, name, dir)>>20)
			lookUpMillion(t, s)
		})
	}
}

// millionBytes is what the store takes on the disk.
func millionBytes(t *testing.T, kind, dir string) (bytes int64) {
	if kind == "sqlite" {
		info, err := os.Stat(filepath.Join(dir, store.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	db, err := sql.Open("pgx", databaseIn(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("VACUUM ANALYZE"); err != nil { // which the server does by itself within minutes
		t.Fatal(err)
	}
	if err := db.QueryRow("SELECT pg_database_size(current_database())").Scan(&bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}

func lookUpMillion(t *testing.T, s store.Store) {
	is := func(pairs ...string) map[store.Column]string {
		all := make(map[store.Column]string)
		for i := 0; i < len(pairs); i += 2 {
			all[store.Column(pairs[i])] = pairs[i+1]
		}
		return all
	}
	at := func(share float64) time.Time {
		return millionBegan.Add(time.Duration(share * million * float64(time.Second)))
	}
	const listed, text = 50 * time.Millisecond, 200 * time.Millisecond
	for _, c := range []struct {
		name  string
		q     store.Query
		limit time.Duration
	}{
		{"all", store.Query{}, listed},
		{"a tool that is called often", store.Query{Is: is("tool", "mcp.server0.tool0")}, listed},
		{"a tool that is called seldom", store.Query{Is: is("tool", "mcp.server19.tool199")}, listed},
		{"server", store.Query{Is: is("server", "server3")}, listed},
		{"failed", store.Query{Is: is("status", "failed")}, listed},
		{"class that is rare", store.Query{Is: is("class", "timeout")}, listed},
		{"hour", store.Query{Since: at(0.5), Until: at(0.5).Add(time.Hour)}, listed},
		{"tool that is called often, in an hour long ago", store.Query{Since: at(0.1), Until: at(0.1).Add(time.Hour), Is: is("tool", "mcp.server0.tool0")}, listed},
		{"tool that is called often, and failed", store.Query{Is: is("tool", "mcp.server0.tool0", "status", "failed")}, listed},
		{"tool that is called often, class that is rare", store.Query{Is: is("tool", "mcp.server0.tool0", "class", "timeout")}, listed},
		{"actor, server and status", store.Query{Is: is("actor", "actor:user7", "server", "server1", "status", "failed")}, listed},
		{"tools of a pattern, called seldom", store.Query{Is: is("tool", "mcp.*.tool19?")}, listed},
		{"tools of a server, by a pattern", store.Query{Is: is("tool", "mcp.server3.*")}, listed},
		{"nearly all tools, by a pattern", store.Query{Is: is("tool", "mcp.server?.*")}, listed},
		{"all tools, by a pattern", store.Query{Is: is("tool", "mcp.*")}, listed},
		{"no tool, by a pattern", store.Query{Is: is("tool", "mcp.nobody.*")}, listed},
		{"tools of a server, by a pattern, class that is rare", store.Query{Is: is("tool", "mcp.server3.*", "class", "timeout")}, listed},
		{"word in most calls, tools of a pattern", store.Query{Text: "word0", Is: is("tool", "mcp.server3.*")}, text},
		{"word in most calls", store.Query{Text: "word0"}, text},
		{"rare word", store.Query{Text: "word4999"}, text},
		{"two words", store.Query{Text: "word0 word700"}, text},
		{"phrase", store.Query{Text: `"word0 word1"`}, text},
		{"beginning of a word", store.Query{Text: "word49*"}, text},
		{"word in most calls, tool that is called seldom", store.Query{Text: "word0", Is: is("tool", "mcp.server19.tool199")}, text},
		{"word in most calls, class that is rare", store.Query{Text: "word0", Is: is("class", "timeout")}, text},
		{"rare word, actor", store.Query{Text: "word4999", Is: is("actor", "actor:user7")}, text},
		{"rare word, tool that is called often", store.Query{Text: "word4999", Is: is("tool", "mcp.server0.tool0")}, text},
		{"two rare words", store.Query{Text: "word4000 word3000"}, text},
		{"word that nobody wrote", store.Query{Text: "nowhere"}, text},
		{"word that nobody wrote, tool that is called often", store.Query{Text: "nowhere", Is: is("tool", "mcp.server0.tool0")}, text},
		{"beginning of a word that nobody wrote", store.Query{Text: "nowh*"}, text},
	} {
		c.q.Limit = 50
		var all []time.Duration
		found := 0
		for range 5 {
			began := time.Now()
			found = len(list(t, s, c.q))
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		t.Logf("%-50s %8.2f ms (%.2f to %.2f), %d calls", c.name, ms(all[2]), ms(all[0]), ms(all[4]), found)
		if all[2] > c.limit {
			t.Errorf("%s: %s, and it may take %s", c.name, all[2], c.limit)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

const million = 1_000_000

var millionBegan = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// writeMillion writes a journal of as many calls, one a second. Tools, callers and words are used unevenly; one call in twenty has failed, and one
// in 10,000 by a timeout.
func writeMillion(t *testing.T, dir string) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "journal-20260101T000000.000Z-000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	tools, actors, words := rand.NewZipf(r, 1.2, 2, 199), rand.NewZipf(r, 1.1, 5, 49), rand.NewZipf(r, 1.05, 10, 4999)
	sentence := func(n int) string {
		var b []byte
		for range n {
			b = fmt.Appendf(b, "word%d ", words.Uint64())
		}
		return string(b[:len(b)-1])
	}
	for i := range million {
		n, status, failure := tools.Uint64(), "succeeded", ""
		server := fmt.Sprintf("server%d", n%20)
		switch {
		case i%10_000 == 77:
			status, failure = "failed", `,"error":{"error_code":"timeout","error_class":"timeout","message":"it took too long"}`
		case i%20 == 7:
			status, failure = "failed", `,"error":{"error_code":"x","error_class":"execution_failed","message":"the disk is full"}`
		}
		_, err := fmt.Fprintf(out, `{"object":"call_record","version":1,"invocation_id":%q,"status":%q,"tool_id":"mcp.%s.tool%d","actor_ref":"actor:user%d",`+
			`"client":{"name":"client%d"},"profile":"default","surface_id":"srf_4f1d","created_at":%q,"ended_us":%d,"model_input":{"query":%q},`+
			`"external_mappings":[{"source":"mcp","role":"client","method":"tools/call"},{"source":"mcp","role":"upstream","server_id":"%s"}],`+
			`"steps":[["planned",0],["selected",6],["arguments_ready",14],["decision",21,{"behavior":"allow","mode":"default","source":"default"}],`+
			`["queued",23,{"concurrency":"safe","because":"declared"}],["running",24],["answered",1460],[%q,1466]],`+
			`"result":{"content":[{"type":"text","text":%q}]}%s}`+"\n",
			string(tool.NewInvocationID()), status, server, n, actors.Uint64(), n%7, millionBegan.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), 1000+i%5000,
			sentence(4), server, status, sentence(20), failure)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}
