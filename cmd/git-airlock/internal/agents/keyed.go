package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// errOther reports that the keyed part cannot be set in a file.
var errOther = errors.New("the file has another form")

// sign returns the string whose presence in a changed file means that the keyed part is set: the only string of the part.
func (f File) sign() string {
	return strings.Trim(f.Keyed[strings.LastIndex(f.Keyed, ":")+1:], `[]{}"`)
}

// merge sets a part in a JSON document that the agent has written: members of objects are set, and elements of arrays are added. All else
// in the document stays. A document of another form is an error.
func merge(document, part string) (string, error) {
	merged, err := mergeValue(json.RawMessage(document), json.RawMessage(part))
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, merged, "", "  "); err != nil {
		return "", err
	}
	return b.String() + "\n", nil
}

func mergeValue(old, part json.RawMessage) (json.RawMessage, error) {
	switch part[0] {
	case '{':
		var members, set map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(old, &members), json.Unmarshal(part, &set)); err != nil {
			return nil, err
		}
		if members == nil { // null
			return nil, errOther
		}
		for name, value := range set {
			if _, there := members[name]; there {
				var err error
				if value, err = mergeValue(members[name], value); err != nil {
					return nil, err
				}
			}
			members[name] = value
		}
		return encode(members)
	case '[':
		var elements, add []json.RawMessage
		if err := errors.Join(json.Unmarshal(old, &elements), json.Unmarshal(part, &add)); err != nil {
			return nil, err
		}
		return encode(append(elements, add...))
	}
	var text string
	return part, json.Unmarshal(old, &text) // only a string is replaced
}

// encode writes a value without the escapes for HTML, which the agent has not written.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return b.Bytes(), err
}
