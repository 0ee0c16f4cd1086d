package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// signal is one of the three that go to a collector: the word in names of variables, and in the path of its address.
type signal struct{ variable, path string }

var (
	signalTraces  = signal{"TRACES", "v1/traces"}
	signalMetrics = signal{"METRICS", "v1/metrics"}
	signalLogs    = signal{"LOGS", "v1/logs"}
)

// endpoint is where one signal goes.
type endpoint struct {
	signal  signal
	url     string
	headers http.Header
	timeout time.Duration
	gzip    bool
	client  *http.Client
}

// environment reads the variables of OpenTelemetry:
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
// .../otel/protocol/exporter/. Those of sampling, of batches and of limits are read by the SDK.
type environment struct {
	lookup   func(name string) (value string, ok bool)
	problems []string
}

// get returns a variable; an empty one counts as unset.
func (e *environment) get(name string) string {
	if e.lookup == nil {
		return ""
	}
	value, _ := e.lookup(name)
	return strings.TrimSpace(value)
}

// exporter returns a variable of the exporter, for the signal where there is one of that.
func (e *environment) exporter(s signal, name string) string {
	if value := e.get("OTEL_EXPORTER_OTLP_" + s.variable + "_" + name); value != "" {
		return value
	}
	return e.get("OTEL_EXPORTER_OTLP_" + name)
}

func (e *environment) problem(format string, args ...any) {
	e.problems = append(e.problems, fmt.Sprintf(format, args...))
}

// endpoint returns where a signal goes; nil where it goes nowhere: the usual case.
func (e *environment) endpoint(s signal) *endpoint {
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	chosen := "OTEL_" + s.variable + "_EXPORTER"
	switch exporter := e.get(chosen); exporter {
	case "otlp":
	case "":
		if e.exporter(s, "ENDPOINT") == "" {
			return nil
		}
	case "none":
		return nil
	default:
		e.problem("%s is %q: the hub sends OTLP alone, so %s are not sent; set it to otlp or none", chosen, exporter,
			strings.ToLower(s.variable))
		return nil
	}
	if protocol := e.exporter(s, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		e.problem("OTEL_EXPORTER_OTLP_PROTOCOL is %q: the hub speaks http/protobuf alone, so %s are not sent; set "+
			"it to http/protobuf, and the "+
			"endpoint to the collector's port for that, which is 4318 most often", protocol,
			strings.ToLower(s.variable))
		return nil
	}
	to := &endpoint{signal: s, headers: make(http.Header), timeout: 10 * time.Second,
		gzip: e.exporter(s, "COMPRESSION") == "gzip"}
	if to.url = e.get("OTEL_EXPORTER_OTLP_" + s.variable + "_ENDPOINT"); to.url == "" {
		base := e.get("OTEL_EXPORTER_OTLP_ENDPOINT")
		if base == "" {
			base = "http://localhost:4318"
		}
		to.url = strings.TrimSuffix(base, "/") + "/" + s.path
	}
	if u, err := url.Parse(to.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		e.problem("the endpoint of %s is no URL of http or https: set OTEL_EXPORTER_OTLP_ENDPOINT to one such as "+
			"http://localhost:4318",
			strings.ToLower(s.variable))
		return nil
	}
	if text := e.exporter(s, "TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err != nil || ms <= 0 {
			e.problem("OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds: 10000 holds")
		} else {
			to.timeout = time.Duration(ms) * time.Millisecond
		}
	}
	e.setHeaders(to)
	transport, err := e.transport(s)
	if err != nil {
		e.problem("%v, so %s are not sent", err, strings.ToLower(s.variable))
		return nil
	}
	to.client = &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return to
}

