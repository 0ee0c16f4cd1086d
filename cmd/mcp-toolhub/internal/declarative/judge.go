package declarative

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const maxDepth = 5 // of texts of a shell within texts

// values says which variables of a text hold values of a call.
type values struct {
	names    map[string]bool // to whether the value may begin with "-"
	numbered bool            // $1, $2, "$@" … as well
	loose    bool            // those may begin with "-"
}

// isValue reports whether a variable holds a value, and whether that may begin with "-".
func (v *values) isValue(name string) (is, loose bool) {
	if loose, ok := v.names[name]; ok {
		return true, loose
	}
	return v.numbered && (name == "@" || name == "*" || name != "" && strings.Trim(name, "0123456789") == ""), v.loose
}

// text judges a text for /bin/sh. That is another shell on every system, so the text is judged as POSIX has it and as bash
// has it.
func (j *judgement) text(text string, known *values, at place) *refusal {
	blame := &word{at: at}
	if j.depth > maxDepth {
		return refuse(blame, "has texts for a shell in one another, over %d deep: %s", maxDepth, ownScript)
	}
	parsed := 0
	for _, language := range []syntax.LangVariant{syntax.LangPOSIX, syntax.LangBash} {
		file, err := syntax.NewParser(syntax.Variant(language)).Parse(strings.NewReader(text), "")
		if err != nil {
			if j.hasValues {
				return refuse(blame, "is no text that the hub can judge (%s, read as %s): %s", err, language, ownScript)
			}
			continue
		}
		parsed++
		r := &textJudgement{judgement: *j, known: &values{names: make(map[string]bool), numbered: known.numbered, loose: known.loose}, at: at,
			whole: make(map[*syntax.Word]bool)}
		maps.Copy(r.known.names, known.names)
		if found := r.file(file); found != nil {
			return found
		}
	}
	if parsed == 0 {
		return refuse(blame, "is no text that a shell can read: mend it")
	}
	return nil
}

// textJudgement is the judging of one text.
type textJudgement struct {
	judgement
	known *values
	at    place
	whole map[*syntax.Word]bool // words that are not split into several, quoted or not
	named map[string]bool       // programs by whose name the text calls a file elsewhere
	any   bool                  // the text writes a file that a value names
	found *refusal
	later *refusal        // where nothing else is found
	own   map[string]bool // variables of templates that are words of their own
}

func (r *textJudgement) refuse(format string, args ...any) {
	if r.found == nil {
		r.found = r.blame(format, args...)
	}
}

func (r *textJudgement) blame(format string, args ...any) *refusal {
	return &refusal{fmt.Sprintf(format, args...), r.at}
}

func (r *textJudgement) file(file *syntax.File) *refusal {
	r.functions, r.named, r.own = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				r.functions[n.Name.Value] = true
			}
		case *syntax.Word:
			r.owns(n)
		case *syntax.Assign:
			r.whole[n.Value] = true
		case *syntax.CaseClause:
			r.whole[n.Word] = true
		case *syntax.Redirect:
			r.whole[n.Hdoc] = true
			if n.Op != syntax.RdrIn {
				r.mentions(r.word(n.Word))
			}
		case *syntax.CallExpr:
			words := r.words(n.Args)
			for i := range words {
				if rule, _ := ruleOf(words[0].name); i > 1 || i == 1 && !rule.shell && !rule.language && words[0].text != "test" && words[0].text != "[" {
					r.mentions(words[i])
				}
			}
		}
		return true
	})
	for i, shown := range r.shown {
		if !r.own[fmt.Sprintf("toolhub_%d", i+1)] {
			r.refuse("%s is no word of its own: let white space stand around it, or = before it, and no quotes; nor may it stand in a comment or a here-document",
				clip(shown))
			return r.found
		}
	}
	r.spread(file)
	r.names = r.known.names
	syntax.Walk(file, func(n syntax.Node) bool {
		r.node(n)
		return r.found == nil
	})
	r.found = cmp.Or(r.found, r.later)
	return r.found
}

// mentions takes note of a file that the text may write.
func (r *textJudgement) mentions(w word) {
	_, file, ok := strings.Cut(w.text, "=") // dd of=file
	if !ok {
		file = w.text
	}
	if w.known && file != "" {
		r.named[programName(file)] = true
	}
}

