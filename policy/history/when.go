package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Bounds of what a condition lists. With more, a person would not read it.
const (
	maxListed = 8  // values of an argument
	maxPlaces = 24 // directories, hosts, programs or ids
)

// draft is a condition that is being written.
type draft struct {
	home      string
	calls     []*example
	areas     map[policy.Scope]*area // of paths, by kind, remote and write alone
	hosts     []string
	programs  []policy.Scope
	resources []resource
	unaimed   bool // there are calls without targets
	arguments []string
}

// area is the paths of one kind that a condition lets through.
type area struct {
	under, but []string
	endings    []string // of names; nil: any
}

// resource is an argument that names something by an id.
type resource struct {
	argument string
	ids      []string // nil: any, because there are ever new ones
}

// draft writes the condition for calls that people allowed; nil where they have no place in common.
func (l *learner) draft(h *habit, allowed []*example) *draft {
	w := &draft{home: l.past.Home, calls: allowed, areas: make(map[policy.Scope]*area)}
	times := make(map[policy.Scope]int)
	unaimed := 0
	for _, e := range allowed {
		for _, s := range e.scopes {
			times[s]++
		}
		if len(e.scopes) == 0 {
			unaimed++
		}
	}
	w.unaimed = unaimed >= Least
	w.paths(times, h.denied)
	ids := make(map[string]map[string]int)
	for _, s := range inOrder(times) {
		switch {
		case s.Kind == target.Resource:
			if ids[s.Argument] == nil {
				ids[s.Argument] = make(map[string]int)
			}
			ids[s.Argument][s.Resource] += times[s]
		case times[s] < Least:
		case s.Kind == target.URL:
			w.hosts = append(w.hosts, s.Host)
		case s.Kind == target.Command:
			w.programs = append(w.programs, s)
		}
	}
	for _, argument := range slices.Sorted(maps.Keys(ids)) {
		w.ids(argument, ids[argument])
	}
	w.hosts = slices.Compact(slices.Sorted(slices.Values(w.hosts)))
	places := len(w.hosts) + len(w.programs) + len(w.resources)
	for _, a := range w.areas {
		places += len(a.under)
	}
	if places > maxPlaces || places == 0 && !w.unaimed {
		return nil
	}
	if !allowed[0].r.Facts.ReadOnly.Value {
		w.keepArguments()
	}
	return w
}

// inOrder are the scopes in an order that is the same each time.
func inOrder(times map[policy.Scope]int) []policy.Scope {
	return slices.SortedFunc(maps.Keys(times), func(a, b policy.Scope) int {
		return strings.Compare(fmt.Sprint(a),
			fmt.Sprint(b))
	})
}

// ids takes in the ids that an argument had. Where most of them are new each time, it may have any.
func (w *draft) ids(argument string, times map[string]int) {
	calls, one := 0, resource{argument: argument}
	for _, n := range times {
		calls += n
	}
	if len(times) > maxListed/2 && 2*len(times) >= calls {
		w.resources = append(w.resources, one)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(times)) {
		if times[id] >= Least {
			one.ids = append(one.ids, id)
		}
	}
	if one.ids != nil {
		w.resources = append(w.resources, one)
	}
}

// paths finds the directories that paths of each kind are in.
func (w *draft) paths(times map[policy.Scope]int, denied []*example) {
	for _, s := range inOrder(times) {
		if s.Kind != target.Path {
			continue
		}
		kind := policy.Scope{Kind: s.Kind, Remote: s.Remote, Write: s.Write}
		if w.areas[kind] != nil {
			continue
		}
		c := cover{home: w.home, times: make(map[string]int)}
		for other, n := range times {
			if other.Kind == s.Kind && other.Remote == s.Remote && other.Write == s.Write {
				c.times[other.Under] += n
			}
		}
		c.denied = pathsOf(denied, kind)
		w.areas[kind] = c.area(pathsOf(w.calls, kind))
	}
}

// pathsOf are the paths of one kind that calls are aimed at.
func pathsOf(calls []*example, kind policy.Scope) (all []string) {
	for _, e := range calls {
		for i := range e.r.Targets {
			if t := &e.r.Targets[i]; t.Kind == target.Path && t.Remote == kind.Remote && t.Write == kind.Write {
				all = append(all, t.Resolved)
			}
		}
	}
	return all
}