// setHeaders takes the headers that go with each request: name=value, separated by commas, percent-encoded.
func (e *environment) setHeaders(to *endpoint) {
	for pair := range strings.SplitSeq(e.exporter(to.signal, "HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		switch name = strings.TrimSpace(name); {
		case strings.TrimSpace(pair) == "":
		case !ok || name == "" || err != nil:
			e.problem("a header in OTEL_EXPORTER_OTLP_HEADERS is left out: write name=value, separated by commas")
		default:
			to.headers.Set(name, decoded)
		}
	}
}

// transport is net/http's own, with the certificates that the environment names.
func (e *environment) transport(s signal) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 2
	ca, certificate, key := e.exporter(s, "CERTIFICATE"), e.exporter(s, "CLIENT_CERTIFICATE"),
		e.exporter(s, "CLIENT_KEY")
	if ca == "" && certificate == "" {
		return transport, nil
	}
	transport.TLSClientConfig = new(tls.Config)
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE names a file without a certificate")
		}
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("read OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return transport, nil
}

// describe says what the telemetry is of. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last, so they win.
func describe(ctx context.Context, version string, e *environment) *resource.Resource {
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "mcp-toolhub"),
			attribute.String("service.version", version),
			attribute.String("service.instance.id", rand.Text())), resource.WithFromEnv())
	if err != nil {
		e.problem("OTEL_RESOURCE_ATTRIBUTES is not taken whole: write key=value, separated by commas")
	}
	return about
}

// outlet is what the ways to a collector have in common: they tell the log how it goes.
type outlet struct{ logger atomic.Pointer[slog.Logger] }

func (o *outlet) to(e *endpoint) *sender { return &sender{endpoint: e, outlet: o} }

// sender sends one signal.
type sender struct {
	*endpoint
	outlet *outlet

	mu     sync.Mutex
	failed bool // the last time
}

// Attempts at one message, and the pause before the next.
const (
	attempts = 3
	pause    = time.Second
)

// send sends a message, more than once where the collector wants that, within the endpoint's
// timeout. The log hears of the first failure and of the recovery. The message is lost where it
// fails: nobody waits for telemetry.
func (s *sender) send(ctx context.Context, m proto.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", s.signal.path, err)
	}
	if s.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // into memory
		_ = w.Close()
		body = packed.Bytes()
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for n := 1; ; n++ {
		wait, err := s.post(limited, body)
		if err == nil || wait == 0 || n == attempts {
			s.tell(err)
			return nil // it is told
		}
		select {
		case <-time.After(wait):
		case <-limited.Done():
			s.tell(err)
			return nil
		}
	}
}

// post posts a body once. Where it fails and may be posted again, wait is when.
func (s *sender) post(ctx context.Context, body []byte) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the address is none")
	}
	req.Header = s.headers.Clone()
	req.Header.Set("Content-Type", "application/x-protobuf")
	if s.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // the URL may hold a secret
		}
		return pause, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		wait = pause
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			wait = time.Duration(min(seconds, 60)) * time.Second
		}
	}
	if resp.StatusCode/100 != 2 {
		return wait, fmt.Errorf("the collector answers with status %d", resp.StatusCode)
	}
	return 0, nil
}

// tell notes how it went.
func (s *sender) tell(err error) {
	s.mu.Lock()
	before := s.failed
	s.failed = err != nil
	s.mu.Unlock()
	logger := s.outlet.logger.Load()
	switch {
	case logger == nil:
	case err != nil && !before:
		logger.Warn("telemetry is lost: the collector does not take it; calls go on", "signal",
			strings.ToLower(s.signal.variable), "error", err)
	case err == nil && before:
		logger.Info("the collector takes telemetry again", "signal", strings.ToLower(s.signal.variable))
	}
}

// traceClient sends spans. A TracesData is on the wire what the collector's
// ExportTraceServiceRequest is: so nothing of gRPC is compiled.
type traceClient struct{ *sender }

func (traceClient) Start(context.Context) error { return nil }
func (traceClient) Stop(context.Context) error  { return nil }

func (c traceClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	return c.send(ctx, &tracepb.TracesData{ResourceSpans: spans})
}