// spread finds the variables that values get into.
func (r *textJudgement) spread(file *syntax.File) {
	for grown := true; grown; {
		before := len(r.known.names)
		set := func(name string, loose bool) {
			r.known.names[name] = r.known.names[name] || loose
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				if w := r.word(n.Value); n.Name != nil && w.value {
					set(n.Name.Value, w.loose)
				}
			case *syntax.ForClause:
				iter, ok := n.Loop.(*syntax.WordIter)
				if !ok {
					break
				}
				if !iter.InPos.IsValid() && r.known.numbered {
					set(iter.Name.Value, r.known.loose)
				}
				for _, item := range iter.Items {
					if w := r.word(item); w.value {
						set(iter.Name.Value, w.loose)
					}
				}
			case *syntax.CallExpr:
				if words := r.words(n.Args); r.hasValues && len(words) > 0 && (words[0].text == "read" || words[0].text == "getopts") {
					for _, w := range words[1:] {
						set(w.text, true)
					}
					set("REPLY", true)
					set("OPTARG", true)
				}
			}
			return true
		})
		grown = len(r.known.names) > before
	}
}

var ownName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// node judges one node of the text; those in it are judged by themselves.
func (r *textJudgement) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			r.call(r.words(n.Args))
		}
		for _, a := range n.Assigns {
			switch w := r.word(a.Value); {
			case !w.value:
			case len(n.Args) > 0:
				r.refuse(noEnvironment, clip(r.print(a.Value)))
			case a.Name == nil || !ownName.MatchString(a.Name.Value):
				r.refuse("a variable called %s may mean something to programs: give one that holds a value a name in small letters", r.name(a))
			}
		}
	case *syntax.ForClause:
		if iter, ok := n.Loop.(*syntax.WordIter); ok && !ownName.MatchString(iter.Name.Value) && r.hasValues {
			r.refuse("a variable called %s may mean something to programs: give one that holds a value a name in small letters", iter.Name.Value)
		}
		if _, ok := n.Loop.(*syntax.CStyleLoop); ok && r.holdsValue(n) {
			r.refuse("a value stands in arithmetic, where shells read it once more: %s", ownScript)
		}
	case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CoprocClause, *syntax.ArithmExp, *syntax.ArrayExpr, *syntax.ProcSubst:
		if r.holdsValue(n) {
			r.refuse("a value stands in %s, where shells may read it once more: %s", clip(r.print(n)), ownScript)
		}
	case *syntax.Redirect:
		if w := r.word(n.Word); n.Op != syntax.RdrIn && w.value {
			r.any = true
		}
	case *syntax.CmdSubst:
		if n.Backquotes && r.holdsValue(n) {
			r.refuse("a value stands in backquotes, where shells do not agree on quotes: write $(…)")
		}
	case *syntax.Word:
		r.splits(n)
	}
}

// call judges a command, and that it runs no file which the text makes.
func (r *textJudgement) call(words []word) {
	if found := r.command(words); found != nil {
		r.refuse("%s", found.why)
		return
	}
	for i := range words {
		w := &words[i]
		rule, _ := ruleOf(words[0].name)
		isFile := i == 0 && strings.Contains(w.text, "/") || i == 1 && (rule.shell || rule.language)
		if r.hasValues && isFile && w.name != "" && (r.named[w.name] || r.any) {
			r.refuse("the text may write %s, which it runs: write that file yourself", clip(w.shown))
		}
	}
}

func (r *textJudgement) name(a *syntax.Assign) string {
	if a.Name == nil {
		return "…"
	}
	return clip(a.Name.Value)
}

// words are those of a command.
func (r *textJudgement) words(args []*syntax.Word) []word {
	var all []word
	for _, a := range args {
		all = append(all, r.word(a))
	}
	return all
}

