package target

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/mcp-toolhub/mcp-toolhub/internal/ipaddr"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Config are the limits that the operator sets. The zero value lets calls write below their working
// directory only, takes the default sensitive paths for sensitive, and limits no host.
type Config struct {
	AllowedWriteRoots []string `yaml:"allowed_write_roots"` // absolute directories, besides the call's own
	// globs added to the default ones; without a leading slash they hold everywhere
	SensitivePaths []string `yaml:"sensitive_paths"`
	ExemptPaths    []string `yaml:"exempt_paths"` // globs that are not sensitive whatever else says so

	// Hosts are exact names or addresses, *.name for the names below one, or networks like
	// 10.0.0.0/8. Where any host is allowed, all others are denied. To deny one name or address of
	// the machine itself is to deny all of them.
	AllowedHosts []string `yaml:"allowed_hosts"`
	DeniedHosts  []string `yaml:"denied_hosts"`
}

// Fault is one thing that is wrong with a Config.
type Fault struct {
	Path    string // of keys: denied_hosts[2]
	Problem string // ends in what to do
}

func (f *Fault) Error() string { return f.Path + ": " + f.Problem }

// Validate reports every fault of c, each as a *Fault, joined; nil where there is none. It changes
// nothing and looks at no file.
func (c Config) Validate() error {
	var faults []error
	fault := func(key string, i int, format string, args ...any) {
		faults = append(faults, &Fault{fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf(format, args...)})
	}
	for i, dir := range c.AllowedWriteRoots {
		if !filepath.IsAbs(dir) {
			fault("allowed_write_roots", i, "%q is no absolute path: write it in full", dir)
		}
	}
	for key, globs := range map[string][]string{"sensitive_paths": c.SensitivePaths, "exempt_paths": c.ExemptPaths} {
		for i, g := range globs {
			if strings.Trim(g, "/ *") == "" || !doublestar.ValidatePattern(g) {
				fault(key, i, "%q is no glob for some paths: write one, and close its brackets", g)
			}
		}
	}
	for key, list := range map[string][]string{"allowed_hosts": c.AllowedHosts, "denied_hosts": c.DeniedHosts} {
		for i, h := range list {
			if _, err := newHostRule(h); err != nil {
				fault(key, i, "%s", err)
			}
		}
	}
	return errors.Join(faults...)
}

// Limits are a Config ready for use. They are immutable and safe for concurrent use.
type Limits struct {
	roots                 []string // resolved
	sensitive             *sensitive
	allowHosts, denyHosts []hostRule
	denySelf              bool // the machine itself is denied, by whichever of its names
}

// HubPaths are the hub's own paths. All are absolute.
type HubPaths struct {
	Own     []string // config and rule files: sensitive to write, whatever the Config exempts
	Secrets []string // files and directories in which the hub keeps keys and tokens: no call may be aimed at them
}

// NewLimits returns the limits of c; an error where Validate finds a fault.
func NewLimits(c Config, h HubPaths) (*Limits, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("limits of targets: %w", err)
	}
	l := &Limits{sensitive: newSensitive(c.SensitivePaths, c.ExemptPaths)}
	l.sensitive.own, l.sensitive.secrets = NewGlobs(Literal(h.Own...)...), NewGlobs(Literal(h.Secrets...)...)
	for _, dir := range c.AllowedWriteRoots {
		if real := realDir(dir); real != "" {
			l.roots = append(l.roots, real)
		}
	}
	for _, h := range c.AllowedHosts {
		rule, _ := newHostRule(h) // Validate has seen it
		l.allowHosts = append(l.allowHosts, rule)
	}
	for _, h := range c.DeniedHosts {
		rule, _ := newHostRule(h)
		l.denyHosts = append(l.denyHosts, rule)
	}
	for _, own := range []string{"localhost", "127.0.0.1", "::1"} {
		l.denySelf = l.denySelf || matchesAny(l.denyHosts, own)
	}
	return l, nil
}

// realDir is dir with every link followed; "" where it cannot be told.
func realDir(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	var t Target
	if follow(&t, dir, Root{}); t.Fault != "" {
		return ""
	}
	return t.Resolved
}

// hostRule is one entry of a list of hosts.
type hostRule struct {
	name    string // "" for a network
	below   bool   // what is below the name, and not the name itself
	network netip.Prefix
}

func newHostRule(text string) (hostRule, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return hostRule{network: prefix.Masked()}, nil
	}
	name, below := strings.CutPrefix(text, "*.")
	if strings.ContainsAny(name, "*/@ ") || name == "" {
		return hostRule{}, fmt.Errorf("%q is no host: write a name, an address, *.name, or a network like 10.0.0.0/8",
			text)
	}
	found := hosts(Target{Given: name}, name)
	if len(found) != 1 || found[0].Fault != "" || found[0].Host == "" ||
		found[0].Resolved != found[0].Host && !strings.Contains(found[0].Host, ":") {
		return hostRule{}, fmt.Errorf("%q is no host: write a name or an address without scheme, user and port", text)
	}
	if addr, err := netip.ParseAddr(found[0].Host); err == nil {
		return hostRule{network: netip.PrefixFrom(addr, addr.BitLen())}, nil // by whichever address it is called
	}
	return hostRule{name: found[0].Host, below: below}, nil
}

func (r hostRule) matches(host string) bool {
	if r.name == "" {
		addr, err := netip.ParseAddr(host)
		return err == nil && (r.network.Contains(addr) || r.network.Contains(ipaddr.Embedded(addr)))
	}
	if !r.below {
		return host == r.name
	}
	return len(host) > len(r.name) && strings.HasSuffix(host, r.name) && host[len(host)-len(r.name)-1] == '.'
}

