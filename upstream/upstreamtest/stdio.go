package upstreamtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// scriptVariable tells a test binary that it is a fake server, and which.
const scriptVariable = "MCP_TOOLHUB_FAKE_SERVER"

// sleeper as the script makes the child a process that does nothing for long.
const sleeper = "sleep"

// Command returns how to start a stdio child that obeys s: the running test binary, whose TestMain must call Main. The
// environment entries come on top of what else the child gets.
func Command(s Script) (command string, args, env []string) {
	self, err := os.Executable()
	if err != nil {
		panic(fmt.Sprintf("find the test binary: %v", err))
	}
	w := wireScript{Script: s, Results: map[string]string{}, Lists: map[string][]string{
		"tools": convert[string](s.Tools), "prompts": convert[string](s.Features.Prompts),
		"resources": convert[string](s.Features.Resources), "templates": convert[string](s.Features.Templates)}}
	for name, result := range s.Results {
		w.Results[name] = string(result)
	}
	w.Script.Tools, w.Script.Results = nil, nil
	w.Script.Features.Prompts, w.Script.Features.Resources, w.Script.Features.Templates = nil, nil, nil
	script, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("encode script: %v", err))
	}
	// Under -race a process lingers for a second when it exits, unless told otherwise.
	return self, nil, []string{"GORACE=atexit_sleep_ms=0", scriptVariable + "=" + string(script)}
}

// wireScript is a Script on its way to the child: what must not change by a byte is text, which no encoder touches.
type wireScript struct {
	Script
	Results map[string]string
	Lists   map[string][]string
}

func (w wireScript) script() Script {
	s := w.Script
	s.Tools, s.Features.Prompts = convert[json.RawMessage](w.Lists["tools"]),
		convert[json.RawMessage](w.Lists["prompts"])
	s.Features.Resources, s.Features.Templates = convert[json.RawMessage](w.Lists["resources"]),
		convert[json.RawMessage](w.Lists["templates"])
	s.Results = map[string]json.RawMessage{}
	for name, result := range w.Results {
		s.Results[name] = json.RawMessage(result)
	}
	return s
}

// convert converts every element. It keeps nil, which is not the same as an empty list.
func convert[T, F ~[]byte | ~string](all []F) []T {
	if all == nil {
		return nil
	}
	out := make([]T, len(all))
	for i, one := range all {
		out[i] = T(one)
	}
	return out
}

// Main turns the process into a fake server, and never returns, if Command has started it. Otherwise it does nothing.
// Call it first in TestMain.
func Main() {
	text := os.Getenv(scriptVariable)
	switch text {
	case "":
		return
	case sleeper:
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(5 * time.Minute)
		os.Exit(0)
	}
	var w wireScript
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		fmt.Fprintln(os.Stderr, "decode script:", err)
		os.Exit(2)
	}
	os.Exit(serve(w.script(), os.Stdin, os.Stdout))
}

// serve plays the script on stdio and returns the exit status.
func serve(s Script, in io.Reader, out io.Writer) int {
	time.Sleep(s.Delay)
	for _, err := os.Stat(s.Held); err == nil; _, err = os.Stat(s.Held) {
		time.Sleep(5 * time.Millisecond)
	}
	for _, line := range s.Stderr {
		fmt.Fprintln(os.Stderr, line)
	}
	if s.Has(ExitsAtOnce) {
		fmt.Fprintln(os.Stderr, "fake server: no license key found")
		return 3
	}
	if s.Has(Chatty) {
		for i := range 1000 {
			fmt.Fprintf(os.Stderr, "\x1b[31mline %d\x1b[0m\n", i)
		}
	}
	if _, err := os.Stat(s.Turned); err == nil {
		s.Modern = !s.Modern
	}
	p := newPeer(s)
	p.die = func() { os.Exit(7) }
	if s.Has(DiesSlowly) {
		p.die = func() { _ = os.Stdout.Close() }
	}
	if s.Has(Stubborn) {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.Has(HasDescendant) {
		p.startDescendant()
	}
	var mu sync.Mutex
	send := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		if s.Has(Noise) {
			_, _ = out.Write([]byte("Server listening…\n{\"level\":\"info\"}\n\n\x00\xff{\"jsonrpc\":\"2.0\",\"id\":\n[1,2\n"))
		}
		_, _ = out.Write(append(line[:len(line):len(line)], '\n'))
	}
	if !s.Modern { // from 2026-07-28 on, to those who ask
		p.listen(listener{send: send})
	}
	gone := make(chan struct{})
	p.readLines(in, gone, send)
	if s.Has(Stubborn) {
		select {}
	}
	return 0
}

func (p *peer) startDescendant() {
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0", scriptVariable + "=" + sleeper}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start descendant:", err)
		return
	}
	p.pids = append(p.pids, cmd.Process.Pid)
}

// readLines handles each line until in ends.
func (p *peer) readLines(in io.Reader, gone chan struct{}, send func([]byte)) {
	defer close(gone)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		p.record(line)
		m, ok := parse(line)
		if !ok {
			continue
		}
		if m.Method == "server/discover" && p.script.Has(ExitsOnDiscover) {
			os.Exit(1)
		}
		if m.Method != "" && m.Method == p.script.Quits {
			fmt.Fprintln(os.Stderr, "fake server: out of paper")
			p.die()
		}
		if m.ID != nil && blocks(m.Method) {
			go p.handle(m, gone, send)
		} else {
			p.handle(m, gone, send)
		}
		if m.Method == "tools/list" && p.script.Has(StopsReading) {
			select {}
		}
		if m.Method == "tools/list" && p.script.Has(ClosesStdin) {
			_ = os.Stdin.Close()
			select {}
		}
	}
}

func (p *peer) record(line []byte) {
	if p.script.Record == "" {
		return
	}
	if f, err := os.OpenFile(p.script.Record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.Write(append(line[:len(line):len(line)], '\n'))
		_ = f.Close()
	}
}
