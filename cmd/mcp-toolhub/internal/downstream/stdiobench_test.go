package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// BenchmarkStdio measures a call of a client on a pair of pipes, with so many calls in flight; the
// tool answers at once.
func BenchmarkStdio(b *testing.B) {
	for _, calls := range []int{1, 64} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			f := &far{execute: func(context.Context, *tool.Execution) (tool.Reply, error) {
				return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
			}}
			s := newServer(b, Config{Version: "v"}, f)
			inR, inW, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			outR, outW, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.ServeStdio(context.Background(), inR, outW, Stdio{Profile: "default"}) }()
			_, _ = fmt.Fprintf(inW, initialize+"\n"+initialized+"\n", "2025-11-25")
			answers := bufio.NewReaderSize(outR, 64<<10)
			if _, err := answers.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
			call := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{}}}` +
				"\n"
			var sent atomic.Int64
			send := func() {
				if n := sent.Add(1); n <= int64(b.N) {
					_, _ = fmt.Fprintf(inW, call, n)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range calls {
				send()
			}
			for range b.N {
				if _, err := answers.ReadSlice('\n'); err != nil {
					b.Fatal(err)
				}
				send()
			}
			b.StopTimer()
			_ = inW.Close()
			if err := <-ended; err != nil && err != io.EOF {
				b.Fatal(err)
			}
		})
	}
}
