package requestlimits

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/copse-dev/copse/pkg/apis/grove/validation"
)

const (
	// maxEntries bounds one list or map: as many as a set may have pods, which a PodGang
	// lists.
	maxEntries = validation.MaxPodsPerSet
	// maxValues bounds all strings, numbers, lists and maps of a body. What fits into etcd
	// has fewer, with the owners of its fields, unless its strings are next to empty.
	maxValues = 100000
	// maxPath bounds how deep the path goes that an answer tells.
	maxPath = 16
	// wholeBody stands for the path to the whole.
	wholeBody = "body"
)

// container is a list or a map that is being read.
type container struct {
	isMap bool
	// key is the key of the value that is read, in a map.
	key string
	// entries are those that have begun.
	entries int
	// most is how many it may have.
	most int
}

// shortLists are the lists whose entries cost far more than others, since each has a pod
// template to default. Validation has the same limit.
func shortLists() map[string]int {
	return map[string]int{
		"spec.template.cliques":                validation.MaxCliques,
		"spec.template.podCliqueScalingGroups": validation.MaxCliques,
	}
}

// counter counts the values of a text, as it is read.
type counter struct {
	containers []container
	values     int
	shortLists map[string]int
}

// check returns what a text has too many of, nil if nothing. A text that cannot be read
// is left to the decoder to refuse.
func check(body []byte, isYAML bool) *field.Error {
	if body = bytes.TrimSpace(body); isYAML && !bytes.HasPrefix(body, []byte("{")) {
		return checkYAML(body)
	}
	c := counter{shortLists: shortLists()}
	if !c.mayRefuse(body) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil
		}
		if tooMany := c.add(token); tooMany != nil {
			return tooMany
		}
	}
}

// mayRefuse says that a text has to be read, which takes a sixth of what a write of a big
// status costs. Each value but the first of a list or map comes after a comma, and the first
// after a bracket. A short list whose name is written with escapes gets past this, and then
// has no more entries than the others may have; validation refuses it.
func (c *counter) mayRefuse(body []byte) bool {
	most := 1
	for _, begins := range []string{",", "[", "{"} {
		most += bytes.Count(body, []byte(begins))
	}
	if most > maxEntries {
		return true
	}
	for path := range c.shortLists {
		if bytes.Contains(body, []byte(`"`+path[strings.LastIndex(path, ".")+1:]+`"`)) {
			return true
		}
	}
	return false
}

// add counts a token, and fails when it is one too many.
func (c *counter) add(token json.Token) *field.Error {
	delim, isDelim := token.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		c.containers = c.containers[:len(c.containers)-1]
		c.endValue()
		return nil
	}
	if top := c.top(); top != nil && top.isMap && top.key == "" {
		// A key is never a delimiter. An empty one is no field's.
		top.key, _ = token.(string)
		if top.key == "" {
			top.key = `""`
		}
		return nil
	}
	c.values++
	if c.values > maxValues {
		return field.TooMany(field.NewPath(wholeBody), c.values, maxValues)
	}
	if top := c.top(); top != nil {
		if top.entries++; top.entries > top.most {
			return field.TooMany(c.path(), top.entries, top.most)
		}
	}
	if isDelim {
		c.containers = append(c.containers, container{isMap: delim == '{', most: maxEntries})
		if short, ok := c.shortLists[c.shortPath()]; ok {
			c.top().most = short
		}
	} else {
		c.endValue()
	}
	return nil
}

// endValue waits for the next key of a map.
func (c *counter) endValue() {
	if top := c.top(); top != nil {
		top.key = ""
	}
}

func (c *counter) top() *container {
	if len(c.containers) == 0 {
		return nil
	}
	return &c.containers[len(c.containers)-1]
}

// shortPath is the path if it is as deep as those of the short lists.
func (c *counter) shortPath() string {
	const depth = 4
	if len(c.containers) != depth {
		return ""
	}
	return c.path().String()
}

// path leads to the container that is being read.
func (c *counter) path() *field.Path {
	var path *field.Path
	for _, in := range c.containers[:min(len(c.containers)-1, maxPath)] {
		switch {
		case !in.isMap:
			path = path.Index(in.entries - 1)
		case path == nil:
			path = field.NewPath(in.key)
		default:
			path = path.Child(in.key)
		}
	}
	return path
}

// checkYAML counts what can begin a value in YAML that is not JSON: a line, and the commas
// and brackets within one. kubectl sends JSON, so it may be too strict.
func checkYAML(text []byte) *field.Error {
	n := 0
	for _, begins := range []string{"\n", ",", "[", "{"} {
		n += bytes.Count(text, []byte(begins))
	}
	if n > maxEntries {
		return field.Invalid(field.NewPath(wholeBody), n, fmt.Sprintf("more than %d lines, commas and brackets in YAML: send it as JSON, as kubectl does", maxEntries))
	}
	return nil
}