// text is the condition.
func (w *draft) text() string {
	var any []string
	for _, kind := range slices.SortedFunc(maps.Keys(w.areas),
		func(a, b policy.Scope) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if a := w.areas[kind]; len(a.under) > 0 {
			any = append(any, a.text(kind))
		}
	}
	if len(w.hosts) > 0 {
		any = append(any, `t.kind == "url" && `+within("t.host", w.hosts))
	}
	for _, s := range w.programs {
		any = append(any, fmt.Sprintf(`t.kind == "command" && t.executable == %s && t.called == %s && cwd == %s`,
			quote(s.Executable), quote(s.As), quote(s.CWD)))
	}
	for _, r := range w.resources {
		one := `t.kind == "resource" && t.argument == ` + quote(r.argument)
		if r.ids != nil {
			one += " && " + within("t.resolved", r.ids)
		}
		any = append(any, one)
	}
	var all []string
	switch {
	case len(any) == 0:
		all = append(all, "size(targets) == 0")
	case !w.unaimed:
		all = append(all, "size(targets) > 0")
	}
	if len(any) == 1 {
		all = append(all, `targets.all(t, t.fault == "" && `+any[0]+")")
	} else if len(any) > 1 {
		all = append(all, `targets.all(t, t.fault == "" && (`+strings.Join(any, " || ")+"))")
	}
	return strings.Join(append(all, w.arguments...), " && ")
}

// says is the condition in words, for people. Narrower conditions on arguments are in the condition alone.
func (w *draft) says() string {
	var all []string
	for _, kind := range slices.SortedFunc(maps.Keys(w.areas),
		func(a, b policy.Scope) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		a := w.areas[kind]
		if len(a.under) == 0 {
			continue
		}
		verb := "reads"
		if kind.Write {
			verb = "writes"
		}
		one := verb + " below " + strings.Join(a.under, ", ")
		if a.endings != nil {
			one += " of *" + strings.Join(a.endings, ", *")
		}
		if len(a.but) > 0 {
			one += ", but not " + strings.Join(a.but, ", ")
		}
		all = append(all, one)
	}
	if len(w.hosts) > 0 {
		all = append(all, "on "+strings.Join(w.hosts, ", "))
	}
	for _, s := range w.programs {
		all = append(all, "runs "+s.Executable+" in "+s.CWD)
	}
	for _, r := range w.resources {
		ids := "any"
		if r.ids != nil {
			ids = strings.Join(r.ids, ", ")
		}
		all = append(all, strings.TrimPrefix(r.argument, "/")+" "+ids)
	}
	if len(all) == 0 {
		all = append(all, "aimed at nothing outside")
	}
	if len(w.arguments) > 0 {
		all = append(all, "with arguments as then")
	}
	return strings.Join(all, "; ")
}

func (a *area) text(kind policy.Scope) string {
	text := `t.kind == "path" && ` + not(kind.Remote) + "t.remote && " + not(kind.Write) +
		`t.write && !("wildcard" in t.notes)`
	var under []string
	for _, dir := range a.under {
		under = append(under, fmt.Sprintf("under(t.resolved, %s)", quote(dir)))
	}
	if len(under) > 1 {
		text += " && (" + strings.Join(under, " || ") + ")"
	} else {
		text += " && " + under[0]
	}
	for _, dir := range a.but {
		text += fmt.Sprintf(" && !under(t.resolved, %s)", quote(dir))
	}
	if a.endings != nil {
		var ends []string
		for _, e := range a.endings {
			ends = append(ends, fmt.Sprintf("t.resolved.endsWith(%s)", quote(e)))
		}
		text += " && (" + strings.Join(ends, " || ") + ")"
	}
	return text
}

func not(is bool) string {
	if is {
		return ""
	}
	return "!"
}

// within says that a text is one of several.
func within(what string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return oneOf(what, quoted)
}

// oneOf says that something is one of several values.
func oneOf(what string, values []string) string {
	if len(values) == 1 {
		return what + " == " + values[0]
	}
	return what + " in [" + strings.Join(values, ", ") + "]"
}

func quote(text string) string { return string(rawjson.Quote(text)) }

// values are the arguments of calls by their names: JSON texts, "" where a call has none of that name.
func values(calls []*example) map[string][]string {
	all := make(map[string][]string)
	for i, e := range calls {
		_ = rawjson.Members(e.r.Input, func(m rawjson.Member) bool {
			if all[m.Name()] == nil {
				all[m.Name()] = make([]string, len(calls))
			}
			all[m.Name()][i] = compact(m.Value)
			return true
		})
	}
	return all
}

