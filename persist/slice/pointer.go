package slice

import (
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// at returns the value at a JSON pointer (RFC 6901) that is not empty, as it is written.
func (d document) at(pointer string) ([]byte, error) {
	if err := d.needJSON("pointer"); err != nil {
		return nil, err
	}
	i := rawjson.SkipSpace(d.data, 0)
	return At(d.data[i:rawjson.SkipValue(d.data, i)], pointer)
}

// At returns the value at a JSON pointer (RFC 6901) in a JSON value without white space around it. The
// error says in sentences how far the pointer leads.
func At(value []byte, pointer string) ([]byte, error) {
	if pointer != "" && pointer[0] != '/' {
		return nil, faultf("A JSON pointer begins with /, such as /items/3; %s does not.", quoted(pointer))
	}
	if pointer == "" {
		return value, nil
	}
	walked := ""
	for token := range strings.SplitSeq(pointer[1:], "/") {
		next, err := step(value, rawjson.PointerName(token), walked)
		if err != nil {
			return nil, err
		}
		value, walked = next, walked+"/"+token
	}
	return value, nil
}

// step returns the member or element of value that token names. walked is the pointer of value.
func step(value []byte, token, walked string) ([]byte, error) {
	if walked == "" {
		walked = "the top"
	}
	walked = shorten(walked, 120)
	switch value[0] {
	case '{':
		found, ok := rawjson.Get(value, token)
		if !ok {
			return nil, faultf("There is no member %s at %s: %s.", quoted(token), walked, members(value))
		}
		return found, nil
	case '[':
		n := 0
		var found []byte
		index, err := strconv.Atoi(token)
		if err != nil || index < 0 || len(token) > 1 && token[0] == '0' || token[0] == '+' {
			return nil, faultf("There is an array at %s: name an element by its index, from 0, in place of %s.", walked,
				quoted(token))
		}
		_ = rawjson.Elements(value, func(element []byte) bool {
			if n == index {
				found = element
				return false
			}
			n++
			return true
		})
		if found == nil {
			return nil, faultf("The array at %s has %s: there is none at %d.", walked, textfile.Count(n, "element"), index)
		}
		return found, nil
	}
	return nil, faultf("At %s is a value that is neither object nor array: end the pointer there.", walked)
}

// members names the members of an object, the first of them.
func members(object []byte) string {
	const most = 20
	var names []string
	n := 0
	_ = rawjson.Members(object, func(m rawjson.Member) bool {
		if n++; n <= most {
			names = append(names, shorten(m.Name(), 60))
		}
		return true
	})
	switch {
	case n == 0:
		return "the object there has none"
	case n > most:
		return "it has " + textfile.Count(n, "member") + ", such as " + strings.Join(names, ", ")
	}
	return "it has " + strings.Join(names, ", ")
}

func quoted(text string) string { return strconv.Quote(shorten(text, 100)) }
