package invoke

import (
	"strings"
	"testing"
)

// TestLargeImagesCount: an image counts little, unless it is so large that models refuse it.
func TestLargeImagesCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ length, least, most int }{{4, 4, 100}, {maxImage, imageChars, imageChars + 100}, {maxImage + 4, maxImage + 4, maxImage + 104}} {
		result := `{"content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", c.length) + `"}]}`
		if size := shownSize([]byte(result)); size < c.least || size > c.most {
			t.Errorf("an image of %d characters counts for %d, not for %d to %d", c.length, size, c.least, c.most)
		}
	}
}