// aimed reports whether an argument of the calls names a target.
func aimed(calls []*example, name string) bool {
	pointer := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return slices.ContainsFunc(calls, func(e *example) bool {
		return slices.ContainsFunc(e.r.Targets, func(t target.Target) bool {
			return t.Argument == pointer ||
				strings.HasPrefix(t.Argument, pointer+"/")
		})
	})
}

// keepArguments holds a call that may change something to the arguments that such calls had, and to
// their values where these are few.
func (w *draft) keepArguments() {
	all := values(w.calls)
	names := slices.Sorted(maps.Keys(all))
	if len(names) == 0 {
		w.arguments = append(w.arguments, "size(arguments) == 0")
	} else if len(names) <= maxPlaces {
		w.arguments = append(w.arguments, fmt.Sprintf("arguments.all(name, %s)", within("name", names)))
	}
	for _, name := range names {
		if aimed(w.calls, name) {
			continue
		}
		times, with := make(map[string]int), 0
		for _, v := range all[name] {
			if v != "" {
				times[v]++
				with++
			}
		}
		var few []string
		covered := 0
		for _, v := range slices.Sorted(maps.Keys(times)) {
			if isWord(v) && times[v] >= Least {
				few = append(few, v)
				covered += times[v]
			}
		}
		if len(few) == 0 || len(few) > maxListed || 20*covered < 19*with {
			continue
		}
		one := oneOf(member(name), few)
		if with < len(w.calls) {
			one = "(!" + has(name) + " || " + one + ")"
		}
		w.arguments = append(w.arguments, one)
	}
}

// isWord reports whether a JSON value is a short text, or true or false.
func isWord(v string) bool { return v == "true" || v == "false" || v[0] == '"' && len(v) <= 64 }

var identifier = regexp.MustCompile(`^[a-z][A-Za-z0-9_]*$`)

// reserved are the words of the language that are no names of members.
var reserved = regexp.MustCompile(`^(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)$`)

func isName(name string) bool { return identifier.MatchString(name) && !reserved.MatchString(name) }

func member(name string) string {
	if isName(name) {
		return "arguments." + name
	}
	return "arguments[" + quote(name) + "]"
}

func has(name string) string {
	if isName(name) {
		return "has(" + member(name) + ")"
	}
	return "(" + quote(name) + " in arguments)"
}