// word judges one word of a shell's text.
func (r *textJudgement) word(w *syntax.Word) word {
	out := word{known: true, at: r.at}
	if w == nil {
		return out
	}
	out.shown = r.print(w)
	last := ""
	var parts func(list []syntax.WordPart, quoted bool)
	parts = func(list []syntax.WordPart, quoted bool) {
		for _, part := range list {
			text, isText := "", false
			switch part := part.(type) {
			case *syntax.Lit:
				text, isText = unescaped(part.Value, quoted), quoted || part.Value == "[[" || !expands.MatchString(part.Value)
			case *syntax.SglQuoted:
				text, isText = part.Value, !part.Dollar
			case *syntax.DblQuoted:
				if !part.Dollar {
					parts(part.Parts, true)
					continue
				}
			case *syntax.ParamExp:
				if is, loose := r.paramValue(part); is {
					out.value, out.many = true, out.many || part.Param.Value == "@"
					out.loose = out.loose || loose && out.text == ""
				}
			}
			if !isText && r.holdsValue(part) {
				if out.value = true; out.text == "" {
					_, isPlain := part.(*syntax.ParamExp)
					out.loose = out.loose || !isPlain
				}
			}
			if last = text; isText && out.known {
				out.text += text
			}
			out.known = out.known && isText
		}
	}
	parts(w.Parts, false)
	if name := out.text; !out.value && (out.known || strings.Contains(last, "/")) {
		if !out.known {
			name = last
		}
		out.name = literal(name, r.at).name
	}
	return out
}

// expands matches characters of an unquoted text that may make other words of it.
var expands = regexp.MustCompile(`[*?]|.\[|\[.|\{[^}]*(,|\.\.)`)

// paramValue reports whether the expansion is that of a variable with a value.
func (r *textJudgement) paramValue(e *syntax.ParamExp) (is, loose bool) {
	if e.Param == nil || e.Length {
		return false, false
	}
	return r.known.isValue(e.Param.Value)
}

// holdsValue reports whether a value stands anywhere in n.
func (r *textJudgement) holdsValue(n syntax.Node) (is bool) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			value, _ := r.paramValue(n)
			is = is || value
		case *syntax.Lit: // arithmetic and declarations name variables without a dollar sign
			_, value := r.known.names[n.Value]
			is = is || value
		}
		return !is
	})
	return is
}

// owns takes note of a template that is a word of its own, or stands behind "=".
func (r *textJudgement) owns(w *syntax.Word) {
	last := len(w.Parts) - 1
	quoted, ok := w.Parts[last].(*syntax.DblQuoted)
	if !ok || len(quoted.Parts) != 1 {
		return
	}
	if before := ""; last > 0 {
		if lit, ok := w.Parts[last-1].(*syntax.Lit); ok {
			before = lit.Value
		}
		if !strings.HasSuffix(before, "=") {
			return
		}
	}
	if e, ok := quoted.Parts[0].(*syntax.ParamExp); ok && e.Param != nil {
		r.own[e.Param.Value] = true
	}
}

// splits refuses a value that would become several words, or another one.
func (r *textJudgement) splits(w *syntax.Word) {
	var look func(list []syntax.WordPart, quoted bool)
	look = func(list []syntax.WordPart, quoted bool) {
		for _, part := range list {
			switch part := part.(type) {
			case *syntax.DblQuoted:
				look(part.Parts, true)
			case *syntax.ParamExp:
				is, _ := r.paramValue(part)
				switch plain := part.Exp == nil && part.Slice == nil && part.Repl == nil && part.Index == nil && !part.Excl; {
				case is && !plain, !plain && r.holdsValue(part):
					r.refuse("%s changes a value, so that it may begin with \"-\" or be another one: %s", clip(r.print(part)), ownScript)
				case is && !quoted && !r.whole[w]:
					r.refuse("%s without quotes may become several words: write it in double quotes", clip(r.print(part)))
				}
			case *syntax.CmdSubst:
				if !quoted && !r.whole[w] && r.later == nil && r.holdsValue(part) {
					r.later = r.blame("%s without quotes may become several words: write it in double quotes", clip(r.print(part)))
				}
			case *syntax.ExtGlob:
				if r.holdsValue(part) {
					r.refuse("a value stands in the pattern %s: %s", clip(r.print(part)), ownScript)
				}
			}
		}
	}
	look(w.Parts, false)
}

// unescaped is a literal without its backslashes.
func unescaped(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || slices.Contains([]byte("$`\"\\\n"), text[i+1])) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var ownVariable = regexp.MustCompile(`"?\$\{toolhub_([0-9]+)\}"?`)

// print is a part of the text as the person has written it.
func (r *textJudgement) print(n syntax.Node) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, n); err != nil {
		return "a part of it"
	}
	return ownVariable.ReplaceAllStringFunc(b.String(), func(found string) string {
		for i, shown := range r.shown {
			if strings.Contains(found, fmt.Sprintf("_%d}", i+1)) {
				return shown
			}
		}
		return found
	})
}
