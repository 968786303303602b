package driver

import (
	"encoding/json"
	"runtime/debug"
)

// Variant is a way to run an engine: a column.
type Variant struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Why an asynchronous write promises less than to have reached the operating system.
	Weaker string `json:"weaker,omitempty"`
}

// Description is what an engine says of itself: the fields of --describe in lab/WORKLOADS.md.
type Description struct {
	Engine       string            `json:"engine"`
	Title        string            `json:"title"`
	Version      string            `json:"version"`
	Variants     []Variant         `json:"variants"`
	Asynchronous string            `json:"asynchronous"`
	Synchronous  string            `json:"synchronous"`
	Settings     string            `json:"settings"`
	Limits       []string          `json:"limits"`
	Unsupported  map[string]string `json:"unsupported"`
	// Whether entries may expire: its sessions are Expirers then.
	Expires bool `json:"-"`
}

func (d *Description) line() (string, error) {
	if d.Limits == nil {
		d.Limits = []string{}
	}
	if d.Unsupported == nil {
		d.Unsupported = map[string]string{}
	}
	line, err := json.Marshal(d)
	return string(line), err
}

func (d *Description) hasVariant(name string) bool {
	for _, variant := range d.Variants {
		if variant.Name == name {
			return true
		}
	}
	return name == ""
}

// ModuleVersion returns the version of a module that the program is built with, as go.mod pins it.
func ModuleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				if len(module.Version) > 1 && module.Version[0] == 'v' {
					return module.Version[1:]
				}
				return module.Version
			}
		}
	}
	return "unknown"
}