// separate narrows the condition so that it holds for fewer of the calls that people denied, by an
// argument that tells the two apart. It returns false where none does.
func (w *draft) separate(denied []*example) bool {
	good, bad := values(w.calls), values(denied)
	for _, way := range []func(good, bad []string) (of func(name string) string){byFew, byBeginning, byMost} {
		for _, name := range slices.Sorted(maps.Keys(good)) {
			if aimed(w.calls, name) || slices.Contains(good[name], "") {
				continue
			}
			if of := way(good[name], bad[name]); of != nil {
				w.arguments = append(w.arguments, of(name))
				return true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		if good[name] == nil && !slices.Contains(bad[name], "") {
			w.arguments = append(w.arguments, "!"+has(name))
			return true
		}
	}
	return w.leaveOut(denied)
}

// leaveOut leaves out the very calls that people denied, where these are few beside the others.
func (w *draft) leaveOut(denied []*example) bool {
	times := make(map[string]int)
	for _, e := range denied {
		text := compact(e.r.Input)
		if times[text]++; times[text] == Least {
			return false // it is no slip
		}
	}
	if len(times) > maxListed || !slips(len(denied), len(w.calls)) {
		return false
	}
	all := slices.Sorted(maps.Keys(times))
	w.arguments = append(w.arguments, "!("+oneOf("arguments", all)+")")
	return true
}

// kinds are those kinds of values that people allowed Least times and denied at most by a slip.
// They are nil where these are not nearly all that people allowed, or leave nothing out of what
// they denied. kind returns "" for a value that has none.
func kinds(good, bad []string, kind func(string) string) (found []string) {
	yes, no := make(map[string]int), make(map[string]int)
	for _, v := range good {
		yes[kind(v)]++
	}
	for _, v := range bad {
		no[kind(v)]++
	}
	kept, out := 0, len(bad)
	for _, k := range slices.Sorted(maps.Keys(yes)) {
		if k != "" && yes[k] >= Least && slips(no[k], yes[k]) {
			found = append(found, k)
			kept += yes[k]
			out -= no[k]
		}
	}
	if len(found) > maxListed || 10*kept < 9*len(good) || out == 0 {
		return nil
	}
	return found
}

// byFew tells them apart by values of which there are few.
func byFew(good, bad []string) func(string) string {
	few := kinds(good, bad, func(v string) string {
		if v == "" || !isWord(v) {
			return ""
		}
		return v
	})
	if few == nil {
		return nil
	}
	return func(name string) string { return oneOf(member(name), few) }
}

var begins = regexp.MustCompile(`^"([A-Za-z0-9._-]*[/:])[A-Za-z0-9._-]+"$`)

// byBeginning tells them apart by what texts begin with: feature/, for branches.
func byBeginning(good, bad []string) func(string) string {
	few := kinds(good, bad, func(v string) string {
		if m := begins.FindStringSubmatch(v); m != nil {
			return m[1]
		}
		return ""
	})
	if few == nil {
		return nil
	}
	for i := range few {
		few[i] = regexp.QuoteMeta(few[i])
	}
	return func(name string) string {
		return member(name) + ".matches(" + quote("^("+strings.Join(few, "|")+")[A-Za-z0-9._-]+$") + ")"
	}
}

// byMost tells numbers apart: those that were denied are larger than nearly all others.
func byMost(good, bad []string) func(string) string {
	if !slices.ContainsFunc(good, isNumber) || slices.ContainsFunc(slices.Concat(good, bad),
		func(v string) bool { return !isNumber(v) }) {
		return nil
	}
	sorted := slices.SortedFunc(slices.Values(good),
		func(a, b string) int { return cmp.Compare(valueOf(a), valueOf(b)) })
	for _, some := range []bool{false, true} {
		for i := len(sorted) - 1; i >= 0 && 10*(i+1) >= 9*len(sorted); i-- {
			most, no := sorted[i], 0
			for _, v := range bad {
				if valueOf(v) <= valueOf(most) {
					no++
				}
			}
			if no == 0 || some && no < len(bad) && slips(no, i+1) {
				return func(name string) string { return member(name) + " <= " + most }
			}
		}
	}
	return nil
}

var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

func isNumber(v string) bool { return number.MatchString(v) }

func valueOf(number string) float64 {
	f, _ := json.Number(number).Float64() // of what is a number
	return f
}

// repeatable reports whether a call that its targets do not bound can be allowed by its very arguments.
func (e *example) repeatable() bool {
	return !slices.ContainsFunc(e.r.Targets, func(t target.Target) bool {
		return t.Fault != "" || slices.ContainsFunc(t.Notes, func(n target.Note) bool {
			return n == target.Wildcard || n == target.KeyVariant || n == target.HardLink
		})
	})
}

// same is the condition that a call has the arguments of one that people allowed again and again,
// runs in the same directory, and leads to the same program.
func same(calls []*example) string {
	type kind struct{ cwd, programs string }
	times := make(map[kind]map[string]int)
	for _, e := range calls {
		var programs []string
		for i := range e.r.Targets {
			if t := &e.r.Targets[i]; t.Executable != "" {
				programs = append(programs, t.Executable)
			}
		}
		k := kind{e.r.CWD, strings.Join(programs, "\n")}
		if times[k] == nil {
			times[k] = make(map[string]int)
		}
		times[k][compact(e.r.Input)]++
	}
	var any []string
	listed := 0
	for _, k := range slices.SortedFunc(maps.Keys(times),
		func(a, b kind) int { return strings.Compare(a.cwd+a.programs, b.cwd+b.programs) }) {
		var often []string
		for _, text := range slices.Sorted(maps.Keys(times[k])) {
			if times[k][text] >= Least && text != "" {
				often = append(often, text)
			}
		}
		if listed += len(often); len(often) == 0 {
			continue
		}
		one := oneOf("arguments", often)
		if k.cwd != "" {
			one += " && cwd == " + quote(k.cwd)
		}
		if k.programs != "" {
			one += ` && targets.all(t, t.executable == "" || ` +
				within("t.executable", strings.Split(k.programs, "\n")) + ")"
		}
		any = append(any, one)
	}
	if listed > maxPlaces {
		return ""
	}
	if len(any) == 1 {
		return any[0]
	}
	for i := range any {
		any[i] = "(" + any[i] + ")"
	}
	return strings.Join(any, " || ")
}
