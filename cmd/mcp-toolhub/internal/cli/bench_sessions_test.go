//go:build e2e

package cli

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const sizedSessions = 2000

// BenchmarkSessions is a hub with 2,000 sessions, each with a connection of its own, that call at a pace: what it needs of
// processors, memory and disk. docs/operations.md reckons with it. Iterations say nothing here.
func BenchmarkSessions(b *testing.B) {
	for _, perSecond := range []int{0, 167, 1000} {
		b.Run(fmt.Sprint(perSecond), func(b *testing.B) { sessionsAtPace(b, perSecond, 10*time.Second) })
	}
}

func sessionsAtPace(b *testing.B, perSecond int, length time.Duration) {
	p, variable := newProbe(b)
	settings := heldSettings()
	settings["policy"] = hundredRules()
	hub := startHubIn(b, []string{variable}, "hub.json", configText(b, map[string]any{"s0": serverEntries(b, benchSpec{Servers: []benchSpec{
		{URL: startBenchProcess(b, benchSpec{Role: "echo", Door: "http"}).url}}})["s0"]}, settings))
	p.pid = hub.cmd.Process.Pid
	target := &benchTarget{tb: b, urls: []string{hub.url + "/mcp"}}
	params := benchCall(benchToolName(0, "echo"), echoArguments)
	before := p.settled(b)
	var clients []benchClient
	for range sizedSessions {
		c := target.client()
		if err := callEcho(c, params); err != nil {
			b.Fatal(err)
		}
		clients = append(clients, c)
	}
	idle := p.settled(b)
	journal := sizeBeneath(b, filepath.Join(hub.cmd.Dir, "state"))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(idle.Resident-before.Resident)/sizedSessions/1000, "kB-rss/session")
	b.ReportMetric(float64(before.Resident)/1e6, "MB-before")
	if perSecond == 0 {
		return
	}
	process := &benchProcess{cmd: hub.cmd}
	spent, began := cpuOf(process), time.Now()
	took, calls := callAtPace(b, clients, params, perSecond, length)
	elapsed := time.Since(began).Seconds()
	b.ReportMetric(float64(calls)/elapsed, "calls/s")
	b.ReportMetric((cpuOf(process)-spent)/elapsed, "cores")
	b.ReportMetric((cpuOf(process)-spent)/float64(calls)*1e6, "cpu-us/call")
	b.ReportMetric(quantile(took, .5).Seconds()*1e3, "ms-p50")
	b.ReportMetric(quantile(took, .99).Seconds()*1e3, "ms-p99")
	b.ReportMetric(float64(sizeBeneath(b, filepath.Join(hub.cmd.Dir, "state"))-journal)/float64(calls), "B-disk/call")
	mb, _ := process.memory("VmRSS")
	b.ReportMetric(mb, "MB-rss")
}

// callAtPace has all clients call for so long, perSecond times a second in all, each at a steady pace of its own.
func callAtPace(b *testing.B, clients []benchClient, params string, perSecond int, length time.Duration) (all []time.Duration, calls int64) {
	pause := time.Duration(len(clients)) * time.Second / time.Duration(perSecond)
	var made atomic.Int64
	var mu sync.Mutex
	var calling sync.WaitGroup
	end := time.After(length)
	stop := make(chan struct{})
	for _, c := range clients {
		calling.Go(func() {
			timer := time.NewTimer(rand.N(pause))
			defer timer.Stop()
			for {
				select {
				case <-timer.C:
				case <-stop:
					return
				}
				timer.Reset(pause)
				start := time.Now()
				if err := callEcho(c, params); err != nil {
					b.Error(err)
					return
				}
				took := time.Since(start)
				made.Add(1)
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	<-end
	close(stop)
	calling.Wait()
	return all, made.Load()
}

func cpuOf(p *benchProcess) float64 {
	seconds, _ := p.cpu()
	return seconds
}

// sizeBeneath counts the bytes of all files beneath dir.
func sizeBeneath(tb testing.TB, dir string) (size int64) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return size
}
