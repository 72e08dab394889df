package settings_test

import (
	"testing"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/settings"
)

func TestObeysRecipe(t *testing.T) {
	for _, c := range []struct {
		kept, given string
		obeys       bool
	}{
		{"", "", true}, {"no", "", false}, {"OFF", "", false}, {"0", "", false}, {"false", "", false}, {"yes", "", true},
		{"false", "true", true}, {"true", "no", false}, {"perhaps", "", true},
	} {
		kept, given := map[string]string{}, map[string]string{}
		if c.kept != "" {
			kept["airlock.recipe"] = c.kept
		}
		if c.given != "" {
			given["airlock.recipe"] = c.given
		}
		if settings.ObeysRecipe(kept, given) != c.obeys {
			t.Errorf("%+v", c)
		}
	}
}