// Codes of findings.
const (
	Unresolved   = "target_unresolved"
	Sensitive    = "sensitive_path"
	HubSecret    = "hub_secret"
	OutsideRoots = "outside_write_roots"
	OutsideOwn   = "outside_project"
	Outside      = "outside_roots" // of the directories in which commands may run
	OtherNames   = "hard_link"
	HostDenied   = "host_denied"
	HostUnlisted = "host_not_allowed"
)

// Finding is an objection of the limits to one target.
type Finding struct {
	Target   Target
	Code     string
	Behavior tool.Behavior // tool.Ask or tool.Deny; deny where there is nobody to ask
	Blocked  string        // the path or host, for policy.blocked_path; what is secret in it is masked
	Reason   string        // one sentence for the person and the model, masked as well
}

// Judge returns the findings against the targets of a call, in their order.
func (l *Limits) Judge(targets []Target, root Root) []Finding {
	var found []Finding
	for i := range targets {
		t := &targets[i]
		add := func(behavior tool.Behavior, code, blocked, format string, args ...any) {
			found = append(found, Finding{Target: *t, Code: code, Behavior: behavior,
				Blocked: secret.Text(blocked, t.Kind == Command),
				Reason:  secret.Text(fmt.Sprintf(format, args...), t.Kind == Command)})
		}
		if t.Fault != "" {
			code := Unresolved
			if t.Has(OutOfBounds) {
				code = Outside
			}
			add(tool.Deny, code, t.Resolved, "argument %s %s", t.Argument, t.Fault)
		}
		switch t.Kind {
		case Path:
			if l.Secret(t) {
				add(tool.Deny, HubSecret, t.Resolved,
					"%q is where the hub keeps its own keys, tokens and records, which no call may read or change",
					t.Resolved)
			} else if class := l.Sensitive(t); class != "" {
				add(tool.Ask, Sensitive, t.Resolved, "%q is a sensitive path (%s)", t.Resolved, class)
			}
			if root.Inside && !t.Write && t.Fault == "" && !Within(t.Resolved, root.dir()) && !l.writable(t.Resolved, root) {
				add(tool.Ask, OutsideOwn, t.Resolved, "%q is outside of the project", t.Resolved)
			}
			if t.Write && !t.Remote && t.Fault == "" && !l.writable(t.Resolved, root) {
				add(tool.Ask, OutsideRoots, t.Resolved, "%q is outside of the directories that may be written to",
					t.Resolved)
			} else if t.Write && t.Has(HardLink) {
				add(tool.Ask, OtherNames, t.Resolved,
					"%q is a file with other names, which may lie outside of the directories that may be written to",
					t.Resolved)
			}
		case URL:
			if t.Host == "" {
				continue
			}
			// 0.0.0.0 and localhost lead where 127.0.0.1 does
			if matchesAny(l.denyHosts, t.Host) || l.denySelf && t.Has(Loopback) {
				add(tool.Deny, HostDenied, t.Host, "the host %q is denied", t.Host)
			} else if len(l.allowHosts) > 0 && !matchesAny(l.allowHosts, t.Host) {
				add(tool.Deny, HostUnlisted, t.Host, "the host %q is not among those that are allowed", t.Host)
			}
		}
	}
	return found
}

// Worst returns the finding that decides: the first that denies, or the first.
func Worst(found []Finding) (Finding, bool) {
	if len(found) == 0 {
		return Finding{}, false
	}
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Behavior == tool.Deny })
	return found[max(i, 0)], true
}

func matchesAny(rules []hostRule, host string) bool {
	return slices.ContainsFunc(rules, func(r hostRule) bool { return r.matches(host) })
}

// Sensitive returns the class of a sensitive path, by its resolved or its given name; "" for any other path.
func (l *Limits) Sensitive(t *Target) string {
	if class := l.sensitive.class(t.Resolved, t.Write); class != "" {
		return class
	}
	if rest, ok := strings.CutSuffix(t.Resolved, t.Given); ok && (rest == "" || strings.HasSuffix(rest, "/")) {
		return "" // the same names, and looked at
	}
	return l.sensitive.class(t.Given, t.Write)
}

// Secret reports whether a path is one of the hub's secrets.
func (l *Limits) Secret(t *Target) bool {
	return !t.Remote && t.Resolved != "" && l.sensitive.secrets.Match(t.Resolved)
}

func (l *Limits) writable(path string, root Root) bool {
	own := root.write
	if own == nil {
		own = []string{root.dir()}
	}
	return slices.ContainsFunc(slices.Concat(own, l.roots), func(dir string) bool { return Within(path, dir) })
}

// Under reports whether the spelling of p, normalised, is that of dir or of something in it. The
// beginning of p tells its system: a path on another machine may be of another system than the
// hub's.
func Under(p, dir string) bool {
	if dir == "" || !strings.HasPrefix(p, dir) {
		return false
	}
	separates := func(b byte) bool { return b == '/' || p[0] != '/' && b == '\\' }
	return len(p) == len(dir) || separates(dir[len(dir)-1]) || separates(p[len(dir)])
}

// Within reports whether path, resolved, is dir, resolved, or lies in it: by its spelling, or
// because one of the directories that it lies in is the same as dir, as in file systems that do not
// care for letter case.
func Within(path, dir string) bool {
	if Under(path, dir) {
		return true
	}
	own, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for at := path; ; {
		if info, err := os.Lstat(at); err == nil && os.SameFile(info, own) {
			return true
		}
		up := filepath.Dir(at)
		if up == at {
			return false
		}
		at = up
	}
}
