package runs

import (
	"os"
	"path/filepath"

	"github.com/git-airlock/git-airlock/promote/record"
)

// resources adds what the prison used.
func (g *gathering) resources() {
	content, err := os.ReadFile(filepath.Join(g.folder(g.slot), record.ResourcesName))
	if err != nil {
		g.absent[record.ResourcesName] = "no measurement was made"
		g.visibility = append(g.visibility, "processor time and memory were not measured")
		return
	}
	g.put(record.ResourcesName, content, record.File{})
}
