package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licence is what a module says of how it may be passed on.
type licence struct {
	ids   []string // SPDX's, of all that count at once; empty if the text is none that is known
	texts []text   // licences, then notices
}

// text is a file of a module.
type text struct{ name, content string }

var (
	licenceFile = regexp.MustCompile(`(?i)^(?:licen[cs]e|copying|unlicense)(?:[.-](?:md|txt|rst|[a-z0-9.]+))?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(?:notice|patents)(?:\.(?:md|txt))?$`)
)

// aboutDocs names a licence of documentation alone, which is not in a program.
const aboutDocs = ".docs"

// enough is how many hundredths of a file have to be words of known licences. What else there is are names and years.
const enough = 75

// licenceOf reads the licence of a module from its top folder. A module without one may not be passed on.
func licenceOf(folder string) (licence, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return licence{}, err
	}
	var l licence
	var notices []text
	known := true
	for _, e := range entries {
		isLicence := licenceFile.MatchString(e.Name()) && !strings.HasSuffix(strings.ToLower(e.Name()), aboutDocs)
		if !e.Type().IsRegular() || !isLicence && !noticeFile.MatchString(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return licence{}, err
		}
		t := text{e.Name(), string(content)}
		if !isLicence {
			notices = append(notices, t)
			continue
		}
		ids := classify(content)
		known = known && ids != nil
		l.ids = append(l.ids, ids...)
		l.texts = append(l.texts, t)
	}
	if l.texts == nil {
		return licence{}, fmt.Errorf("%s: there is no licence", folder)
	}
	if slices.Sort(l.ids); !known {
		l.ids = nil
	}
	l.ids = slices.Compact(l.ids)
	l.texts = append(l.texts, notices...)
	return l, nil
}

// classify names the licences in a text, nil if too much of it is none that is known.
func classify(content []byte) (ids []string) {
	found := licensecheck.Scan(content)
	if found.Percent < enough {
		return nil
	}
	for _, m := range found.Match {
		if !m.IsURL {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// cycloneLicence is one entry of a component's licenses: an expression, or a licence by its text.
type cycloneLicence struct {
	License    *namedLicence `json:"license,omitempty"`
	Expression string        `json:"expression,omitempty"`
}

type namedLicence struct {
	ID   string       `json:"id,omitempty"`
	Name string       `json:"name,omitempty"`
	Text *licenceText `json:"text,omitempty"`
}

type licenceText struct {
	ContentType string `json:"contentType"`
	Encoding    string `json:"encoding"`
	Content     string `json:"content"`
}

// cyclone is the licence as a component has it.
func (l licence) cyclone() []cycloneLicence {
	switch len(l.ids) {
	case 0:
		var all []cycloneLicence
		for _, t := range l.texts {
			all = append(all, cycloneLicence{License: &namedLicence{Name: t.name, Text: &licenceText{"text/plain", "base64", base64.StdEncoding.EncodeToString([]byte(t.content))}}})
		}
		return all
	case 1:
		return []cycloneLicence{{License: &namedLicence{ID: l.ids[0]}}}
	}
	return []cycloneLicence{{Expression: strings.Join(l.ids, " AND ")}}
}
